//! The metrics and spans of the list, with a fallback for an engine that fails.
#![expect(clippy::unwrap_used, reason = "a test fails if its setup does")]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use axum::http::Request;
use chart_index_browse::{BrowseState, SearchEngines, routes};
use chart_index_cache::{Cache, CacheConfig, CacheConnections};
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

/// An engine without chartsets. In Meilisearch, sorting by length is not supported and sorting by density
/// fails.
struct FakeEngine(Engine);

#[async_trait]
impl SearchIndex for FakeEngine {
    fn engine(&self) -> Engine {
        self.0
    }

    async fn search(&self, query: &SearchQuery) -> Result<ChartsetPage, ReadError> {
        let (operation, source) = ("search chartsets", "test".into());
        match (self.0, query.sort) {
            (Engine::Meilisearch, Sort::Length) => Err(ReadError::Unsupported { operation, source }),
            (Engine::Meilisearch, Sort::Density) => Err(ReadError::Unavailable { operation, source }),
            _ => Ok(ChartsetPage { items: Vec::new(), total: 0, next: None, position: None }),
        }
    }

    async fn rating_histogram(&self, _: &SearchQuery) -> Result<RatingHistogram, ReadError> {
        unreachable!()
    }
}

fn state() -> BrowseState {
    let cache = Cache::new(CacheConfig::default(), CacheConnections::disabled());
    let [meilisearch, postgres] =
        [Engine::Meilisearch, Engine::Postgres].map(|engine| Arc::new(FakeEngine(engine)));
    BrowseState {
        engines: SearchEngines::with_fallback(meilisearch, postgres),
        store: Store::new(&StoreConfig::new("postgres://127.0.0.1:1/none".parse().unwrap())),
        cache: ResponseCache::new(cache),
        source_pages: SourcePages {
            alpha_source_page: "https://alpha.example/sets".parse().unwrap(),
            beta_source_page: "https://beta.example/packs".parse().unwrap(),
        },
    }
}

#[tokio::test]
async fn searches_and_responses_are_counted_and_traced() {
    let telemetry = RecordedTelemetry::start();
    let limits = RequestLimitConfig {
        request_deadline: Duration::from_secs(5),
        max_requests_in_flight: NonZeroU32::new(16).unwrap(),
    };
    let limiter = Limiter::new(LimiterConfig::default(), RedisConnection::disabled());
    let limiter = HttpRateLimiter::new(limiter, TrustedProxies::default());
    let service = PublicApi::new(routes(state()), limiter, &limits, Sampler::OFF).into_router();
    let list = async |sort: &str| {
        let request = Request::get(format!("/api/chartsets?sort={sort}")).header("host", "test");
        assert_eq!(
            service.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap().status(),
            200
        );
    };
    for sort in ["title", "title", "length"] {
        list(sort).await;
    }
    let request = tracing::info_span!("request");
    list("density").instrument(request.clone()).await;

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
