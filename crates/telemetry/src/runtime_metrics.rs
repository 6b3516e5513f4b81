//! Metrics of Tokio runtimes.

use std::sync::Arc;
use std::time::Duration;

use chart_index_instrumentation::meter;
use opentelemetry::KeyValue;
use tokio::runtime::{Handle, RuntimeMetrics};

/// Registers the metrics of runtimes that do the same work, as the sum of theirs. The name of the work is a
/// label.
pub(crate) fn register<'a>(name: &'static str, runtimes: impl IntoIterator<Item = &'a Handle>) {
    let runtimes: Arc<[RuntimeMetrics]> = runtimes.into_iter().map(Handle::metrics).collect();
    let label = [KeyValue::new("chart_index.runtime", name)];
    let gauge = |name: &'static str,
                 unit: &'static str,
                 description: &'static str,
                 read: fn(&RuntimeMetrics) -> usize| {
        let (runtimes, label) = (Arc::clone(&runtimes), label.clone());
        meter()
            .u64_observable_gauge(name)
            .with_unit(unit)
            .with_description(description)
            .with_callback(move |observer| {
                let sum: usize = runtimes.iter().map(read).sum();
                observer.observe(sum as u64, &label);
            })
            .build();
    };
    gauge("tokio.runtime.workers", "{thread}", "Worker threads of the runtime", RuntimeMetrics::num_workers);
    gauge(
        "tokio.runtime.alive_tasks",
        "{task}",
        "Tasks that have not completed",
        RuntimeMetrics::num_alive_tasks,
    );
    gauge(
        "tokio.runtime.global_queue_depth",
        "{task}",
        "Tasks in the global queue of the runtime",
        RuntimeMetrics::global_queue_depth,
    );
    meter()
        .f64_observable_counter("tokio.runtime.busy_time")
        .with_unit("s")
        .with_description("Time that all worker threads were busy")
        .with_callback(move |observer| {
            let busy: Duration = runtimes.iter().map(busy_time).sum();
            observer.observe(busy.as_secs_f64(), &label);
        })
        .build();
}

fn busy_time(runtime: &RuntimeMetrics) -> Duration {
    (0..runtime.num_workers()).map(|worker| runtime.worker_total_busy_duration(worker)).sum()
}
