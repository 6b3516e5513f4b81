//! Metrics of Tokio runtimes.

use std::time::Duration;

use chart_index_instrumentation::Metrics;
use tokio::runtime::{Handle, RuntimeMetrics};

/// Registers the metrics of runtimes that do the same work, as the sum of theirs. The name of the work is a
/// label.
pub(crate) fn register<'a>(
    metrics: &Metrics,
    name: &'static str,
    runtimes: impl IntoIterator<Item = &'a Handle>,
) {
    let runtimes: Vec<RuntimeMetrics> = runtimes.into_iter().map(Handle::metrics).collect();
    metrics.observe_always(move |metrics| {
        let sum = |read: fn(&RuntimeMetrics) -> usize| runtimes.iter().map(read).sum::<usize>();
        metrics.tokio_runtime_workers.set([name], sum(RuntimeMetrics::num_workers));
        metrics.tokio_runtime_alive_tasks.set([name], sum(RuntimeMetrics::num_alive_tasks));
        metrics.tokio_runtime_global_queue_depth.set([name], sum(RuntimeMetrics::global_queue_depth));
        let busy: Duration = runtimes.iter().map(busy_time).sum();
        metrics.tokio_runtime_busy_time_seconds_total.set([name], busy.as_secs_f64());
    });
}

fn busy_time(runtime: &RuntimeMetrics) -> Duration {
    (0..runtime.num_workers()).map(|worker| runtime.worker_total_busy_duration(worker)).sum()
}
