//! Wires the services together and runs them.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use chart_index_browse::{BrowseState, SearchEngines};
use chart_index_bulk::{BulkOptions, LongPolls};
use chart_index_cache::{Cache, CacheConfig, CacheConnections, RecentChanges};
use chart_index_domain::search::Engine;
use chart_index_http::{
    ApiError, HttpRateLimiter, PublicApi, ResponseCache, Routes, Server, ServerConfig, Worker, WorkerThreads,
};
use chart_index_instrumentation::metrics;
use chart_index_lookup::LookupState;
use chart_index_objects::{ObjectStoreConfig, Objects};
use chart_index_pages::PagesState;
use chart_index_ratelimit::{Group, Limiter, LimiterConfig};
use chart_index_redis::{RedisConfig, RedisConnection, RedisPool};
use chart_index_search::{MeilisearchEngine, SearchConfig};
use chart_index_store::{CatalogueWatch, PostgresSearch, Store};
use chart_index_telemetry::{Telemetry, serve_private};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::arguments::{ServeArguments, Service};
use crate::health::{self, Readiness};
use crate::open_file_limit::OtherFiles;
use crate::{limits, open_file_limit, start_checks};

/// Maximum time to close the private listener and the connections to PostgreSQL at exit.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// How often the catalogue is polled for changes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Serves until `shutdown` completes, the drain delay is over and the requests in flight are finished.
///
/// The private listener stops last: while the public one drains, it reports that the process is live and not
/// ready. From the shutdown on this takes at most the drain delay and the grace period.
pub(crate) async fn run(
    arguments: &ServeArguments,
    telemetry: &Telemetry,
    threads: &WorkerThreads,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let (public_config, close_timeout) = server_config(arguments, threads.runtimes().len());
    let public = bind("LISTEN", arguments.listen).await?;
    let private = bind("ADMIN_LISTEN", arguments.admin.admin_listen).await?;
    let app = App::build(arguments, telemetry, threads, public_config.max_connections).await?;
    log_address("public", &public)?;
    log_address("private", &private)?;

    let private_shutdown = CancellationToken::new();
    let private = serve_private(
        private,
        health::readyz(app.readiness.clone()),
        private_shutdown.clone().cancelled_owned(),
    );
    let private = tokio::spawn(private);
    let draining = async {
        shutdown.await;
        tracing::info!("shutting down");
        app.readiness.drain();
        app.end_of_waits.cancel();
    };
    let server = Server {
        listener: public,
        workers: app.workers.clone(),
        config: public_config,
        trusted_proxies: arguments.rate_limits.trusted_proxies.clone(),
        metrics: metrics(),
    };
    server.serve(draining).await;

    let closed = async {
        private_shutdown.cancel();
        private.await.context("private listener failed")??;
        app.close().await;
        anyhow::Ok(())
    };
    // What takes longer is closed by the exit of the process.
    timeout(close_timeout, closed).await.unwrap_or(Ok(()))?;
    tracing::info!("stopped");
    Ok(())
}

/// The parts of the server, connected.
struct App {
    store: Store,
    /// Connections for readiness checks and for following changes: polls of the catalogue, and the lag of
    /// Meilisearch nodes. They do not wait for requests.
    monitoring: Store,
    /// Polls until it is dropped.
    _watch: CatalogueWatch,
    readiness: Readiness,
    /// Cancelled to end the waits for changes.
    end_of_waits: CancellationToken,
    workers: Vec<Worker>,
}

