//! Several nodes, of which some are away, frozen, behind, or without a feature.

use std::time::{Duration, Instant};

use chart_index_domain::ReadError;
use chart_index_domain::search::{Checkpoint, Generation, SearchIndex, SearchQuery};
use chart_index_search::{IndexWriter, NodeConfig, Target, Unanswerable};
use chart_index_tests::PrivateMeilisearch;

use crate::support::{Changes, config, engine, engine_with, fill, first_page, ids, numbered, titled, until};

async fn node(title: &str, checkpoint: u64) -> Option<(PrivateMeilisearch, NodeConfig)> {
    let server = PrivateMeilisearch::start()?;
    let config = config(&server);
    fill(&config, &[titled(1, title)], checkpoint).await;
    Some((server, config))
}

#[tokio::test]
async fn a_killed_node_is_left_alone_until_it_is_back() {
    let Some((first, first_config)) = node("first", 5).await else { return };
    let Some((second, second_config)) = node("second", 5).await else { return };
    let engine = engine(&[&first_config, &second_config]).await;
    let title = async || first_page(&engine).await.ok().map(|page| page.items[0].title.clone());
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
async fn a_frozen_node_costs_a_few_searches_their_time_and_no_more() {
    let Some((first, first_config)) = node("first", 5).await else { return };
    let Some((second, second_config)) = node("second", 5).await else { return };
    let engine = engine(&[&first_config, &second_config]).await;
    let favourite = first_page(&engine).await.unwrap().items[0].title.clone();
    let favoured = if favourite == "first" { &first } else { &second };
    favoured.freeze();
    let begun = Instant::now();
    let mut lost = 0;
    loop {
        match first_page(&engine).await {
            Ok(page) => break assert_ne!(page.items[0].title, favourite),
            Err(_) => lost += 1,
        }
    }
    assert!((1..=3).contains(&lost), "{lost} searches were lost");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    favoured.thaw();
    until("the node is back", async || first_page(&engine).await.unwrap().items[0].title == favourite).await;
}

#[tokio::test]
async fn a_node_that_lags_is_passed_over() {
    let Some((_behind_server, behind)) = node("behind", 5).await else { return };
    let Some((_current_server, current)) = node("current", 7).await else { return };
    let engine = engine_with(&[&behind, &current], Changes { complete_from: 6 }).await;
    for _ in 0..10 {
        assert_eq!(first_page(&engine).await.unwrap().items[0].title, "current");
    }
    assert_eq!(engine.generation(), Generation(7));
    let alone = engine_with(&[&behind], Changes { complete_from: 6 }).await;
    assert!(matches!(first_page(&alone).await, Err(ReadError::Unavailable { .. })));
    IndexWriter::new(&behind).unwrap().set_checkpoint(Target::Live, Checkpoint(6)).await.unwrap();
    until("it caught up", async || first_page(&alone).await.is_ok()).await;
    assert_eq!(alone.generation(), Generation(6));
}

#[tokio::test]
async fn a_page_never_comes_from_a_node_older_than_its_generation() {
    let Some((_server, config)) = node("only", 5).await else { return };
    // What the node lacks is too new to count as a lag, and still it is lacking.
    let engine = engine_with(&[&config], Changes::default()).await;
    assert_eq!(engine.generation(), Generation(5));
    let query = SearchQuery::default();
    assert_eq!(ids(&engine.search(&query, Generation(5)).await.unwrap()), [1]);
    assert!(matches!(engine.search(&query, Generation(6)).await, Err(ReadError::Unavailable { .. })));
}

#[tokio::test]
async fn a_node_without_an_index_is_not_asked() {
    let Some(server) = PrivateMeilisearch::start() else { return };
    let config = config(&server);
    let engine = engine(&[&config]).await;
    assert!(matches!(first_page(&engine).await, Err(ReadError::Unavailable { .. })));
    assert_eq!(engine.generation(), Generation(0));
    fill(&config, &numbered(2), 3).await;
    until("the index is found", async || first_page(&engine).await.is_ok()).await;
    assert_eq!(engine.generation(), Generation(3));
}

#[tokio::test]
async fn without_the_feature_only_parts_of_creators_are_not_answered() {
    let Some(server) = PrivateMeilisearch::start() else { return };
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
    assert_eq!(source.downcast_ref(), Some(&Unanswerable::NoContains));
    assert_eq!(ids(&first_page(&engine).await.unwrap()), [2, 1]);
    IndexWriter::new(&config).unwrap().apply_settings().await.unwrap();
    until("the feature is seen", async || engine.search(&creator, Generation::default()).await.is_ok()).await;
    assert_eq!(ids(&engine.search(&creator, Generation::default()).await.unwrap()), [2]);
}
