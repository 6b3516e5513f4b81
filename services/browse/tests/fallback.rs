//! The list over two engines that a test controls: when the fallback is searched, and the metrics and spans.
#![expect(clippy::unwrap_used, reason = "a test fails if its setup does")]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use chart_index_browse::{BrowseState, SearchEngines, routes};
use chart_index_cache::{Cache, CacheConfig, CacheConnections, Clock};
use chart_index_domain::ReadError;
use chart_index_domain::search::{ChartsetPage, Engine, RatingHistogram, SearchIndex, SearchQuery, Sort};
use chart_index_http::{HttpRateLimiter, PublicApi, RequestLimitConfig, ResponseCache, SourcePages};
use chart_index_instrumentation::Sampler;
use chart_index_ratelimit::{Limiter, LimiterConfig, TrustedProxies};
use chart_index_redis::RedisConnection;
use chart_index_store::{Store, StoreConfig};
use chart_index_tests::RecordedTelemetry;
use tower::ServiceExt;
use tracing::Instrument;

/// An engine without chartsets that counts its searches, which may fail. Meilisearch does not support cursors,
/// and finds out during a search that it cannot sort by length.
struct FakeEngine {
    engine: Engine,
    is_available: AtomicBool,
    fails: AtomicBool,
    searches: AtomicUsize,
}

