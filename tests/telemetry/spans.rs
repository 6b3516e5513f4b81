//! The spans of a request and of an ingest, as a collector receives them.

use chart_index_tests::{OtlpReceiver, ReceivedSpan};

use super::*;

/// The traces of a service that trusts the loopback address and samples only what `traceparent` asks for.
struct Traced {
    index: Index,
    collector: OtlpReceiver,
    service: Service,
}

impl Traced {
    async fn start() -> Self {
        let (index, collector) = (Index::new().await, OtlpReceiver::start());
        let service = index.serve(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url()),
            // Not 0, which turns tracing off.
            ("OTEL_TRACES_SAMPLER_ARG", "0.000001"),
            ("TRUSTED_PROXIES", "127.0.0.1"),
        ]);
        // Redis then has the script of the rate limit.
        assert_eq!(service.client().get("/api/chartsets").await.status, 200);
        Self { index, collector, service }
    }

    /// Requests a path as part of this trace.
    async fn get(&self, path: &str, trace: &str) {
        let traceparent = format!("00-{trace}-{REMOTE_SPAN}-01");
        let response = self.service.client().get_with(path, &[("traceparent", &traceparent)]).await;
        assert_eq!(response.status, 200, "{path}");
    }

    /// Stops the service, which exports what is left, and returns all spans.
    fn stop(mut self) -> Vec<ReceivedSpan> {
        self.service.terminate();
        assert_eq!(self.service.wait(), Some(0));
        self.collector.spans()
    }
}

/// The span of the proxy in front of the service.
const REMOTE_SPAN: &str = "00f067aa0ba902b7";
const TRACES: [&str; 2] = ["4bf92f3577b34da6a3ce929d0e0e4736", "4bf92f3577b34da6a3ce929d0e0e4737"];

fn of_trace<'s>(spans: &'s [ReceivedSpan], trace: &str) -> Vec<&'s ReceivedSpan> {
    spans.iter().filter(|span| span.trace_id == trace).collect()
}

/// The only span with this name, which must be a child of that one.
fn child<'s>(spans: &[&'s ReceivedSpan], parent: &str, name: &str) -> &'s ReceivedSpan {
    let named: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    assert!(named.len() == 1 && named[0].parent_id == parent, "{name} below {parent} in {spans:#?}");
    named[0]
}

fn assert_attributes(span: &ReceivedSpan, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(span.attributes.get(*name).map(String::as_str), Some(*value), "{name} of {span:#?}");
    }
}

#[tokio::test]
async fn miss_has_spans_of_redis_fill_search_and_postgresql() {
    let traced = Traced::start().await;
    traced.get(&traced.index.chart, TRACES[0]).await;
    traced.get("/api/chartsets?sort=title", TRACES[1]).await;
    let all = traced.stop();
    let spans = of_trace(&all, TRACES[0]);

    let request = child(&spans, REMOTE_SPAN, "GET /api/charts/{hash}");
    assert_eq!(request.kind, "server");
    assert_attributes(
        request,
        &[
            ("http.request.method", "GET"),
            ("http.route", "/api/charts/{hash}"),
            ("http.response.status_code", "200"),
        ],
    );
    let check = child(&spans, &request.id, "EVALSHA");
    assert_eq!(check.kind, "client");
    assert_attributes(check, &[("db.system.name", "redis"), ("db.operation.batch.size", "1")]);
    assert!(check.integers.contains("db.operation.batch.size"), "{check:?}");
    assert!(request.integers.contains("http.response.status_code"), "{request:?}");
    let fill = child(&spans, &request.id, "fill");
    assert_attributes(fill, &[("chart_index.cache.group", "lookup"), ("chart_index.outcome", "found")]);
    child(&spans, &fill.id, "GET");
    let query = child(&spans, &fill.id, "look up chart");
    assert_eq!(query.kind, "client");
    assert_attributes(query, &[("db.system.name", "postgresql"), ("db.operation.name", "look up chart")]);

    let spans = of_trace(&all, TRACES[1]);
    let request = child(&spans, REMOTE_SPAN, "GET /api/chartsets");
    let fill = child(&spans, &request.id, "fill");
    assert_attributes(fill, &[("chart_index.cache.group", "list")]);
    let search = child(&spans, &fill.id, "search");
    assert_attributes(search, &[("chart_index.search.engine", "postgres")]);
    assert!(
        spans.iter().any(|span| span.parent_id == search.id
            && span.attributes.get("db.system.name").is_some_and(|system| system == "postgresql")),
        "{spans:#?}"
    );
}

#[tokio::test]
async fn spans_contain_nothing_that_a_client_sent() {
    let (index, collector) = (Index::new().await, OtlpReceiver::start());
    let mut service = index.serve(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url()),
        ("OTEL_TRACES_SAMPLER_ARG", "1"),
        ("RUST_LOG", "info"),
    ]);
    let client = service.client();
    for path in [index.chart.as_str(), "/api/chartsets?q=needle", "/needle", "/api/charts/needle"] {
        client.get_with(path, &[("x-forwarded-for", "192.0.2.77"), ("user-agent", "needle")]).await;
    }
    service.terminate();
    service.wait();
    let (spans, log) = (format!("{:?}", collector.spans()), service.log().join("\n"));
    assert!(spans.contains("GET /api/chartsets"), "{spans}");
    let hash = index.chart.rsplit('/').next().unwrap();
    for private in ["needle", "192.0.2.77", hash] {
        assert!(!spans.contains(private) && !log.contains(private), "{private}: {spans}\n{log}");
    }
}

#[tokio::test]
async fn ingest_has_a_trace_for_each_song_folder() {
    let (database, collector, library) =
        (TestDatabase::migrated().await, OtlpReceiver::start(), Library::new());
    for number in 1..=3 {
        library.osu(&format!("alpha/{number} set/a.osu"), ChartSpec::numbered(number));
    }
    let mut ingest = indexer_command(database.url(), &["ingest", &library.argument()]);
    ingest.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()).env("OTEL_TRACES_SAMPLER_ARG", "1");
    IndexerRun::run(&mut ingest).succeeded();
    let spans = collector.spans();
    assert!(spans.iter().any(|span| span.name == "put chartset"), "a transaction is in one of the traces");
    let roots: Vec<_> = spans.iter().filter(|span| span.name == "ingest chartset").collect();
    assert_eq!(roots.len(), 3);
    for root in roots {
        assert_eq!(root.parent_id, "");
        let trace = of_trace(&spans, &root.trace_id);
        child(&trace, &root.id, "decode");
        child(&trace, &root.id, "store");
    }
}
