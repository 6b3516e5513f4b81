//! Several nodes, of which some are away, frozen, behind, or without a feature.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chart_index_domain::ReadError;
use chart_index_domain::search::{Checkpoint, Generation, SearchIndex, SearchQuery};
use chart_index_search::{
    IndexWriter, MeilisearchEngine, NodeConfig, SearchConfig, SearchError, Target, UnsupportedQuery,
};
use chart_index_tests::PrivateMeilisearch;

use crate::support::{
    Changes, config, engine, engine_with, fill, first_page, ids, numbered, titled, titles, until,
};

/// The deadline of a search that is not expected to reach it.
const PATIENCE: Duration = Duration::from_secs(5);

async fn node(title: &str, checkpoint: u64) -> (PrivateMeilisearch, NodeConfig) {
    let server = PrivateMeilisearch::start();
    let config = config(&server);
    fill(&config, &[titled(1, title)], checkpoint).await;
    (server, config)
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn a_killed_node_is_left_alone_until_it_is_back() {
    let (first, first_config) = node("first", 5).await;
    let (second, second_config) = node("second", 5).await;
    let engine = engine(&[&first_config, &second_config]).await;
    let title = async || first_page(&engine).await.ok().map(|page| titles(&page).remove(0));
    let favourite = title().await.unwrap();
    let (favoured, other) = if favourite == "first" { (&first, &second) } else { (&second, &first) };
    favoured.kill();
    // Not one search is lost: a broken connection is no answer of a node.
    for _ in 0..20 {
        assert_ne!(title().await.unwrap(), favourite);
    }
    other.kill();
    assert!(matches!(first_page(&engine).await, Err(ReadError::Unavailable { .. })));
    favoured.restart();
    until("the node is back", async || title().await.as_ref() == Some(&favourite)).await;
    other.restart();
    assert_eq!(title().await.unwrap(), favourite);
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn a_frozen_node_costs_a_few_searches_their_time_and_no_more() {
    let (first, first_config) = node("first", 5).await;
    let (second, second_config) = node("second", 5).await;
    let deadline = Duration::from_millis(500);
    let engine = engine_with(&[&first_config, &second_config], Arc::default(), deadline).await;
    let favourite = titles(&first_page(&engine).await.unwrap()).remove(0);
    let favoured = if favourite == "first" { &first } else { &second };
    favoured.freeze();
    let begun = Instant::now();
    let mut lost = 0;
    loop {
        match first_page(&engine).await {
            Ok(page) => break assert_ne!(titles(&page)[0], favourite),
            Err(_) => lost += 1,
        }
    }
    assert!((1..=3).contains(&lost), "{lost} searches were lost");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    favoured.thaw();
    until("the node is back", async || titles(&first_page(&engine).await.unwrap())[0] == favourite).await;
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn a_node_that_lags_is_passed_over() {
    let (_behind_server, behind) = node("behind", 5).await;
    let (_current_server, current) = node("current", 7).await;
    let engine = engine_with(&[&behind, &current], Changes::complete_from(6), PATIENCE).await;
    for _ in 0..10 {
        assert_eq!(titles(&first_page(&engine).await.unwrap())[0], "current");
    }
    assert_eq!(engine.generation(), Generation(7));
    let alone = engine_with(&[&behind], Changes::complete_from(6), PATIENCE).await;
    assert!(matches!(first_page(&alone).await, Err(ReadError::Unavailable { .. })));
    IndexWriter::new(&behind).unwrap().set_checkpoint(Target::Live, Checkpoint(6)).await.unwrap();
    until("it caught up", async || first_page(&alone).await.is_ok()).await;
    assert_eq!(alone.generation(), Generation(6));
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn while_nobody_can_tell_a_node_lags_as_it_did() {
    let (_server, config) = node("only", 5).await;
    let changes = Changes::complete_from(6);
    let engine = engine_with(&[&config], Arc::clone(&changes), PATIENCE).await;
    for (complete_from, away, answers) in [
        (6, true, false),
        (0, true, false),
        (0, false, true),
        (0, true, true),
        (6, true, true),
        (6, false, false),
    ] {
        changes.complete_from.store(complete_from, Ordering::SeqCst);
        changes.away.store(away, Ordering::SeqCst);
        changes.asked_again().await;
        assert_eq!(first_page(&engine).await.is_ok(), answers, "complete from {complete_from}, away: {away}");
    }
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn searches_wait_for_their_turn_no_longer_than_their_deadline() {
    let (server, config) = node("only", 5).await;
    let mut config = SearchConfig::new(vec![config]);
    config.max_concurrent_searches = NonZeroUsize::MIN;
    config.search_timeout = Duration::from_millis(300);
    config.probe_interval = Duration::from_hours(1);
    let engine = MeilisearchEngine::connect(config, Arc::new(Changes::default())).await.unwrap();
    server.freeze();
    let begun = Instant::now();
    let (first, second) = tokio::join!(first_page(&engine), first_page(&engine));
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    let cause = |page: Result<_, ReadError>| match page {
        Err(ReadError::Unavailable { source, .. }) => *source.downcast::<SearchError>().unwrap(),
        other => panic!("{other:?}"),
    };
    assert!(matches!(cause(first), SearchError::Unreachable { .. }));
    assert!(matches!(cause(second), SearchError::AtCapacity));
    server.thaw();
    // A search that waited in vain says nothing against the node.
    until("it answers", async || first_page(&engine).await.is_ok()).await;
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn a_page_never_comes_from_a_node_older_than_its_generation() {
    let (_server, config) = node("only", 5).await;
    let engine = engine(&[&config]).await;
    assert_eq!(engine.generation(), Generation(5));
    let query = SearchQuery::default();
    assert_eq!(ids(&engine.search(&query, Generation(5)).await.unwrap()), [1]);
    assert!(matches!(engine.search(&query, Generation(6)).await, Err(ReadError::Unavailable { .. })));
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn a_node_without_an_index_is_not_asked() {
    let server = PrivateMeilisearch::start();
    let config = config(&server);
    let engine = engine(&[&config]).await;
    assert!(matches!(first_page(&engine).await, Err(ReadError::Unavailable { .. })));
    assert_eq!(engine.generation(), Generation(0));
    fill(&config, &numbered(2), 3).await;
    until("the index is found", async || first_page(&engine).await.is_ok()).await;
    assert_eq!(engine.generation(), Generation(3));
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn without_the_feature_only_parts_of_creators_are_not_answered() {
    let server = PrivateMeilisearch::start();
    let config = config(&server);
    fill(&config, &numbered(2), 3).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let features = format!("{}/experimental-features", config.url);
    let off = r#"{"containsFilter":false,"legacySearch":false}"#;
    let request = client.patch(features).header("Content-Type", "application/json").body(off);
    assert!(request.send().await.unwrap().status().is_success());
    let engine = engine(&[&config]).await;
    let creator = SearchQuery { creator: Some("creator 2".into()), ..SearchQuery::default() };
    let error = engine.search(&creator, Generation::default()).await.unwrap_err();
    let ReadError::Unavailable { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.downcast_ref(), Some(&UnsupportedQuery::ContainsFilterOff));
    assert_eq!(ids(&first_page(&engine).await.unwrap()), [2, 1]);
    IndexWriter::new(&config).unwrap().apply_settings().await.unwrap();
    until("the feature is seen", async || engine.search(&creator, Generation::default()).await.is_ok()).await;
    assert_eq!(ids(&engine.search(&creator, Generation::default()).await.unwrap()), [2]);
}
