//! The metrics and spans of the list, with PostgreSQL as the fallback of an engine that fails.
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
use chart_index_store::{CatalogueWatch, PostgresSearch, Store, StoreConfig};
use chart_index_tests::{RecordedSpan, RecordedTelemetry, TestDatabase};
use tower::ServiceExt;
use tracing::Instrument;

/// An engine without chartsets, in which sorting by length is not supported and sorting by density fails.
struct FakeMeilisearch;

#[async_trait]
impl SearchIndex for FakeMeilisearch {
    fn engine(&self) -> Engine {
        Engine::Meilisearch
    }

    async fn search(&self, query: &SearchQuery) -> Result<ChartsetPage, ReadError> {
        let (operation, source) = ("search chartsets", "test".into());
        match query.sort {
            Sort::Length => Err(ReadError::Unsupported { operation, source }),
            Sort::Density => Err(ReadError::Unavailable { operation, source }),
            _ => Ok(ChartsetPage { items: Vec::new(), total: 0, next: None, position: None }),
        }
    }

    async fn rating_histogram(&self, _: &SearchQuery) -> Result<RatingHistogram, ReadError> {
        unreachable!()
    }
}

fn state(store: &Store) -> BrowseState {
    let cache = Cache::new(CacheConfig::default(), CacheConnections::disabled());
    let postgres = PostgresSearch::new(store.clone(), CatalogueWatch::disabled());
    BrowseState {
        engines: SearchEngines::with_fallback(Arc::new(FakeMeilisearch), Arc::new(postgres)),
        store: store.clone(),
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
    let database = TestDatabase::migrated().await;
    let store = Store::new(&StoreConfig::new(database.url().parse().unwrap()));
    let limits = RequestLimitConfig {
        request_deadline: Duration::from_secs(5),
        max_requests_in_flight: NonZeroU32::new(16).unwrap(),
    };
    let limiter = Limiter::new(LimiterConfig::default(), RedisConnection::disabled());
    let limiter = HttpRateLimiter::new(limiter, TrustedProxies::default());
    let service = PublicApi::new(routes(state(&store)), limiter, &limits, Sampler::OFF).into_router();
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
    let parents = |span: &RecordedSpan| {
        let parent = |of: &RecordedSpan| spans.iter().find(|span| span.id == of.parent);
        let above = std::iter::successors(parent(span), |&span| parent(span));
        above.map(|span| span.name.as_str()).collect::<Vec<_>>()
    };
    let searches: Vec<&RecordedSpan> = spans.iter().filter(|span| span.name == "search").collect();
    let engines = searches.iter().map(|span| &*span.attributes["chart_index.search.engine"]);
    assert_eq!(engines.collect::<Vec<_>>(), ["meilisearch", "postgres"]);
    assert!(searches.iter().all(|search| parents(search) == ["fill", "request"]), "{spans:?}");
    let statements = spans.iter().filter(|span| span.name == "search chartsets");
    let parents: Vec<_> = statements.map(parents).collect();
    assert!(!parents.is_empty() && parents.iter().all(|above| *above == ["search", "fill", "request"]));
}
