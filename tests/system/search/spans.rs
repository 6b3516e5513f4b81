//! The spans of sync passes, as a collector receives them.

use std::collections::BTreeSet;

use chart_index_tests::OtlpReceiver;

use crate::support::Catalogue;

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn sync_pass_has_spans_of_postgresql_and_meilisearch() {
    let (catalogue, collector) = (Catalogue::synced(5).await, OtlpReceiver::start());
    catalogue.write_sets(5, "changed");
    catalogue.ingest();
    let mut sync = catalogue.command(&["sync"]);
    sync.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()).env("OTEL_TRACES_SAMPLER_ARG", "1");
    assert!(sync.status().unwrap().success());

    let spans = collector.spans();
    let passes: Vec<_> = spans.iter().filter(|span| span.name == "sync pass").collect();
    assert!(!passes.is_empty(), "{spans:#?}");
    let writes = spans.iter().find(|span| span.name == "write").expect("a span of the upload");
    let pass =
        passes.iter().find(|pass| pass.trace_id == writes.trace_id).expect("the upload is part of a pass");
    assert_eq!(pass.parent_id, "", "a pass is a root span");
    let children = spans.iter().filter(|span| span.parent_id == pass.id);
    let systems = children.filter_map(|span| span.attributes.get("db.system.name"));
    let systems: BTreeSet<_> = systems.map(String::as_str).collect();
    assert!(systems.is_superset(&BTreeSet::from(["postgresql", "meilisearch"])), "{systems:?}");
}
