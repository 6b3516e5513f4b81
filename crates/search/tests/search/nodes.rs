//! Several nodes, some of them unavailable, frozen, lagging, or without a feature.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chart_index_domain::search::{SearchIndex, SearchQuery};
use chart_index_domain::{Origin, Position, ReadError};
use chart_index_search::{
    IndexWriter, MeilisearchEngine, NodeConfig, SearchConfig, SearchError, Target, UnsupportedQuery,
};
use chart_index_tests::PrivateMeilisearch;
use futures_util::future::join_all;

use crate::support::{
    Changes, SERVER, cause, config, engine, engine_with, fill, first_page, ids, numbered, position, rebuild,
    titled, titles, until,
};

/// A search timeout that is not reached.
const LONG_TIMEOUT: Duration = Duration::from_secs(5);

async fn node(title: &str, sequence: u64) -> (PrivateMeilisearch, NodeConfig) {
    let server = PrivateMeilisearch::start();
    let config = config(&server);
    fill(&config, &[titled(1, title)], sequence).await;
    (server, config)
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn killed_node_is_skipped_until_it_restarts() {
    let (first, first_config) = node("first", 5).await;
    let (second, second_config) = node("second", 5).await;
    let engine = engine(&[&first_config, &second_config]).await;
    let title = async || first_page(&engine).await.ok().map(|page| titles(&page).remove(0));
    let preferred_title = title().await.unwrap();
    let (preferred, other) = if preferred_title == "first" { (&first, &second) } else { (&second, &first) };
    preferred.kill();
    // No search fails: after a broken connection the other node is searched.
    for _ in 0..20 {
        assert_ne!(title().await.unwrap(), preferred_title);
    }
    other.kill();
    assert!(matches!(first_page(&engine).await, Err(ReadError::Unavailable { .. })));
    preferred.restart();
    until("the node is back", async || title().await.as_ref() == Some(&preferred_title)).await;
    other.restart();
    assert_eq!(title().await.unwrap(), preferred_title);
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn lagging_node_is_skipped() {
    let (_behind_server, behind) = node("behind", 5).await;
    let (_current_server, current) = node("current", 7).await;
    let engine = engine_with(&[&behind, &current], Changes::complete_from(6), LONG_TIMEOUT).await;
    for _ in 0..10 {
        assert_eq!(titles(&first_page(&engine).await.unwrap())[0], "current");
    }
    let without_other = engine_with(&[&behind], Changes::complete_from(6), LONG_TIMEOUT).await;
    assert!(matches!(first_page(&without_other).await, Err(ReadError::Unavailable { .. })));
    IndexWriter::new(&behind).unwrap().set_position(Target::Live, position(6)).await.unwrap();
    until("it caught up", async || first_page(&without_other).await.is_ok()).await;
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn lag_is_unchanged_while_changes_are_unavailable() {
    let (_server, config) = node("only", 5).await;
    let changes = Changes::complete_from(6);
    let engine = engine_with(&[&config], Arc::clone(&changes), LONG_TIMEOUT).await;
    for (complete_from, unavailable, is_usable) in [
        (6, true, false),
        (0, true, false),
        (0, false, true),
        (0, true, true),
        (6, true, true),
        (6, false, false),
    ] {
        changes.complete_from.store(complete_from, Ordering::SeqCst);
        changes.unavailable.store(unavailable, Ordering::SeqCst);
        changes.next_call().await;
        assert_eq!(
            first_page(&engine).await.is_ok(),
            is_usable,
            "complete from {complete_from}, unavailable: {unavailable}"
        );
    }
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn waiting_for_a_permit_is_part_of_the_timeout() {
    let (server, config) = node("only", 5).await;
    let mut config = SearchConfig::new(vec![config]);
    config.max_concurrent_searches = NonZeroUsize::MIN;
    config.search_timeout = Duration::from_secs(2);
    config.probe_interval = Duration::from_hours(1);
    let engine = MeilisearchEngine::connect(config, Arc::new(Changes::default())).await.unwrap();
    server.freeze();
    // Each search that starts later may get the permit when the one before times out, just before it times out
    // itself.
    let start = Instant::now();
    let searches = (0..4).map(|number| {
        let engine = &engine;
        async move {
            tokio::time::sleep(Duration::from_millis(100) * number).await;
            first_page(engine).await
        }
    });
    let results = join_all(searches).await;
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    let errors: Vec<_> = results.into_iter().map(cause).collect();
    let [SearchError::Unreachable { .. }, rest @ ..] = &errors[..] else { panic!("{errors:?}") };
    assert!(rest.iter().all(|error| matches!(error, SearchError::AtCapacity)), "{errors:?}");
    server.thaw();
    // Searches that mostly waited for the permit do not count as failures of the node.
    until("it is searched", async || first_page(&engine).await.is_ok()).await;
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn node_with_the_least_lag_is_preferred() {
    let (_behind_server, behind) = node("behind", 5).await;
    let (_current_server, current) = node("current", 6).await;
    let changes = Changes::complete_from(6);
    changes.oldest_age_ms.store(1, Ordering::SeqCst);
    // Which of them it prefers is random.
    let preferred = loop {
        let engine = engine_with(&[&behind, &current], Arc::clone(&changes), LONG_TIMEOUT).await;
        if titles(&first_page(&engine).await.unwrap())[0] == "behind" {
            break engine;
        }
    };
    changes.oldest_age_ms.store(10_000, Ordering::SeqCst);
    until("the other is searched", async || titles(&first_page(&preferred).await.unwrap())[0] == "current")
        .await;
    IndexWriter::new(&behind).unwrap().set_position(Target::Live, position(6)).await.unwrap();
    until("it caught up", async || titles(&first_page(&preferred).await.unwrap())[0] == "behind").await;
}

/// A node that is restored to an older state is used as far as it does not lag too much, and one that was
/// rebuilt from a database of another server at once, although its number is lower.
#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn node_with_an_earlier_position_is_used_again() {
    let (_server, config) = node("before", 50).await;
    let changes = Changes::complete_from(0);
    let engine = engine_with(&[&config], Arc::clone(&changes), LONG_TIMEOUT).await;
    let found = async || {
        let page = first_page(&engine).await.ok()?;
        Some((titles(&page).remove(0), page.position.unwrap()))
    };
    assert_eq!(found().await, Some(("before".to_owned(), position(50))));
    let writer = IndexWriter::new(&config).unwrap();
    for (title, origin, expected) in [("restored", SERVER, position(5)), ("rebuilt", Origin(8), position(4))]
    {
        changes.complete_from.store(60, Ordering::SeqCst);
        until("it lags", async || first_page(&engine).await.is_err()).await;
        rebuild(&writer, &[titled(1, title)], Position { origin, ..expected }).await;
        changes.complete_from.store(0, Ordering::SeqCst);
        until("it is used again", async || found().await == Some((title.to_owned(), expected))).await;
    }
}

/// A page of an index that was put back to an earlier state since the last probe is not served: it would be
/// cached with a position whose changes it lacks.
#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn index_that_was_put_back_since_the_last_probe_is_not_searched() {
    let (_server, node_config) = node("newer", 50).await;
    let mut config = SearchConfig::new(vec![node_config.clone()]);
    config.probe_interval = Duration::from_hours(1);
    let engine = MeilisearchEngine::connect(config, Changes::complete_from(0)).await.unwrap();
    let writer = IndexWriter::new(&node_config).unwrap();
    rebuild(&writer, &[titled(1, "newest")], position(60)).await;
    let page = first_page(&engine).await.unwrap();
    assert_eq!((titles(&page).remove(0), page.position), ("newest".to_owned(), Some(position(60))));
    rebuild(&writer, &[titled(1, "older")], position(40)).await;
    let found = first_page(&engine).await.map(|page| (titles(&page), page.position));
    assert!(matches!(found, Err(ReadError::Unavailable { .. })), "{found:?}");
    assert!(!engine.is_available(), "a probe has to succeed first");
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn without_contains_filter_only_creators_are_unsupported() {
    let server = PrivateMeilisearch::start();
    let config = config(&server);
    fill(&config, &numbered(2), 3).await;
    let client = chart_index_tests::http_client_builder().build().unwrap();
    let features = format!("{}/experimental-features", config.url);
    let off = r#"{"containsFilter":false,"legacySearch":false}"#;
    let request = client.patch(features).header("Content-Type", "application/json").body(off);
    assert!(request.send().await.unwrap().status().is_success());
    let engine = engine(&[&config]).await;
    let creator = SearchQuery { creator: Some("creator 2".into()), ..SearchQuery::default() };
    let error = engine.search(&creator).await.unwrap_err();
    let ReadError::Unsupported { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.downcast_ref(), Some(&UnsupportedQuery::ContainsFilterOff));
    assert_eq!(ids(&first_page(&engine).await.unwrap()), [2, 1]);
    rebuild(&IndexWriter::new(&config).unwrap(), &numbered(2), position(4)).await;
    until("the feature is seen", async || engine.search(&creator).await.is_ok()).await;
    assert_eq!(ids(&engine.search(&creator).await.unwrap()), [2]);
}
