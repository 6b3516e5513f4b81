//! The list over engines that count their searches.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use chart_index_domain::search::{ChartsetPage, Engine, ListItem, RatingHistogram, SearchIndex, SearchQuery};
use chart_index_domain::{
    Chart, ChartAnalysis, ChartMetadata, ChartNumbers, ChartValues, Chartset, ChartsetChart, ChartsetDetail,
    ChartsetId, Confidence, KeyCount, NoteHash, Patterns, PublicSource, Rating, ReadError, Source,
    SourceKind, SourceRef, Variant,
};
use chart_index_store::StoreConfig;
use tower::ServiceExt;

use chart_index_cache::{Cache, CacheConfig, CacheConnections, Clock};
use chart_index_http::{HttpRateLimiter, PublicApi, RequestLimitConfig, SourcePages};
use chart_index_instrumentation::Sampler;
use chart_index_ratelimit::{Limiter, LimiterConfig, TrustedProxies};

use super::*;

/// A chartset of the first game with one chart.
pub(crate) fn detail() -> ChartsetDetail {
    let keys = KeyCount::try_from(4).unwrap();
    let numbers = ChartNumbers {
        keys,
        bpm_min: 87.5,
        bpm_max: 175.0,
        bpm_main: 175.0,
        length_ms: 92_000,
        notes: 1_234,
        density_avg: 13.413,
        density_peak: 24.0,
        ..ChartNumbers::default()
    };
    let metadata = ChartMetadata {
        title: "旋".into(),
        artist: "An artist".into(),
        creator: "zoe".into(),
        difficulty: "4K Another".into(),
        ..ChartMetadata::default()
    };
    let analysis = ChartAnalysis { rating: Rating::from_hundredths(527), patterns: Patterns::default() };
    let (variant, analysis) = (Some(Variant::from_bytes([7; 32])), Some(analysis));
    let values = ChartValues { numbers, variant, analysis, rox_bytes: 4_096, curve: None };
    let chart = Chart::new(NoteHash::from_bytes([0x0f; 32]), &values, &metadata);
    let reference = SourceRef::from_number(577_617).unwrap();
    let source = PublicSource { kind: SourceKind::AlphaSet, reference: reference.clone() };
    let chartset = Chartset {
        id: ChartsetId::from_bytes([0xa1; 8]),
        title: chart.title.clone(),
        artist: chart.artist.clone(),
        creator: "zoe, amy".into(),
        source: Some(source),
        keys: vec![keys],
        bpm_min: 87.5,
        bpm_max: 175.0,
        length_min_ms: 92_000,
        length_max_ms: 92_000,
        density_max: 24.0,
        chart_count: 1,
    };
    let sources = vec![Source {
        kind: SourceKind::AlphaSet,
        reference,
        confidence: Confidence::Exact,
        checked_at_ms: 1_790_000_000_000,
        url: None,
    }];
    ChartsetDetail {
        chartset,
        updated_at_ms: 1_790_000_000_001,
        tags: vec!["piano".into(), "旋".into()],
        sources,
        charts: vec![ChartsetChart { chart, curve: None, alpha_beatmap_id: Some(1_224_255) }],
    }
}

/// The same chartset without a source.
pub(crate) fn without_source() -> ChartsetDetail {
    let mut detail = detail();
    (detail.chartset.source, detail.tags) = (None, Vec::new());
    detail.sources.clear();
    detail.charts[0].alpha_beatmap_id = None;
    detail
}

/// An engine with one chartset that counts its searches, which may fail.
struct FakeEngine {
    engine: Engine,
    is_available: AtomicBool,
    fails: AtomicBool,
    searches: AtomicUsize,
}

impl FakeEngine {
    fn new(engine: Engine, succeeds: bool) -> Arc<Self> {
        let (is_available, fails) = (AtomicBool::new(true), AtomicBool::new(!succeeds));
        Arc::new(Self { engine, is_available, fails, searches: AtomicUsize::new(0) })
    }

