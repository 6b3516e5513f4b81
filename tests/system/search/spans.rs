//! The spans of sync passes and of lists that Meilisearch answers, as a collector receives them.

use std::collections::BTreeSet;

use chart_index_tests::{OtlpReceiver, ReceivedSpan, Service};

use crate::support::Catalogue;

/// The value of an attribute, or an empty string.
fn attribute<'s>(span: &'s ReceivedSpan, name: &str) -> &'s str {
    span.attributes.get(name).map_or("", String::as_str)
}

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
    let systems: BTreeSet<_> = children.map(|span| attribute(span, "db.system.name")).collect();
    assert!(systems.is_superset(&BTreeSet::from(["postgresql", "meilisearch"])), "{systems:?}");
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn list_has_a_span_of_its_request_to_meilisearch() {
    let (catalogue, collector) = (Catalogue::synced(5).await, OtlpReceiver::start());
    let (nodes, collector_url) = (catalogue.node_urls(), collector.url());
    let variables = [
        ("MEILISEARCH_URL", nodes.as_str()),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector_url),
        ("OTEL_TRACES_SAMPLER_ARG", "1"),
    ];
    let mut service = Service::with_variables(catalogue.database.url(), &variables);
    let response = service.client().get("/api/chartsets?sort=title").await;
    assert_eq!(response.header("x-search-engine"), "meilisearch");
    service.terminate();
    assert_eq!(service.wait(), Some(0));

    let spans = collector.spans();
    let child = |parent: &ReceivedSpan, system: &str| {
        let found = spans
            .iter()
            .find(|span| span.parent_id == parent.id && attribute(span, "db.system.name") == system);
        found.unwrap_or_else(|| panic!("a child of {} in {spans:#?}", parent.name))
    };
    let request = spans.iter().find(|span| span.name == "GET /api/chartsets").expect("the request");
    let fill = child(request, "");
    assert_eq!((fill.name.as_str(), attribute(fill, "chart_index.cache.group")), ("fill", "list"));
    let search = child(fill, "");
    assert_eq!(attribute(search, "chart_index.search.engine"), "meilisearch");
    let sent = child(search, "meilisearch");
    assert_eq!((sent.name.as_str(), sent.kind.as_str()), ("search", "client"));
}
