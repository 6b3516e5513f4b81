//! Puts the services together and runs them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use chart_index_browse::{BrowseState, SearchEngines};
use chart_index_cache::{CatalogueStatus, CatalogueStatusSource};
use chart_index_domain::search::Engine;
use chart_index_http::{ResponseCache, ServerConfig};
use chart_index_lookup::LookupState;
use chart_index_search::{MeilisearchEngine, SearchConfig};
use chart_index_store::{CatalogueWatch, PostgresSearch, Store};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::arguments::{ServeArguments, Service};
use crate::health::{self, Readiness};
use crate::open_files;

/// How long the database may take to say goodbye at the end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// How often the catalogue is asked for its generation: how long a list or a detail may miss a change.
const GENERATION_INTERVAL: Duration = Duration::from_secs(1);

/// Serves until `shutdown` completes and what is in flight is finished.
///
/// The private listener answers to the very end: while the public one drains, it says that this process lives
/// and is not ready.
pub(crate) async fn run(
    arguments: &ServeArguments,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let (public_config, private_config) = bounds_of_listeners(arguments);
    let public = bind("LISTEN", arguments.listen).await?;
    let private = bind("ADMIN_LISTEN", arguments.admin.admin_listen).await?;
    let store = Store::new(&arguments.store.config());
    let monitoring = store.monitoring();
    let readiness = Readiness::new(monitoring.clone());
    // The service also starts without PostgreSQL: readiness is then checked again whenever it is asked for.
    let (watch, _) = tokio::join!(CatalogueWatch::start(&monitoring, GENERATION_INTERVAL), readiness.check());
    let (rate_limiter, cache) = arguments.response_cache(catalogue_status(&watch))?;
    let engines = connect_engines(arguments, &store, &monitoring, &watch).await?;

    announce("public", &public)?;
    announce("private", &private)?;
    let (stop_private, private_stopping) = oneshot::channel::<()>();
    let private_server = tokio::spawn({
        let routes = chart_index_http::private_router(health::router(readiness.clone()));
        let proxies = arguments.limits.trusted_proxies.clone();
        // The sender sends nothing: that it is dropped is the signal.
        let stopping = async { private_stopping.await.unwrap_or_default() };
        async move { chart_index_http::serve(private, routes, &private_config, &proxies, stopping).await }
    });
    let stopping = async {
        shutdown.await;
        tracing::info!("shutting down");
        readiness.drain();
    };
    let routes = routes(arguments, engines, &store, &watch, &cache);
    let routes = chart_index_http::public_router(routes, &rate_limiter, &arguments.layers);
    let proxies = &arguments.limits.trusted_proxies;
    chart_index_http::serve(public, routes, &public_config, proxies, stopping).await;

    drop(stop_private);
    private_server.await.context("the private listener failed")?;
    // With the process the connections end in any case.
    let _ = timeout(CLOSE_TIMEOUT, async { tokio::join!(store.close(), monitoring.close()) }).await;
    tracing::info!("stopped");
    Ok(())
}

/// The bounds of the public and of the private listener, within the limit of open files of this process.
fn bounds_of_listeners(arguments: &ServeArguments) -> (ServerConfig, ServerConfig) {
    let (server, database) = (arguments.server, arguments.store.database_max_connections);
    let max_connections = open_files::clamp(server.max_connections, database, open_files::raise());
    let private_connections = server.max_connections.min(open_files::PRIVATE_CONNECTIONS);
    (
        ServerConfig { max_connections, ..server },
        ServerConfig { max_connections: private_connections, ..server },
    )
}

/// What the cache is told of the catalogue.
fn catalogue_status(watch: &CatalogueWatch) -> CatalogueStatusSource {
    let watch = watch.clone();
    CatalogueStatusSource::new(move || {
        watch.last_read().map(|(generation, read_at)| CatalogueStatus { generation, read_at })
    })
}

/// Meilisearch where there are nodes, with PostgreSQL as the fallback; else PostgreSQL alone.
async fn connect_engines(
    arguments: &ServeArguments,
    store: &Store,
    monitoring: &Store,
    watch: &CatalogueWatch,
) -> anyhow::Result<SearchEngines> {
    let postgres = Arc::new(PostgresSearch::new(store.clone(), watch.clone()));
    let nodes = arguments.meilisearch.nodes()?;
    if nodes.is_empty() {
        tracing::info!(engine = Engine::Postgres.as_str(), "search engine selected");
        return Ok(SearchEngines::new(postgres));
    }
    let config = SearchConfig { max_lag: arguments.search_max_lag, ..SearchConfig::new(nodes) };
    let nodes = config.nodes.len();
    tracing::info!(engine = Engine::Meilisearch.as_str(), nodes, "search engine selected");
    let meilisearch = MeilisearchEngine::connect(config, Arc::new(monitoring.clone()))
        .await
        .context("MEILISEARCH_URL cannot be used")?;
    Ok(SearchEngines::with_fallback(Arc::new(meilisearch), postgres))
}

/// The routes of the chosen services.
fn routes(
    arguments: &ServeArguments,
    engines: SearchEngines,
    store: &Store,
    watch: &CatalogueWatch,
    cache: &ResponseCache,
) -> Router {
    let mut routes = Router::new();
    if arguments.services.contains(&Service::Lookup) {
        routes = routes
            .merge(chart_index_lookup::router(LookupState { store: store.clone(), cache: cache.clone() }));
    }
    if arguments.services.contains(&Service::Browse) {
        let state = BrowseState {
            engines,
            store: store.clone(),
            watch: watch.clone(),
            cache: cache.clone(),
            source_pages: arguments.source_pages.clone(),
        };
        routes = routes.merge(chart_index_browse::router(state));
    }
    routes
}

async fn bind(variable: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("{variable}: cannot listen on {address}"))
}

/// Says where a listener is. Programs that start the server read this line: its message and its fields `listener`
/// and `address` are part of the interface.
fn announce(listener: &str, socket: &TcpListener) -> anyhow::Result<()> {
    let address = socket.local_addr().context("a listener has no address")?;
    tracing::info!(listener, %address, "listening");
    Ok(())
}
