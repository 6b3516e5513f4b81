//! A collector that is unavailable, or accepts connections and never responds, affects nothing.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use chart_index_tests::OtlpReceiver;

use super::*;

/// The requests of a run, each with a new span.
const REQUESTS: usize = 3_000;
/// Maximum time until a failed export is logged: that of a request to the collector, and a margin for a busy
/// machine.
const FIRST_FAILURE: Duration = Duration::from_secs(10);
/// Maximum time of a shutdown: the flush takes up to one second.
const SHUTDOWN: Duration = Duration::from_secs(4);
/// Maximum growth of the memory: the queue of spans is bounded.
const MEMORY_GROWTH_BYTES: f64 = 48e6;

#[tokio::test]
async fn unavailable_collector_affects_nothing() {
    // The port is free again when the listener is dropped.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_unaffected(&format!("http://{address}")).await;
}

#[tokio::test]
async fn collector_that_never_responds_affects_nothing() {
    // Connections wait in the backlog: they are open, and no byte is read.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_unaffected(&format!("http://{}", listener.local_addr().unwrap())).await;
}

async fn assert_unaffected(collector: &str) {
    let index = Index::new().await;
    let mut service = index.serve(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector),
        ("OTEL_TRACES_SAMPLER_ARG", "1"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ]);
    let before = memory(&service).await;
    let client = service.client();
    let mut slowest = Duration::ZERO;
    for _ in 0..REQUESTS {
        let started = Instant::now();
        assert_eq!(client.get(&index.chart).await.status, 200);
        slowest = slowest.max(started.elapsed());
    }
    // Less than any timeout of an exporter, and far more than a request takes.
    assert!(slowest < Duration::from_secs(1), "a request took {slowest:?}");
    // A machine may be faster than the first export, which fails after 3 seconds.
    within(FIRST_FAILURE, async || (failures(&service) > 0).then_some(())).await;
    let growth = memory(&service).await - before;
    assert!(growth < MEMORY_GROWTH_BYTES, "memory grew by {growth} bytes");
    let started = Instant::now();
    service.terminate();
    assert_eq!(service.wait(), Some(0));
    assert!(started.elapsed() < SHUTDOWN, "shutdown took {:?}", started.elapsed());
    assert_eq!(failures(&service), 1, "one line: {:#?}", service.log());
}

/// A collector responds with 200 also where it rejects what it received.
#[tokio::test]
async fn what_a_collector_rejects_counts_as_dropped() {
    let (index, collector) = (Index::new().await, OtlpReceiver::start_rejecting());
    let service = index.serve(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url()),
        ("OTEL_TRACES_SAMPLER_ARG", "1"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ]);
    for _ in 0..10 {
        assert_eq!(service.client().get(&index.chart).await.status, 200);
    }
    let dropped = "chart_index_telemetry_dropped_total{chart_index_signal=\"traces\"}";
    within(FIRST_FAILURE, async || {
        let spans = f64::from(u32::try_from(collector.spans().len()).unwrap());
        (spans > 10.0 && service.private_client().metric(dropped).await == Some(spans)).then_some(())
    })
    .await;
    assert_eq!(failures(&service), 1, "one line: {:#?}", service.log());
}

/// The failed exports that were logged.
fn failures(service: &Service) -> usize {
    service.log().iter().filter(|line| line.contains("telemetry export failed")).count()
}

async fn memory(service: &Service) -> f64 {
    service.private_client().metric("process_memory_usage_bytes").await.expect("the memory")
}
