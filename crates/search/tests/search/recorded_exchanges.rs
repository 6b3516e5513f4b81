//! What is sent to Meilisearch and how its answers are read, by exchanges that were recorded from a real server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chart_index_domain::search::{
    Bounds, ChartsetPage, Checkpoint, Direction, Generation, HistoryDigest, PageRequest, RecordedCheckpoint,
    SearchIndex, SearchQuery, Sort,
};
use chart_index_domain::{KeyCount, ReadError};
use chart_index_search::{
    Applied, Batch, FORMAT, IndexWriter, MeilisearchEngine, NodeConfig, SearchConfig, SearchError, Target,
    UnsupportedQuery,
};
use chart_index_tests::PrivateMeilisearch;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::exchanges::{BROKEN, Exchange, ask, contract, contract_with, record, recorded, recording, replay};
use crate::support::{Changes, fill, id, ids, numbered, rebuild, titled};

/// An engine that asks nodes how they are only once.
async fn engine(config: &NodeConfig) -> MeilisearchEngine {
    let mut config = SearchConfig::new(vec![config.clone()]);
    config.probe_interval = Duration::from_hours(1);
    config.reverse_from_offset = 5;
    MeilisearchEngine::connect(config, Arc::new(Changes::default())).await.unwrap()
}

async fn filled(config: &NodeConfig) {
    fill(config, &numbered(7), 41).await;
}

/// Filter, text and order at once: the second page of 3.
fn query() -> SearchQuery {
    SearchQuery {
        text: Some("\"title\" -宙 ti".into()),
        keys: [4, 7].into_iter().map(|keys| KeyCount::try_from(keys).unwrap()).collect(),
        creator: Some("\"Creator".into()),
        bpm: Bounds { min: Some(120.5), max: Some(180.0) },
        sort: Sort::Title,
        direction: Direction::Descending,
        page: PageRequest::clamped(2, 3),
        ..SearchQuery::default()
    }
}

/// The same without what finds nothing.
pub(crate) fn finding_query() -> SearchQuery {
    SearchQuery { text: Some("title ti".into()), creator: Some("CREATOR".into()), ..query() }
}

async fn search(config: &NodeConfig, query: &SearchQuery) -> Result<ChartsetPage, ReadError> {
    engine(config).await.search(query, Generation(41)).await
}

#[tokio::test]
async fn a_search_with_filter_text_and_sort() {
    contract("search", filled, async |config| {
        let page = search(config, &finding_query()).await.unwrap();
        assert_eq!((ids(&page), page.total), (vec![4, 3, 2], 7));
        // The recorder sorts the fields of what it writes down.
        let item: Value = serde_json::from_str(page.items[0].as_str()).unwrap();
        assert_eq!(item, json!(titled(4, "Title 4").chartset));
    })
    .await;
}

#[tokio::test]
async fn a_search_that_finds_nothing() {
    contract("nothing_found", filled, async |config| {
        let page = search(config, &query()).await.unwrap();
        assert_eq!(page, ChartsetPage { items: Vec::new(), total: 0 });
    })
    .await;
}

#[tokio::test]
async fn a_page_past_the_last_has_the_true_total() {
    contract("past_the_last", filled, async |config| {
        let query = SearchQuery { page: PageRequest::clamped(i64::MAX, 60), ..SearchQuery::default() };
        let page = search(config, &query).await.unwrap();
        assert_eq!(page, ChartsetPage { items: Vec::new(), total: 7 });
    })
    .await;
}

#[tokio::test]
async fn a_page_near_the_end_is_approached_from_there() {
    contract("last_page", filled, async |config| {
        let query = SearchQuery { page: PageRequest::clamped(4, 2), ..SearchQuery::default() };
        let page = search(config, &query).await.unwrap();
        assert_eq!((ids(&page), page.total), (vec![1], 7));
    })
    .await;
}

#[tokio::test]
async fn a_list_that_changes_between_two_questions_is_asked_for_from_its_start() {
    if recording() {
        return;
    }
    let mut exchanges = recorded("last_page");
    exchanges.last_mut().unwrap().answer.body["estimatedTotalHits"] = json!(8);
    replay(exchanges, async |config| {
        let query = SearchQuery { page: PageRequest::clamped(4, 2), ..SearchQuery::default() };
        // The third question, which the record has no answer to.
        let error = search(config, &query).await.unwrap_err();
        let ReadError::Unavailable { source, .. } = error else { panic!("{error}") };
        assert!(
            matches!(source.downcast_ref(), Some(SearchError::ErrorResponse { status: 599, .. })),
            "{source}"
        );
    })
    .await;
}

fn edited(edit: impl Fn(&mut Value)) -> Vec<Exchange> {
    let mut exchanges = recorded("search");
    let search = exchanges.iter_mut().find(|exchange| exchange.is_search()).unwrap();
    edit(&mut search.answer.body);
    exchanges
}

