//! The requests to Meilisearch and the parsing of its responses, with exchanges recorded from a real server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chart_index_domain::search::{
    Bounds, ChartsetPage, Direction, FilterableChart, PageRequest, RatingHistogram, SearchIndex, SearchQuery,
    Sort,
};
use chart_index_domain::{ChartNumbers, KeyCount, Origin, Position, Rating, ReadError};
use chart_index_search::{
    Applied, IndexBatch, IndexWriter, MeilisearchEngine, NodeConfig, SearchConfig, SearchError, Target,
    UnsupportedQuery,
};
use chart_index_tests::PrivateMeilisearch;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::recording::{
    CONNECTION_CLOSED, Exchange, record, record_or_replay, record_or_replay_with, recorded, recording,
    replay, send,
};
use crate::support::{Changes, cause, fill, id, ids, numbered, position, rebuild, titled};

/// An engine that probes its nodes only once.
async fn engine(config: &NodeConfig) -> MeilisearchEngine {
    let mut config = SearchConfig::new(vec![config.clone()]);
    config.probe_interval = Duration::from_hours(1);
    config.reverse_from_offset = 5;
    MeilisearchEngine::connect(config, Arc::new(Changes::default())).await.unwrap()
}

async fn filled(config: &NodeConfig) {
    fill(config, &numbered(7), 41).await;
}

/// A query with filters, text and a sort, for the second page of 3.
pub(crate) fn query() -> SearchQuery {
    SearchQuery {
        text: Some("title ti".into()),
        keys: [4, 7].into_iter().map(|keys| KeyCount::try_from(keys).unwrap()).collect(),
        creator: Some("CREATOR".into()),
        bpm: Bounds { min: Some(120.5), max: Some(180.0) },
        sort: Sort::Title,
        direction: Direction::Descending,
        page: PageRequest::clamped(2, 3),
        ..SearchQuery::default()
    }
}

async fn search(config: &NodeConfig, query: &SearchQuery) -> Result<ChartsetPage, ReadError> {
    engine(config).await.search(query).await
}

#[tokio::test]
async fn search_with_filter_text_and_sort() {
    record_or_replay("search", filled, async |config| {
        let page = search(config, &query()).await.unwrap();
        assert_eq!((ids(&page), page.total, page.position), (vec![4, 3, 2], 7, Some(position(41))));
        // The recorder sorts the fields of JSON objects.
        let item: Value = serde_json::from_str(page.items[0].as_str()).unwrap();
        assert_eq!(item, json!(titled(4, "Title 4").chartset));
    })
    .await;
}

#[tokio::test]
async fn page_near_the_end_is_read_from_the_end() {
    record_or_replay("last_page", filled, async |config| {
        let query = SearchQuery { page: PageRequest::clamped(4, 2), ..SearchQuery::default() };
        let page = search(config, &query).await.unwrap();
        assert_eq!((ids(&page), page.total), (vec![1], 7));
    })
    .await;
}

#[tokio::test]
async fn page_is_read_from_the_start_when_the_total_changes() {
    let mut exchanges = recorded("last_page");
    exchanges.last_mut().unwrap().response.body["results"][1]["estimatedTotalHits"] = json!(8);
    replay(exchanges, async |config| {
        let query = SearchQuery { page: PageRequest::clamped(4, 2), ..SearchQuery::default() };
        // The third request has no recorded response.
        let cause = cause(search(config, &query).await);
        assert!(matches!(cause, SearchError::ErrorResponse { status: 599, .. }), "{cause}");
    })
    .await;
}

fn edited(edit: impl Fn(&mut Value)) -> Vec<Exchange> {
    let mut exchanges = recorded("search");
    let search = exchanges.iter_mut().find(|exchange| exchange.is_search()).unwrap();
    edit(&mut search.response.body["results"][1]);
    exchanges
}

#[tokio::test]
async fn unordered_or_malformed_page_is_an_error() {
    let out_of_order = edited(|body| body["hits"].as_array_mut().unwrap().swap(0, 1));
    let other_key = edited(|body| body["hits"][0]["id"] = json!("1"));
    let no_item = edited(|body| drop(body["hits"][0].as_object_mut().unwrap().remove("item")));
    let no_order = edited(|body| drop(body["hits"][0].as_object_mut().unwrap().remove("titleKey")));
    let no_total = edited(|body| drop(body.as_object_mut().unwrap().remove("totalHits")));
    for exchanges in [out_of_order, other_key, no_item, no_order, no_total] {
        replay(exchanges, async |config| {
            let cause = cause(search(config, &query()).await);
            assert!(matches!(cause, SearchError::InvalidResponse { .. }), "{cause}");
        })
        .await;
    }
}

async fn histogram(config: &NodeConfig) -> Result<RatingHistogram, ReadError> {
    engine(config).await.rating_histogram(&query().filters()).await
}