impl App {
    async fn build(
        arguments: &ServeArguments,
        telemetry: &Telemetry,
        threads: &WorkerThreads,
        max_connections: NonZeroU32,
    ) -> anyhow::Result<Self> {
        let store = connect_store(arguments)?;
        let monitoring = store.monitoring();
        let readiness = Readiness::new(monitoring.clone(), &arguments.services);
        let changes = Arc::new(RecentChanges::new());
        let on_poll = {
            let changes = Arc::clone(&changes);
            move |poll, began| changes.apply(poll, began)
        };
        // An error is not fatal: the server also starts without PostgreSQL, and `/readyz` repeats the check.
        let watch = CatalogueWatch::start(&monitoring, store.standby(), POLL_INTERVAL, on_poll);
        let (watch, checked) = tokio::join!(watch, readiness.check());
        if let Some(error) = checked.as_ref().err().and_then(ApiError::causes) {
            tracing::warn!(%error, "not ready");
        }
        let serves_exports = arguments.services.contains(&Service::Bulk);
        let exports = arguments.exports.exports_dir.clone().filter(|_| serves_exports);
        start_checks::spawn(exports, store.objects().cloned());
        let (rate_limiter, cache) = connect_redis(arguments, threads, changes)?;
        let engines = connect_engines(arguments, &store, &monitoring, watch.clone()).await?;
        let end_of_waits = CancellationToken::new();
        let max_long_polls = limits::long_polls(arguments, max_connections);
        let long_polls = LongPolls::new(watch.subscribe(), max_long_polls, end_of_waits.clone());
        let routes = routes(arguments, engines, &store, &cache, long_polls);
        let limiter = rate_limiter.limiter().clone();
        let public = PublicApi::new(routes, rate_limiter, &arguments.request_limits, telemetry.sampler());
        let workers = workers(threads, &public, &limiter);
        Ok(Self { store, monitoring, _watch: watch, readiness, end_of_waits, workers })
    }

    /// Closes the connections to PostgreSQL.
    async fn close(&self) {
        tokio::join!(self.store.close(), self.monitoring.close());
    }
}

/// The settings of the public listener, within the open file limit of the process, and the time for everything
/// that is closed after it, both within the grace period.
pub(crate) fn server_config(arguments: &ServeArguments, threads: usize) -> (ServerConfig, Duration) {
    let server = arguments.server;
    let has_nodes = arguments.meilisearch.nodes().is_ok_and(|nodes| !nodes.is_empty());
    let others = OtherFiles {
        database: arguments.store.max_connections(),
        threads,
        redis_nodes: arguments.redis.endpoint().nodes(),
        searches: if has_nodes { limits::reads(arguments).get() } else { 0 },
        objects: if arguments.objects.url().is_some() { limits::object_reads(arguments).get() } else { 0 },
    };
    let max_connections =
        open_file_limit::clamp_connections(server.max_connections, others, open_file_limit::raise());
    let close_timeout = CLOSE_TIMEOUT.min(server.shutdown_grace / 2);
    let shutdown_grace = server.shutdown_grace.saturating_sub(close_timeout);
    (ServerConfig { max_connections, shutdown_grace, ..server }, close_timeout)
}

pub(crate) async fn bind(variable: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("{variable}: cannot listen on {address}"))
}

/// The store, with the object store if there is one.
///
/// # Errors
///
/// The settings of one of them are invalid.
pub(crate) fn connect_store(arguments: &ServeArguments) -> anyhow::Result<Store> {
    let store = arguments.store.store()?;
    let Some(url) = arguments.objects.url() else { return Ok(store) };
    let config = ObjectStoreConfig {
        max_in_flight: limits::object_reads(arguments).get(),
        ..ObjectStoreConfig::new(url.clone())
    };
    Ok(store.with_objects(Objects::open(&config).context("OBJECT_STORE_URL")?))
}

const INVALID_REDIS: &str = "REDIS_URL or REDIS_CLUSTER_URLS is invalid";

/// The rate limiter and the response cache. They connect to Redis in the background.
///
/// # Errors
///
/// The Redis settings are invalid.
fn connect_redis(
    arguments: &ServeArguments,
    threads: &WorkerThreads,
    changes: Arc<RecentChanges>,
) -> anyhow::Result<(HttpRateLimiter, ResponseCache)> {
    let redis = redis_config(arguments);
    let connections = CacheConnections {
        main: RedisConnection::connect_on("main", &redis, threads.runtimes()).context(INVALID_REDIS)?,
        rox: RedisConnection::connect("rox", &redis).context(INVALID_REDIS)?,
        pool: RedisPool::new(&redis).context(INVALID_REDIS)?,
    };
    let cache = Cache::new(cache_config(arguments, changes), connections.clone());

    let config = LimiterConfig { limits: arguments.rate_limits.limits, ..LimiterConfig::default() };
    let limiter = Limiter::new(config, connections.main);
    let rate_limiter = HttpRateLimiter::new(limiter, arguments.rate_limits.trusted_proxies.clone());
    Ok((rate_limiter, ResponseCache::new(cache).with_cdn(arguments.cdn)))
}

