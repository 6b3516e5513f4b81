//! The routes over an engine that remembers its query, and a store whose database is away.

use std::sync::Mutex;

use async_trait::async_trait;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use chart_index_domain::search::{self, ChartsetPage, Generation, ListItem, SearchQuery, Sort};
use chart_index_domain::{
    Chart, ChartNumbers, Chartset, ChartsetChart, ChartsetDetail, ChartsetId, Confidence, KeyCount,
    NOTE_HASH_VERSION, NoteHash, PublicSource, ReadError, Source, SourceKind, SourceRef,
};
use chart_index_store::StoreConfig;
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use chart_index_cache::{Cache, CacheConfig, CacheConnections};
use chart_index_http::RateLimiting;
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
        lns: 56,
        density_avg: 13.413,
        density_peak: 24.0,
    };
    let chart = Chart {
        hash: NoteHash::from_bytes([0x0f; 32]),
        note_hash_version: NOTE_HASH_VERSION,
        numbers,
        rox_bytes: 4_096,
        title: "旋".into(),
        artist: "An artist".into(),
        creator: "zoe".into(),
        difficulty: "4K Another".into(),
    };
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
    }];
    ChartsetDetail {
        chartset,
        tags: vec!["piano".into(), "旋".into()],
        sources,
        charts: vec![ChartsetChart { chart, alpha_beatmap_id: Some(1_224_255) }],
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

/// An engine that holds one chartset, or is away.
#[derive(Default)]
struct Engine {
    is_away: bool,
    asked: Mutex<Vec<SearchQuery>>,
}

#[async_trait]
impl SearchIndex for Engine {
    fn engine(&self) -> search::Engine {
        search::Engine::Meilisearch
    }

    fn generation(&self) -> Generation {
        Generation::default()
    }

    async fn search(&self, query: &SearchQuery, _: Generation) -> Result<ChartsetPage, ReadError> {
        self.asked.lock().unwrap().push(query.clone());
        if self.is_away {
            return Err(ReadError::Unavailable { operation: "search chartsets", source: "away".into() });
        }
        Ok(ChartsetPage { items: vec![ListItem::new(&detail().chartset).unwrap()], total: 1 })
    }
}

async fn ask(engine: &Arc<Engine>, path: &str) -> Response {
    let source_pages = SourcePages {
        alpha_source_page: "https://alpha.example/sets".parse().unwrap(),
        beta_source_page: "https://beta.example/packs".parse().unwrap(),
    };
    // Nothing listens on port 1.
    let store = Store::new(&StoreConfig::new("postgres://nobody@127.0.0.1:1/none".parse().unwrap()));
    let search: Arc<dyn SearchIndex> = Arc::<Engine>::clone(engine);
    let request = Request::get(path).body(Body::empty()).unwrap();
    let state = BrowseState {
        search,
        stand_in: None,
        store,
        watch: CatalogueWatch::disabled(),
        answers: unlimited(),
        source_pages,
    };
    router(state).oneshot(request).await.unwrap()
}

async fn json(response: Response) -> Value {
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

#[tokio::test]
async fn the_list_asks_the_engine_and_names_it() {
    let engine = Arc::<Engine>::default();
    let response = ask(&engine, "/api/chartsets?sort=title&page=0&perPage=500&unknown=1").await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["x-search-engine"]),
        (200, &"meilisearch".parse().unwrap())
    );
    let body = json(response).await;
    assert_eq!((&body["page"], &body["perPage"], &body["total"]), (&1.into(), &60.into(), &1.into()));
    assert_eq!(body["items"][0]["downloadUrl"], "/go/chartset/a1a1a1a1a1a1a1a1");
    let asked = engine.asked.lock().unwrap();
    assert_eq!(asked.iter().map(|query| query.sort).collect::<Vec<_>>(), [Sort::Title]);
}

#[tokio::test]
async fn a_bad_parameter_is_a_400_that_names_it_and_never_reaches_the_engine() {
    let engine = Arc::<Engine>::default();
    let response = ask(&engine, "/api/chartsets?keys=8").await;
    assert_eq!(response.status(), 400);
    assert_eq!(json(response).await["parameter"], "keys");
    assert!(engine.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_engine_or_a_store_that_is_away_is_503_and_never_404() {
    let engine = Arc::new(Engine { is_away: true, ..Engine::default() });
    for path in ["/api/chartsets", "/api/chartsets/a1a1a1a1a1a1a1a1", "/go/chartset/a1a1a1a1a1a1a1a1"] {
        assert_eq!(ask(&engine, path).await.status(), 503, "{path}");
    }
}

#[tokio::test]
async fn a_malformed_id_is_404_without_asking_the_store() {
    for id in ["A1A1A1A1A1A1A1A1", "a1", "%FF", "%2F"] {
        assert_eq!(ask(&Arc::default(), &format!("/api/chartsets/{id}")).await.status(), 404, "{id}");
        assert_eq!(ask(&Arc::default(), &format!("/go/chartset/{id}")).await.status(), 404, "{id}");
    }
}

/// The limits of a service without Redis: far above what a test asks for.
fn unlimited() -> Answers {
    let redis = chart_index_redis::RedisConnection::disabled();
    let limiting =
        RateLimiting::new(Limiter::new(LimiterConfig::default(), redis), TrustedProxies::default());
    Answers::new(limiting, Cache::new(CacheConfig::default(), CacheConnections::disabled()).unwrap())
}