#[tokio::test]
async fn histogram_counts_rated_chartsets() {
    let fill_rated = async |config: &NodeConfig| {
        let mut sets = numbered(3);
        for (set, ratings) in sets.iter_mut().zip([&[524, 526, 549][..], &[526], &[]]) {
            let chart = |rating: &u16| {
                FilterableChart::new(&ChartNumbers::default(), Rating::from_hundredths(*rating), None)
            };
            set.charts = ratings.iter().map(chart).collect();
        }
        fill(config, &sets, 41).await;
    };
    record_or_replay("histogram", fill_rated, async |config| {
        let RatingHistogram { chartsets, position: found } = histogram(config).await.unwrap();
        let counted: Vec<_> = chartsets.iter().enumerate().filter(|(_, number)| **number > 0).collect();
        assert_eq!((counted, found), (vec![(20, &1), (21, &2)], Some(position(41))));
    })
    .await;
}

#[tokio::test]
async fn histogram_without_numbers_or_of_other_values_is_an_error() {
    for numbers in
        [json!(null), json!({}), json!({ "ratingBins": { "416": 1 } }), json!({ "ratingBins": { "x": 1 } })]
    {
        let mut exchanges = recorded("histogram");
        let search = exchanges.iter_mut().find(|exchange| exchange.is_search()).unwrap();
        search.response.body["results"][1]["facetDistribution"] = numbers.clone();
        replay(exchanges, async |config| {
            let cause = cause(histogram(config).await);
            assert!(matches!(cause, SearchError::InvalidResponse { .. }), "{numbers}: {cause}");
        })
        .await;
    }
}

#[tokio::test]
async fn unknown_features_are_not_used() {
    let mut exchanges = recorded("search");
    exchanges.retain(|exchange| !exchange.is_search());
    exchanges[0].response.body = json!({ "metrics": false });
    replay(exchanges, async |config| {
        let error = search(config, &query()).await.unwrap_err();
        let ReadError::Unsupported { source, .. } = error else { panic!("{error}") };
        assert_eq!(source.downcast_ref(), Some(&UnsupportedQuery::ContainsFilterOff));
    })
    .await;
    let mut exchanges = recorded("rebuild");
    exchanges.retain(|exchange| !exchange.sets_features());
    for exchange in exchanges.iter_mut().filter(|exchange| exchange.reads_features()) {
        exchange.response.body = json!({ "metrics": false });
    }
    replay(exchanges, async |config| {
        rebuild(&IndexWriter::new(config).unwrap(), &numbered(2), position(42)).await;
    })
    .await;
}

#[tokio::test]
async fn applies_changes_and_a_position() {
    record_or_replay("apply", filled, apply_changes).await;
}

async fn apply_changes(config: &NodeConfig) {
    let writer = IndexWriter::new(config).unwrap();
    let put = [titled(2, "宙の旋律 \"new\" title")];
    writer.apply(Target::Live, &IndexBatch { put: &put, delete: &[id(1), id(99)] }).await.unwrap();
    let position = Position { origin: Origin(u64::MAX), sequence: (1 << 53) - 1 };
    writer.set_position(Target::Live, position).await.unwrap();
    assert_eq!(writer.read_position().await.unwrap(), Some(position));
    assert_eq!(writer.compare(Target::Live, &[id(1), id(2)], &put).await.unwrap(), []);
    assert_eq!(writer.count(Target::Live).await.unwrap(), 6);
}

/// The document exceeds the payload limit of the node even when it is alone in a request.
#[tokio::test]
async fn too_large_chartset_is_quarantined() {
    let limit = ["--http-payload-size-limit", "8KiB"];
    record_or_replay_with("too_large", &limit, filled, async |config| {
        let writer = IndexWriter::new(config).unwrap();
        let mut put = [2, 3, 4].map(|number| titled(number, "changed"));
        put[1].keywords.tags = vec!["tag ".repeat(2_500)];
        let written = [id(2), id(3), id(4)];
        let applied = writer.apply(Target::Live, &IndexBatch { put: &put, delete: &[] }).await.unwrap();
        let [rejected] = applied.rejected[..] else { panic!("{applied:?}") };
        assert_eq!((rejected.id, rejected.bytes > 9_000), (id(3), true), "{rejected:?}");
        assert_eq!(writer.count(Target::Live).await.unwrap(), 6, "the outdated document is deleted");
        writer.record_quarantine(Target::Live, &[], &written, &applied.rejected).await.unwrap();
        let quarantined = writer.read_quarantined(Target::Live).await.unwrap();
        assert_eq!(quarantined, [rejected]);
        assert!(writer.read_position().await.unwrap().is_some());

        put[1].keywords.tags.clear();
        let applied = writer.apply(Target::Live, &IndexBatch { put: &put[1..2], delete: &[] }).await.unwrap();
        assert_eq!(applied, Applied::default());
        writer.record_quarantine(Target::Live, &quarantined, &written[1..2], &[]).await.unwrap();
        assert_eq!(writer.read_quarantined(Target::Live).await.unwrap(), []);
        assert_eq!(writer.count(Target::Live).await.unwrap(), 7);
    })
    .await;
}