pub(crate) fn redis_config(arguments: &ServeArguments) -> RedisConfig {
    RedisConfig::new(arguments.redis.endpoint())
}

fn cache_config(arguments: &ServeArguments, changes: Arc<RecentChanges>) -> CacheConfig {
    CacheConfig {
        bytes: arguments.cache.cache_bytes.get(),
        // No request waits longer.
        fill_timeout: arguments.request_limits.request_deadline,
        max_fills: limits::reads(arguments),
        max_postgres_searches: limits::postgres_searches(arguments),
        max_waiting_requests: limits::waiting(arguments, Group::Lookup),
        max_waiting_lists: limits::waiting(arguments, Group::List),
        changes: Some(changes),
        ..CacheConfig::default()
    }
}

/// Meilisearch with PostgreSQL as the fallback if there are nodes, else PostgreSQL alone.
async fn connect_engines(
    arguments: &ServeArguments,
    store: &Store,
    monitoring: &Store,
    watch: CatalogueWatch,
) -> anyhow::Result<SearchEngines> {
    let postgres = Arc::new(PostgresSearch::new(store.clone(), watch));
    let config = search_config(arguments)?;
    if config.nodes.is_empty() {
        tracing::info!(engine = Engine::Postgres.as_str(), "search engine selected");
        return Ok(SearchEngines::new(postgres));
    }
    let nodes = config.nodes.len();
    tracing::info!(engine = Engine::Meilisearch.as_str(), nodes, "search engine selected");
    let meilisearch = MeilisearchEngine::connect(config, Arc::new(monitoring.clone()))
        .await
        .context("cannot set up the Meilisearch client")?;
    Ok(SearchEngines::with_fallback(Arc::new(meilisearch), postgres))
}

/// The search of the Meilisearch nodes, of which there may be none.
pub(crate) fn search_config(arguments: &ServeArguments) -> anyhow::Result<SearchConfig> {
    let nodes = arguments.meilisearch.nodes()?;
    Ok(SearchConfig { max_lag: arguments.search_max_lag, ..SearchConfig::new(nodes) })
}

/// The routes of the selected services.
fn routes(
    arguments: &ServeArguments,
    engines: SearchEngines,
    store: &Store,
    cache: &ResponseCache,
    long_polls: LongPolls,
) -> Routes {
    let mut routes = Routes::new().with_tags(arguments.cdn);
    if arguments.services.contains(&Service::Lookup) {
        let state = LookupState {
            store: store.clone(),
            cache: cache.clone(),
            public_objects: arguments.objects_public_url.clone(),
            source_pages: arguments.source_pages.clone(),
            background: Handle::current(),
        };
        routes = routes.merge(chart_index_lookup::routes(state));
    }
    if arguments.services.contains(&Service::Browse) {
        let state = BrowseState {
            engines: engines.clone(),
            store: store.clone(),
            cache: cache.clone(),
            source_pages: arguments.source_pages.clone(),
        };
        routes = routes.merge(chart_index_browse::routes(state));
    }
    if arguments.services.contains(&Service::Pages) {
        let state = PagesState {
            engines,
            store: store.clone(),
            cache: cache.clone(),
            source_pages: arguments.source_pages.clone(),
            limits: arguments.rate_limits.limits,
            settings: arguments.pages.clone(),
        };
        routes = routes.merge(chart_index_pages::routes(state));
    }
    if arguments.services.contains(&Service::Bulk) {
        let options = BulkOptions {
            store: store.clone(),
            background: Handle::current(),
            exports: arguments.exports.clone(),
            long_polls,
        };
        routes = routes.merge(chart_index_bulk::routes(options));
    }
    routes
}

/// The API on each thread, which sends its own rate limit checks.
fn workers(threads: &WorkerThreads, api: &PublicApi, limiter: &Limiter) -> Vec<Worker> {
    let workers = threads.runtimes().iter().map(|runtime| {
        let api = api.with_limiter(&limiter.with_own_queue());
        Worker { runtime: runtime.clone(), router: api.into_router() }
    });
    workers.collect()
}

/// Logs the address of a listener. Programs that start the server read this line: its message and its fields
/// `listener` and `address` are an interface.
fn log_address(listener: &str, socket: &TcpListener) -> anyhow::Result<()> {
    let address = socket.local_addr().context("get the address of a listener")?;
    tracing::info!(listener, %address, "listening");
    Ok(())
}