impl FakeEngine {
    fn new(engine: Engine) -> Arc<Self> {
        let (is_available, fails) = (AtomicBool::new(true), AtomicBool::new(false));
        Arc::new(Self { engine, is_available, fails, searches: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl SearchIndex for FakeEngine {
    fn engine(&self) -> Engine {
        self.engine
    }

    fn is_available(&self) -> bool {
        self.is_available.load(Ordering::Relaxed)
    }

    fn supports(&self, query: &SearchQuery) -> bool {
        self.engine == Engine::Postgres || query.after.is_none()
    }

    async fn search(&self, query: &SearchQuery) -> Result<ChartsetPage, ReadError> {
        self.searches.fetch_add(1, Ordering::Relaxed);
        let (operation, source) = ("search chartsets", "test".into());
        match (self.engine, query.sort) {
            _ if self.fails.load(Ordering::Relaxed) => Err(ReadError::Unavailable { operation, source }),
            (Engine::Meilisearch, Sort::Length) => Err(ReadError::Unsupported { operation, source }),
            _ => Ok(ChartsetPage { items: Vec::new(), total: 0, next: None, position: None }),
        }
    }

    async fn rating_histogram(&self, _: &SearchQuery) -> Result<RatingHistogram, ReadError> {
        unreachable!()
    }
}

/// A service that caches in memory, and its engines.
struct Site {
    meilisearch: Arc<FakeEngine>,
    postgres: Arc<FakeEngine>,
    clock: Clock,
    router: Router,
}

impl Site {
    fn new() -> Self {
        let [meilisearch, postgres] = [Engine::Meilisearch, Engine::Postgres].map(FakeEngine::new);
        let clock = Clock::default();
        let config = CacheConfig { clock: clock.clone(), ..CacheConfig::default() };
        let state = BrowseState {
            engines: SearchEngines::with_fallback(
                Arc::<FakeEngine>::clone(&meilisearch),
                Arc::<FakeEngine>::clone(&postgres),
            ),
            // Nothing listens on port 1.
            store: Store::new(&StoreConfig::new("postgres://127.0.0.1:1/none".parse().unwrap())),
            cache: ResponseCache::new(Cache::new(config, CacheConnections::disabled())),
            source_pages: SourcePages {
                alpha_source_page: "https://alpha.example/sets".parse().unwrap(),
                beta_source_page: "https://beta.example/packs".parse().unwrap(),
            },
        };
        let limits = RequestLimitConfig {
            request_deadline: Duration::from_secs(5),
            max_requests_in_flight: NonZeroU32::new(16).unwrap(),
        };
        let limiter = Limiter::new(LimiterConfig::default(), RedisConnection::disabled());
        let limiter = HttpRateLimiter::new(limiter, TrustedProxies::default());
        let router = PublicApi::new(routes(state), limiter, &limits, Sampler::OFF).into_router();
        Self { meilisearch, postgres, clock, router }
    }

    /// The status of a list, and the engine that it names.
    async fn list(&self, query: &str) -> (u16, String) {
        let request = Request::get(format!("/api/chartsets?{query}")).header("host", "test");
        let response = self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let engine = response.headers().get("x-search-engine").map(|engine| engine.to_str().unwrap());
        (response.status().as_u16(), engine.unwrap_or_default().to_owned())
    }

    async fn assert_found_by(&self, engine: &str, query: &str) {
        assert_eq!(self.list(query).await, (200, engine.to_owned()), "{query}");
    }
}

#[tokio::test]
async fn searches_and_responses_are_counted_and_traced() {
    let telemetry = RecordedTelemetry::start();
    let site = Site::new();
    for (engine, sort) in [("meilisearch", "title"), ("meilisearch", "title"), ("postgres", "length")] {
        site.assert_found_by(engine, &format!("sort={sort}")).await;
    }
    site.meilisearch.fails.store(true, Ordering::Relaxed);
    let request = tracing::info_span!("request");
    site.assert_found_by("postgres", "sort=density").instrument(request.clone()).await;

    let engine = |name| ("chart_index_search_engine", name);
    let searches = |name, outcome| {
        telemetry
            .value("chart_index_search_requests_total", &[engine(name), ("chart_index_outcome", outcome)])
    };
    assert_eq!(searches("meilisearch", "success"), Some(1), "the second list was cached");
    assert_eq!(searches("meilisearch", "unsupported"), Some(1));
    assert_eq!(searches("meilisearch", "unavailable"), Some(1));
    assert_eq!(searches("meilisearch", "error"), Some(0));
    assert_eq!(searches("postgres", "success"), Some(2));
    let responses = |name, role| {
        telemetry
            .value("chart_index_search_responses_total", &[engine(name), ("chart_index_search_role", role)])
    };
    assert_eq!((responses("meilisearch", "primary"), responses("postgres", "fallback")), (Some(2), Some(2)));

    drop(request);
    let spans = telemetry.spans();
    let searches = spans.iter().filter(|span| span.name == "search");
    let engines = searches.map(|span| &*span.attributes["chart_index.search.engine"]);
    assert_eq!(engines.collect::<Vec<_>>(), ["meilisearch", "postgres"]);
}

#[tokio::test]
async fn engine_that_is_unavailable_or_does_not_support_a_query_is_not_searched() {
    // Another test counts the metrics of the process.
    let _alone = RecordedTelemetry::start();
    let site = Site::new();
    site.assert_found_by("meilisearch", "").await;
    site.assert_found_by("meilisearch", "keys=4").await;
    site.meilisearch.is_available.store(false, Ordering::Relaxed);
    site.assert_found_by("meilisearch", "").await;
    site.assert_found_by("postgres", "keys=5").await;
    site.clock.advance(Duration::from_secs(10));
    // It has to be revalidated.
    site.assert_found_by("postgres", "").await;
    site.postgres.fails.store(true, Ordering::Relaxed);
    // Neither engine responds.
    site.assert_found_by("meilisearch", "keys=4").await;
    assert_eq!(site.list("keys=6").await.0, 503);
    assert_eq!(site.list("keys=8").await.0, 400, "without a search");
    site.meilisearch.is_available.store(true, Ordering::Relaxed);
    site.postgres.fails.store(false, Ordering::Relaxed);
    site.assert_found_by("postgres", "after=start").await;
    let searches = [&site.meilisearch, &site.postgres].map(|engine| engine.searches.load(Ordering::Relaxed));
    assert_eq!(searches, [2, 5]);
}
