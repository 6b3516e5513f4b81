//! Writes to a real node.

use chart_index_domain::search::ListItem;
use chart_index_domain::{PublicSource, SourceKind, SourceRef};
use chart_index_search::{DifferenceKind, IndexBatch, IndexWriter, SearchError, Target};
use chart_index_tests::PrivateMeilisearch;
use serde_json::json;

use crate::support::{
    Server, config, engine, fill, first_page, id, ids, numbered, position, rebuild, titled,
};

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn documents_are_read_back_exactly() {
    let server = Server::find();
    let mut set = titled(7, "\"; \\ ' \u{2028} 宙の旋律 1e5 nan \u{1f600}");
    let reference = SourceRef::from_number(577_617).unwrap();
    set.chartset.source = Some(PublicSource { kind: SourceKind::BetaPack, reference });
    set.keywords.tags = vec!["12".into(), "a b".into(), String::new(), "x".repeat(5_000)];
    set.keywords.romanised_names = vec!["Sora".into()];
    set.chartset.length_max_ms = u32::MAX;
    set.updated_at_ms = 9_007_199_254_740_991;
    let mut sets = vec![set];
    for (number, bpm) in (8..).zip([0.001, 0.1, 174.999, 180.0, 333.333, 999_999.999, 4_503_599_627_370.497])
    {
        let mut set = titled(number, "bpm");
        (set.chartset.bpm_max, set.chartset.density_max) = (bpm, bpm);
        sets.push(set);
    }
    let writer = fill(&server.config, &sets, 3).await;
    let all: Vec<_> = sets.iter().map(|set| set.chartset.id).collect();
    assert_eq!(writer.compare(Target::Live, &all, &sets).await.unwrap(), []);
    assert_eq!(writer.count_present(Target::Live, &all).await.unwrap(), 8);
    let mut listed = writer.list_ids(Target::Live, 0, 5).await.unwrap();
    listed.extend(writer.list_ids(Target::Live, 5, 5).await.unwrap());
    listed.sort_unstable();
    assert_eq!(listed, all);
    let page = first_page(&engine(&[&server.config]).await).await.unwrap();
    assert_eq!(page.items[0], ListItem::new(&sets[0].chartset).unwrap());
    for (item, set) in page.items[1..].iter().zip(sets[1..].iter().rev()) {
        assert_eq!(*item, ListItem::new(&set.chartset).unwrap());
    }
    server.close().await;
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn position_advances_only_from_where_a_pass_began() {
    let server = Server::find();
    let writer = fill(&server.config, &numbered(3), 5).await;
    let advance = async |from, to| writer.advance_position(Target::Live, position(from), position(to)).await;
    advance(5, 8).await.unwrap();
    advance(5, 8).await.expect("an attempt after one without a response");
    // As if the node had been restarted with the data of an earlier time.
    writer.set_position(Target::Live, position(5)).await.unwrap();
    let error = advance(8, 9).await.unwrap_err();
    assert!(matches!(error, SearchError::PositionChanged { .. }), "{error}");
    assert_eq!(writer.read_position().await.unwrap(), Some(position(5)));
    server.close().await;
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn writes_are_counted_and_compared() {
    let server = Server::find();
    let writer = IndexWriter::new(&server.config).unwrap();
    assert_eq!(writer.read_position().await.unwrap(), None);
    rebuild(&writer, &numbered(3), position(5)).await;
    assert_eq!(writer.read_position().await.unwrap(), Some(position(5)));
    let put = [titled(2, "new title"), titled(9, "nine")];
    writer.apply(Target::Live, &IndexBatch { put: &put, delete: &[id(1), id(77)] }).await.unwrap();
    writer.set_position(Target::Live, position(6)).await.unwrap();
    assert_eq!(writer.read_position().await.unwrap(), Some(position(6)));
    assert_eq!(writer.count(Target::Live).await.unwrap(), 3);
    let ids = [id(1), id(2), id(3), id(9), id(10)];
    let shown = [titled(1, "one"), put[0].clone(), titled(9, "9")];
    let differences = writer.compare(Target::Live, &ids, &shown).await.unwrap();
    let differences: Vec<_> = differences.iter().map(|difference| (difference.id, difference.kind)).collect();
    let expected = [
        (id(1), DifferenceKind::Missing),
        (id(3), DifferenceKind::NotShown),
        (id(9), DifferenceKind::ContentDiffers),
    ];
    assert_eq!(differences, expected);
    assert_eq!(writer.count_present(Target::Live, &ids).await.unwrap(), 3);
    writer.apply(Target::Live, &IndexBatch::default()).await.unwrap();
    server.close().await;
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn missing_index_is_not_created() {
    let server = Server::find();
    let writer = IndexWriter::new(&server.config).unwrap();
    let put = numbered(1);
    let error = writer.apply(Target::Live, &IndexBatch { put: &put, delete: &[] }).await.unwrap_err();
    assert!(error.is_index_not_found(), "{error}");
    let error = writer.finish_rebuild().await.unwrap_err();
    assert!(error.is_index_not_found(), "{error}");
    server.close().await;
}

/// The node responds and closes the connection before it has read such a request.
#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn too_large_request_is_halved() {
    let server = PrivateMeilisearch::start_with(&["--http-payload-size-limit", "8KiB"]);
    let writer = fill(&config(&server), &numbered(3), 1).await;
    let mut put = numbered(12);
    for set in &mut put[2..8] {
        set.keywords.tags = vec!["tag ".repeat(400_000)];
    }
    let applied = writer.apply(Target::Live, &IndexBatch { put: &put, delete: &[] }).await.unwrap();
    let rejected: Vec<_> = applied.rejected.iter().map(|rejected| rejected.id).collect();
    assert_eq!(rejected, [3, 4, 5, 6, 7, 8].map(id));
    assert_eq!(writer.count(Target::Live).await.unwrap(), 6);
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn interrupted_rebuild_leaves_nothing_behind() {
    let server = Server::find();
    let writer = fill(&server.config, &numbered(3), 1).await;
    writer.begin_rebuild().await.unwrap();
    writer.apply(Target::Rebuild, &IndexBatch { put: &numbered(50), delete: &[] }).await.unwrap();
    assert_eq!(writer.count(Target::Live).await.unwrap(), 3);
    rebuild(&writer, &numbered(4), position(2)).await;
    assert_eq!(writer.count(Target::Live).await.unwrap(), 4);
    assert!(writer.count(Target::Rebuild).await.unwrap_err().is_index_not_found());
    server.close().await;
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn changed_settings_are_found_and_restored() {
    let server = Server::find();
    let writer = fill(&server.config, &numbered(1), 1).await;
    assert_eq!(writer.find_setting_differences().await.unwrap(), []);
    let client = chart_index_tests::http_client_builder().build().unwrap();
    let settings = format!("{}/indexes/{}/settings", server.config.url, server.config.index_uid());
    for (route, other) in [
        (settings.clone(), json!({ "searchCutoffMs": 1 })),
        (settings, json!({ "rankingRules": ["words"] })),
        (format!("{}/experimental-features", server.config.url), json!({ "legacySearch": false })),
    ] {
        let request = client.patch(route).header("Content-Type", "application/json").body(other.to_string());
        assert!(request.send().await.unwrap().status().is_success());
        while writer.find_setting_differences().await.unwrap().is_empty() {}
        rebuild(&writer, &numbered(1), position(2)).await;
        assert_eq!(writer.find_setting_differences().await.unwrap(), [], "{other}");
    }
    server.close().await;
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn finished_tasks_are_pruned() {
    let server = Server::find();
    let writer = fill(&server.config, &numbered(1), 1).await;
    let tasks = format!("{}/tasks?indexUids={}_rebuild", server.config.url, server.config.index_uid());
    let client = chart_index_tests::http_client_builder().build().unwrap();
    let total = async || {
        let body = client.get(&tasks).send().await.unwrap().bytes().await.unwrap();
        serde_json::from_slice::<serde_json::Value>(&body).unwrap()["total"].as_u64().unwrap()
    };
    writer.prune_tasks(std::time::Duration::from_hours(1)).await.unwrap();
    assert!(total().await > 0);
    writer.prune_tasks(std::time::Duration::ZERO).await.unwrap();
    assert_eq!(total().await, 0);
    server.close().await;
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn searches_never_see_a_rebuild_in_progress() {
    let server = Server::find();
    let writer = fill(&server.config, &numbered(40), 1).await;
    let engine = engine(&[&server.config]).await;
    let rebuilding = async {
        for sequence in 2..6 {
            rebuild(&writer, &numbered(40), position(sequence)).await;
        }
    };
    let mut rebuilding = std::pin::pin!(rebuilding);
    let newest: Vec<u64> = (11..=40).rev().collect();
    let mut searches = 0;
    loop {
        tokio::select! {
            biased;
            () = &mut rebuilding => break,
            page = first_page(&engine) => {
                let page = page.unwrap();
                assert_eq!((ids(&page), page.total), (newest.clone(), 40));
                searches += 1;
            }
        }
    }
    assert!(searches > 20, "only {searches} searches while four rebuilds ran");
    server.close().await;
}