#[tokio::test]
async fn a_page_that_is_out_of_order_or_incomplete_is_not_served() {
    if recording() {
        return;
    }
    let out_of_order = edited(|body| body["hits"].as_array_mut().unwrap().swap(0, 1));
    let incomplete = edited(|body| drop(body["hits"].as_array_mut().unwrap().pop()));
    let other_total = edited(|body| body["totalHits"] = json!(5));
    let other_key = edited(|body| body["hits"][0]["id"] = json!("1"));
    let no_item = edited(|body| drop(body["hits"][0].as_object_mut().unwrap().remove("item")));
    let no_order = edited(|body| drop(body["hits"][0].as_object_mut().unwrap().remove("titleKey")));
    let no_total = edited(|body| drop(body.as_object_mut().unwrap().remove("totalHits")));
    for exchanges in [out_of_order, incomplete, other_total, other_key, no_item, no_order, no_total] {
        replay(exchanges, async |config| {
            let error = search(config, &finding_query()).await.unwrap_err();
            let ReadError::Unavailable { source, .. } = error else { panic!("{error}") };
            assert!(matches!(source.downcast_ref(), Some(SearchError::InvalidResponse { .. })), "{source}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_node_that_has_not_heard_of_a_feature_is_not_asked_for_it() {
    if recording() {
        return;
    }
    let mut exchanges = recorded("search");
    exchanges.retain(|exchange| !exchange.is_search());
    exchanges[0].answer.body = json!({ "metrics": false });
    replay(exchanges, async |config| {
        let error = search(config, &finding_query()).await.unwrap_err();
        let ReadError::Unavailable { source, .. } = error else { panic!("{error}") };
        assert_eq!(source.downcast_ref(), Some(&UnsupportedQuery::ContainsFilterOff));
    })
    .await;
    let mut exchanges = recorded("rebuild");
    exchanges.retain(|exchange| !exchange.switches_features());
    for exchange in exchanges.iter_mut().filter(|exchange| exchange.tells_features()) {
        exchange.answer.body = json!({ "metrics": false });
    }
    replay(exchanges, async |config| rebuild(&IndexWriter::new(config).unwrap(), &numbered(2), 42).await)
        .await;
}

#[tokio::test]
async fn a_node_without_an_index_says_so() {
    contract(
        "no_index",
        async |_| {},
        async |config| {
            let writer = IndexWriter::new(config).unwrap();
            assert_eq!(writer.state().await.unwrap(), None);
            let put = numbered(1);
            let error = writer.apply(Target::Live, &Batch { put: &put, delete: &[] }).await.unwrap_err();
            assert!(error.is_index_not_found(), "{error}");
        },
    )
    .await;
}

#[tokio::test]
async fn changes_and_a_checkpoint() {
    contract("apply", filled, apply_changes).await;
}

async fn apply_changes(config: &NodeConfig) {
    let writer = IndexWriter::new(config).unwrap();
    let put = [titled(2, "宙の旋律 \"new\" title")];
    writer.apply(Target::Live, &Batch { put: &put, delete: &[id(1), id(99)] }).await.unwrap();
    let recorded =
        RecordedCheckpoint { checkpoint: Checkpoint(u64::MAX), history: Some(HistoryDigest(0xa1)) };
    writer.set_checkpoint(Target::Live, recorded).await.unwrap();
    let state = writer.state().await.unwrap().unwrap();
    assert_eq!((state.recorded(), state.format), (recorded, FORMAT));
    assert_eq!(writer.compare(Target::Live, &[id(1), id(2)], &put).await.unwrap(), []);
    assert_eq!(writer.count(Target::Live).await.unwrap(), 6);
}

/// The document is beyond the limit of the node, alone in a request as well.
#[tokio::test]
async fn a_set_that_is_too_large_is_left_out_and_recorded() {
    let limit = ["--http-payload-size-limit", "8KiB"];
    contract_with("too_large", &limit, filled, async |config| {
        let writer = IndexWriter::new(config).unwrap();
        let mut put = [2, 3, 4].map(|number| titled(number, "changed"));
        put[1].keywords.tags = vec!["tag ".repeat(2_500)];
        let written = [id(2), id(3), id(4)];
        let applied = writer.apply(Target::Live, &Batch { put: &put, delete: &[] }).await.unwrap();
        let [refused] = applied.rejected[..] else { panic!("{applied:?}") };
        assert_eq!((refused.id, refused.bytes > 9_000), (id(3), true), "{refused:?}");
        assert_eq!(writer.count(Target::Live).await.unwrap(), 6, "what it held of the set is out of date");
        writer.record_quarantine(Target::Live, &[], &written, &applied.rejected).await.unwrap();
        let quarantined = writer.quarantined(Target::Live).await.unwrap();
        assert_eq!(quarantined, [refused]);
        assert!(writer.state().await.unwrap().is_some());

        put[1].keywords.tags.clear();
        let applied = writer.apply(Target::Live, &Batch { put: &put[1..2], delete: &[] }).await.unwrap();
        assert_eq!(applied, Applied::default());
        writer.record_quarantine(Target::Live, &quarantined, &written[1..2], &[]).await.unwrap();
        assert_eq!(writer.quarantined(Target::Live).await.unwrap(), []);
        assert_eq!(writer.count(Target::Live).await.unwrap(), 7);
    })
    .await;
}

#[tokio::test]
async fn a_task_that_fails() {
    let prepare = async |config: &NodeConfig| {
        let foreign = json!([{ "other": 1 }]);
        let path = "/indexes/chartsets/documents?primaryKey=other";
        assert_eq!(ask(config.url.as_str(), "POST", path, &foreign).await.status, 202);
        let writer = IndexWriter::new(config).unwrap();
        while writer.count(Target::Live).await.unwrap_or(0) == 0 {}
    };
    contract("task_failed", prepare, async |config| {
        let put = numbered(1);
        let writer = IndexWriter::new(config).unwrap();
        let error = writer.apply(Target::Live, &Batch { put: &put, delete: &[] }).await.unwrap_err();
        let SearchError::TaskFailed { status, code, .. } = error else { panic!("{error}") };
        assert_eq!((status.as_str(), code.as_str()), ("failed", "index_primary_key_already_exists"));
    })
    .await;
}

#[tokio::test]
async fn a_count_that_is_not_what_was_sent_is_an_error() {
    if recording() {
        return;
    }
    let mut exchanges = recorded("apply");
    let done = exchanges.iter().position(|exchange| exchange.answer.body["status"] == "succeeded").unwrap();
    exchanges[done].answer.body["details"]["indexedDocuments"] = json!(0);
    exchanges.truncate(done + 1);
    replay(exchanges, async |config| {
        let put = [titled(2, "宙の旋律 \"new\" title")];
        let batch = Batch { put: &put, delete: &[id(1), id(99)] };
        let error = IndexWriter::new(config).unwrap().apply(Target::Live, &batch).await.unwrap_err();
        assert!(matches!(error, SearchError::CountMismatch { sent: 1, done: 0, .. }), "{error}");
    })
    .await;
}

/// A node that restarts, or a proxy before it, while a task is waited for.
#[tokio::test]
async fn a_task_is_looked_at_again_after_a_transient_error() {
    if recording() {
        return;
    }
    for failures in [&[503][..], &[BROKEN, BROKEN], &[502, BROKEN, 500]] {
        let mut exchanges = recorded("apply");
        let look = exchanges.iter().position(Exchange::is_look_at_task).unwrap();
        let looked = exchanges[look].clone();
        for &status in failures {
            exchanges.insert(look, looked.answered_by(status));
        }
        replay(exchanges, apply_changes).await;
    }
}

#[tokio::test]
async fn documents_are_sent_again_after_a_transient_error() {
    if recording() {
        return;
    }
    let mut exchanges = recorded("apply");
    let sent = exchanges.iter().position(Exchange::sends_documents).unwrap();
    let again = exchanges[sent].answered_by(503);
    exchanges.insert(sent, again);
    replay(exchanges, apply_changes).await;
}

#[tokio::test]
async fn a_rebuild_and_its_swap() {
    contract(
        "rebuild",
        async |_| {},
        async |config| {
            rebuild(&IndexWriter::new(config).unwrap(), &numbered(2), 42).await;
        },
    )
    .await;
}

/// A node with a queue of one search, asked until it refuses one.
async fn record_busy() {
    let server = PrivateMeilisearch::start_with(&["--experimental-search-queue-size=1"]);
    let mut config = NodeConfig::new(server.url().parse().unwrap(), None);
    fill(&config, &numbered(2_000), 41).await;
    config.index.push_str("/search");
    let path = format!("/indexes/{}", config.index);
    let body = json!({ "q": "title", "hitsPerPage": 1_000 });
    loop {
        let url = server.url();
        let answers = join_all((0..64).map(|_| ask(&url, "POST", &path, &body))).await;
        if let Some(answer) = answers.into_iter().find(|answer| answer.status == 503) {
            return record("busy", &[Exchange::new("POST", &path, body, answer)]);
        }
    }
}

#[tokio::test]
async fn a_busy_node_is_left_alone_for_as_long_as_it_says() {
    if recording() {
        record_busy().await;
        return;
    }
    let busy = recorded("busy").remove(0).answer;
    assert_eq!((busy.status, busy.headers["retry-after"].as_str()), (503, "10"));
    let mut exchanges = recorded("search");
    exchanges.iter_mut().find(|exchange| exchange.is_search()).unwrap().answer = busy;
    // Nothing is asked a second time: the record would have no answer to it.
    replay(exchanges, async |config| {
        let engine = engine(config).await;
        let begun = Instant::now();
        let mut refused = Vec::new();
        for _ in 0..20 {
            let error = engine.search(&finding_query(), Generation(41)).await.unwrap_err();
            let ReadError::Unavailable { source, .. } = error else { panic!("{error}") };
            refused.push(source.downcast::<SearchError>().unwrap());
        }
        let retry_after = Some(Duration::from_secs(10));
        let SearchError::ErrorResponse { status: 503, retry_after: told, ref code, .. } = *refused[0] else {
            panic!("{}", refused[0])
        };
        assert_eq!((told, code.as_str()), (retry_after, "too_many_search_requests"));
        assert!(refused[1..].iter().all(|error| matches!(**error, SearchError::NoUsableNode)));
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    })
    .await;
}