    fn searches(&self) -> usize {
        self.searches.load(Ordering::Relaxed)
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

    async fn search(&self, _: &SearchQuery) -> Result<ChartsetPage, ReadError> {
        self.searches.fetch_add(1, Ordering::Relaxed);
        if self.fails.load(Ordering::Relaxed) {
            return Err(ReadError::Unavailable { operation: "search chartsets", source: "test".into() });
        }
        let items = vec![ListItem::new(&detail().chartset).unwrap()];
        Ok(ChartsetPage { items, total: 1, next: None, position: None })
    }

    async fn rating_histogram(&self, _: &SearchQuery) -> Result<RatingHistogram, ReadError> {
        unreachable!()
    }
}

async fn get(cache: &ResponseCache, engines: &SearchEngines, path: &str) -> Response {
    let source_pages = SourcePages {
        alpha_source_page: "https://alpha.example/sets".parse().unwrap(),
        beta_source_page: "https://beta.example/packs".parse().unwrap(),
    };
    // Nothing listens on port 1.
    let store = Store::new(&StoreConfig::new("postgres://nobody@127.0.0.1:1/none".parse().unwrap()));
    let state = BrowseState { engines: engines.clone(), store, cache: cache.clone(), source_pages };
    let request = Request::get(path).header("host", "test").body(Body::empty()).unwrap();
    let limits = RequestLimitConfig {
        request_deadline: Duration::from_secs(5),
        max_requests_in_flight: NonZeroU32::new(16).unwrap(),
    };
    PublicApi::new(routes(state), unlimited(), &limits, Sampler::OFF)
        .into_router()
        .oneshot(request)
        .await
        .unwrap()
}

#[tokio::test]
async fn fallback_is_searched_only_when_the_primary_fails() {
    for (succeeds, expected, searches) in [(true, "meilisearch", 0), (false, "postgres", 1)] {
        let fallback = FakeEngine::new(Engine::Postgres, true);
        let engines = SearchEngines::with_fallback(
            FakeEngine::new(Engine::Meilisearch, succeeds),
            Arc::<FakeEngine>::clone(&fallback),
        );
        let response = get(&in_memory(Clock::default()), &engines, "/api/chartsets").await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["x-search-engine"]),
            (200, &expected.parse().unwrap())
        );
        assert_eq!(fallback.searches(), searches, "{expected}");
    }
}

#[tokio::test]
async fn unavailable_engine_is_not_searched() {
    let (primary, fallback) =
        (FakeEngine::new(Engine::Meilisearch, true), FakeEngine::new(Engine::Postgres, true));
    let engines =
        SearchEngines::with_fallback(Arc::<FakeEngine>::clone(&primary), Arc::<FakeEngine>::clone(&fallback));
    let clock = Clock::default();
    let cache = in_memory(clock.clone());
    let engine = async |path| {
        let response = get(&cache, &engines, path).await;
        assert_eq!(response.status(), 200, "{path}");
        response.headers()["x-search-engine"].to_str().unwrap().to_owned()
    };
    for path in ["/api/chartsets", "/api/chartsets?keys=4"] {
        assert_eq!(engine(path).await, "meilisearch");
    }
    primary.is_available.store(false, Ordering::Relaxed);
    assert_eq!(engine("/api/chartsets").await, "meilisearch", "from the cache");
    assert_eq!(engine("/api/chartsets?keys=5").await, "postgres");
    assert_eq!(fallback.searches(), 1);
    clock.advance(Duration::from_secs(10));
    assert_eq!(engine("/api/chartsets").await, "postgres", "it has to be revalidated");
    fallback.fails.store(true, Ordering::Relaxed);
    assert_eq!(engine("/api/chartsets?keys=4").await, "meilisearch", "neither engine responds");
    assert_eq!(get(&cache, &engines, "/api/chartsets?keys=6").await.status(), 503);
    assert_eq!(get(&cache, &engines, "/api/chartsets?keys=8").await.status(), 400, "without a search");
    assert_eq!((primary.searches(), fallback.searches()), (2, 4));
}

/// Rate limits far above what a test requests.
fn unlimited() -> HttpRateLimiter {
    let redis = chart_index_redis::RedisConnection::disabled();
    HttpRateLimiter::new(Limiter::new(LimiterConfig::default(), redis), TrustedProxies::default())
}

fn in_memory(clock: Clock) -> ResponseCache {
    let config = CacheConfig { clock, ..CacheConfig::default() };
    ResponseCache::new(Cache::new(config, CacheConnections::disabled()))
}