#[tokio::test]
async fn failed_task_is_an_error() {
    let prepare = async |config: &NodeConfig| {
        let foreign = json!([{ "other": 1 }]);
        let path = format!("/indexes/{}/documents?primaryKey=other", config.index_uid());
        assert_eq!(send(config.url.as_str(), "POST", &path, &foreign).await.status, 202);
        let writer = IndexWriter::new(config).unwrap();
        while writer.count(Target::Live).await.unwrap_or(0) == 0 {}
    };
    record_or_replay("task_failed", prepare, async |config| {
        let put = numbered(1);
        let writer = IndexWriter::new(config).unwrap();
        let error = writer.apply(Target::Live, &IndexBatch { put: &put, delete: &[] }).await.unwrap_err();
        let SearchError::TaskFailed { status, code, .. } = error else { panic!("{error}") };
        assert_eq!((status.as_str(), code.as_str()), ("failed", "index_primary_key_already_exists"));
    })
    .await;
}

#[tokio::test]
async fn wrong_document_count_is_an_error() {
    let mut exchanges = recorded("apply");
    let done = exchanges.iter().position(|exchange| exchange.response.body["status"] == "succeeded").unwrap();
    exchanges[done].response.body["details"]["indexedDocuments"] = json!(0);
    exchanges.truncate(done + 1);
    replay(exchanges, async |config| {
        let put = [titled(2, "宙の旋律 \"new\" title")];
        let batch = IndexBatch { put: &put, delete: &[id(1), id(99)] };
        let error = IndexWriter::new(config).unwrap().apply(Target::Live, &batch).await.unwrap_err();
        assert!(matches!(error, SearchError::CountMismatch { sent: 1, done: 0, .. }), "{error}");
    })
    .await;
}

/// The node, or a proxy in front of it, restarts during a task.
#[tokio::test]
async fn reading_a_task_is_retried() {
    for failures in [&[503][..], &[CONNECTION_CLOSED, CONNECTION_CLOSED], &[502, CONNECTION_CLOSED, 500]] {
        let mut exchanges = recorded("apply");
        let read = exchanges.iter().position(Exchange::reads_task).unwrap();
        let request = exchanges[read].clone();
        for &status in failures {
            exchanges.insert(read, request.with_status(status));
        }
        replay(exchanges, apply_changes).await;
    }
}

#[tokio::test]
async fn sending_documents_is_retried() {
    let mut exchanges = recorded("apply");
    let sent = exchanges.iter().position(Exchange::sends_documents).unwrap();
    let failed = exchanges[sent].with_status(503);
    exchanges.insert(sent, failed);
    replay(exchanges, apply_changes).await;
}

#[tokio::test]
async fn rebuild_and_swap() {
    record_or_replay(
        "rebuild",
        async |_| {},
        async |config| {
            rebuild(&IndexWriter::new(config).unwrap(), &numbered(2), position(42)).await;
        },
    )
    .await;
}

/// Searches a node with a queue of one search until it rejects one.
async fn record_busy() {
    let server = PrivateMeilisearch::start_with(&["--experimental-search-queue-size=1"]);
    let config = NodeConfig::new(server.url().parse().unwrap(), None);
    fill(&config, &numbered(2_000), 41).await;
    let path = "/multi-search";
    let body = json!({ "queries": [{ "indexUid": config.index_uid(), "q": "title", "hitsPerPage": 1_000 }] });
    loop {
        let url = server.url();
        let responses = join_all((0..64).map(|_| send(&url, "POST", path, &body))).await;
        if let Some(response) = responses.into_iter().find(|response| response.status == 503) {
            return record("busy", &[Exchange::new("POST", path, body, response)]);
        }
    }
}

#[tokio::test]
async fn busy_node_is_not_searched_until_retry_after() {
    if recording() {
        record_busy().await;
        return;
    }
    let busy = recorded("busy").remove(0).response;
    assert_eq!((busy.status, busy.headers["retry-after"].as_str()), (503, "10"));
    let mut exchanges = recorded("search");
    exchanges.iter_mut().find(|exchange| exchange.is_search()).unwrap().response = busy;
    // A second search would fail: it has no recorded response.
    replay(exchanges, async |config| {
        let engine = engine(config).await;
        let start = Instant::now();
        let mut errors = Vec::new();
        for _ in 0..20 {
            errors.push(cause(engine.search(&query()).await));
        }
        let retry_after = Some(Duration::from_secs(10));
        let SearchError::ErrorResponse { status: 503, retry_after: actual, ref code, .. } = errors[0] else {
            panic!("{}", errors[0])
        };
        assert_eq!((actual, code.as_str()), (retry_after, "too_many_search_requests"));
        assert!(errors[1..].iter().all(|error| matches!(error, SearchError::NoUsableNode)));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    })
    .await;
}
