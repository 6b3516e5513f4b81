//! Which requests have a span, and what it records.

use opentelemetry::global;
use opentelemetry::trace::{SpanKind, Status, TracerProvider};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry;

use super::*;

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN_ID: &str = "00f067aa0ba902b7";

/// Samples nothing on its own, but what a trusted proxy samples.
fn proxy_decides() -> Sampler {
    Sampler::new(f64::MIN_POSITIVE).unwrap()
}

fn always() -> Sampler {
    Sampler::new(1.0).unwrap()
}

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE_ID}-{SPAN_ID}-{flags}")
}

/// Sends a request from this peer and returns the spans.
async fn spans(sampler: Sampler, peer: &str, path: &str, headers: &[(&str, &str)]) -> Vec<SpanData> {
    global::set_text_map_propagator(TraceContextPropagator::new());
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let _guard = tracing::subscriber::set_default(registry().with(layer));
    wait_until_recorded(async || {
        send_from(always(), "192.0.2.1", "/nothing", &[]).await;
        let is_recorded = !exporter.get_finished_spans().unwrap().is_empty();
        exporter.reset();
        is_recorded
    })
    .await;
    send_from(sampler, peer, path, headers).await;
    exporter.get_finished_spans().unwrap()
}

/// Sends a request from this peer. 10.0.0.0/8 is trusted.
async fn send_from(sampler: Sampler, peer: &str, path: &str, headers: &[(&str, &str)]) {
    let (routes, limiter) = (routes(Arc::default(), Arc::default()), rate_limiter(240, "10.0.0.0/8"));
    let app = from_peer(PublicApi::new(routes, limiter, &config(8), sampler).into_router(), peer);
    send_exactly(&app, Request::builder().uri(path).header("host", "secret-host"), headers).await;
}

/// The attributes, without those that name the source code and the thread.
fn attributes(span: &SpanData) -> Vec<String> {
    let is_ours = |name: &str| {
        !["code.", "thread.", "target", "busy_ns", "idle_ns"].iter().any(|prefix| name.starts_with(prefix))
    };
    let attributes = span.attributes.iter().filter(|attribute| is_ours(attribute.key.as_str()));
    let mut attributes: Vec<_> =
        attributes.map(|attribute| format!("{}={}", attribute.key, attribute.value)).collect();
    attributes.sort();
    attributes
}

#[tokio::test]
async fn span_has_method_route_status_and_request_id() {
    let headers =
        [("x-request-id", "one"), ("x-forwarded-for", "192.0.2.77"), ("user-agent", "secret-agent")];
    let spans = spans(always(), "10.0.0.1", "/large/secret-name?q=secret-query", &headers).await;
    let [span] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((span.name.as_ref(), &span.span_kind), ("GET /large/{name}", &SpanKind::Server));
    assert_eq!(span.status, Status::Unset);
    assert_eq!(
        attributes(span),
        [
            "chart_index.request_id=one",
            "http.request.method=GET",
            "http.response.status_code=200",
            "http.route=/large/{name}"
        ]
    );
    let everything = format!("{span:?}");
    for secret in ["secret-", "192.0.2.77"] {
        assert!(!everything.contains(secret), "{everything}");
    }
}

#[tokio::test]
async fn span_of_an_error_has_its_type() {
    let failed = spans(always(), "10.0.0.1", "/unavailable", &[("x-request-id", "one")]).await;
    assert!(matches!(failed[0].status, Status::Error { .. }), "{failed:?}");
    assert!(attributes(&failed[0]).contains(&"error.type=unavailable".to_owned()), "{failed:?}");

    let unknown = spans(always(), "10.0.0.1", "/nothing", &[("x-request-id", "one")]).await;
    assert_eq!((unknown[0].name.as_ref(), &unknown[0].status), ("GET", &Status::Unset));
    assert_eq!(
        attributes(&unknown[0]),
        [
            "chart_index.request_id=one",
            "error.type=not-found",
            "http.request.method=GET",
            "http.response.status_code=404"
        ]
    );
}

#[tokio::test]
async fn trusted_proxy_decides_and_is_the_parent() {
    let header = traceparent("01");
    let sampled = spans(proxy_decides(), "10.0.0.1", "/nothing", &[("traceparent", &header)]).await;
    let [span] = &sampled[..] else { panic!("{sampled:?}") };
    assert_eq!(span.span_context.trace_id().to_string(), TRACE_ID);
    assert_eq!((span.parent_span_id.to_string().as_str(), span.parent_span_is_remote), (SPAN_ID, true));

    let header = traceparent("00");
    let unsampled = spans(always(), "10.0.0.1", "/nothing", &[("traceparent", &header)]).await;
    assert!(unsampled.is_empty(), "{unsampled:?}");
}

#[tokio::test]
async fn traceparent_of_another_peer_is_ignored() {
    let (yes, no) = (traceparent("01"), traceparent("00"));
    let proxy = ("x-forwarded-for", "10.0.0.1");
    let forced = spans(proxy_decides(), "192.0.2.1", "/nothing", &[("traceparent", &yes), proxy]).await;
    assert!(forced.is_empty(), "{forced:?}");
    let avoided = spans(always(), "192.0.2.1", "/nothing", &[("traceparent", &no), proxy]).await;
    let [span] = &avoided[..] else { panic!("{avoided:?}") };
    assert_ne!(span.span_context.trace_id().to_string(), TRACE_ID);
    assert!(!span.parent_span_is_remote);
}

#[tokio::test]
async fn invalid_traceparent_of_a_proxy_is_ignored() {
    let valid = traceparent("01");
    let zero = format!("00-{}-{SPAN_ID}-01", "0".repeat(32));
    for headers in [
        &[("traceparent", "00-x-y-01")][..],
        &[("traceparent", "")],
        &[("traceparent", &zero)],
        &[("traceparent", &valid), ("traceparent", &valid)],
    ] {
        let unsampled = spans(proxy_decides(), "10.0.0.1", "/nothing", headers).await;
        assert!(unsampled.is_empty(), "{headers:?}: {unsampled:?}");
        let sampled = spans(always(), "10.0.0.1", "/nothing", headers).await;
        assert_eq!(sampled.len(), 1, "{headers:?}");
        assert!(!sampled[0].parent_span_is_remote, "{headers:?}");
    }
}

#[tokio::test]
async fn sampler_that_is_off_samples_nothing() {
    let header = traceparent("01");
    let spans = spans(Sampler::OFF, "10.0.0.1", "/nothing", &[("traceparent", &header)]).await;
    assert!(spans.is_empty(), "{spans:?}");
}
