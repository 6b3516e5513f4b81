//! Metrics of the Tokio runtime.

use std::time::Duration;

use chart_index_instrumentation::meter;
use tokio::runtime::{Handle, RuntimeMetrics};

/// Registers the metrics of this runtime.
pub(crate) fn register(runtime: &Handle) {
    let gauge = |name: &'static str,
                 unit: &'static str,
                 description: &'static str,
                 read: fn(&RuntimeMetrics) -> usize| {
        let metrics = runtime.metrics();
        meter()
            .u64_observable_gauge(name)
            .with_unit(unit)
            .with_description(description)
            .with_callback(move |observer| observer.observe(read(&metrics) as u64, &[]))
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
    let metrics = runtime.metrics();
    meter()
        .f64_observable_counter("tokio.runtime.busy_time")
        .with_unit("s")
        .with_description("Time that all worker threads were busy")
        .with_callback(move |observer| {
            let busy: Duration =
                (0..metrics.num_workers()).map(|worker| metrics.worker_total_busy_duration(worker)).sum();
            observer.observe(busy.as_secs_f64(), &[]);
        })
        .build();
}
