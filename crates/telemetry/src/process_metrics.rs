//! Metrics of the process: CPU time, memory, open file descriptors.

use std::time::Instant;

use chart_index_instrumentation::meter;
use opentelemetry::KeyValue;
use procfs::process::{LimitValue, Process};

/// Registers the metrics. Values that `/proc` does not provide are missing.
pub(crate) fn register() {
    register_cpu_time();
    let gauge = |name: &'static str,
                 unit: &'static str,
                 description: &'static str,
                 read: fn(&Process) -> Option<u64>| {
        meter()
            .u64_observable_gauge(name)
            .with_unit(unit)
            .with_description(description)
            .with_callback(move |observer| {
                if let Some(value) = Process::myself().ok().as_ref().and_then(read) {
                    observer.observe(value, &[]);
                }
            })
            .build();
    };
    gauge("process.memory.usage", "By", "Resident memory of the process", |process| {
        Some(process.stat().ok()?.rss * procfs::page_size())
    });
    gauge(
        "process.file_descriptors.open",
        "{file_descriptor}",
        "Open file descriptors of the process",
        |process| u64::try_from(process.fd_count().ok()?).ok(),
    );
    gauge(
        "process.file_descriptors.limit",
        "{file_descriptor}",
        "Open file limit of the process",
        |process| match process.limits().ok()?.max_open_files.soft_limit {
            LimitValue::Value(limit) => Some(limit),
            LimitValue::Unlimited => None,
        },
    );
    let started = Instant::now();
    meter()
        .f64_observable_gauge("process.uptime")
        .with_unit("s")
        .with_description("Time since the start of the process")
        .with_callback(move |observer| observer.observe(started.elapsed().as_secs_f64(), &[]))
        .build();
}

fn register_cpu_time() {
    let modes = [("user", utime as fn(&procfs::process::Stat) -> u64), ("system", stime)]
        .map(|(mode, ticks)| ([KeyValue::new("cpu.mode", mode)], ticks));
    meter()
        .f64_observable_counter("process.cpu.time")
        .with_unit("s")
        .with_description("CPU time of the process")
        .with_callback(move |observer| {
            let Ok(stat) = Process::myself().and_then(|process| process.stat()) else { return };
            for (labels, ticks) in &modes {
                observer.observe(seconds(ticks(&stat)), labels);
            }
        })
        .build();
}

const fn utime(stat: &procfs::process::Stat) -> u64 {
    stat.utime
}

const fn stime(stat: &procfs::process::Stat) -> u64 {
    stat.stime
}

#[expect(clippy::cast_precision_loss, reason = "exact for thousands of years")]
fn seconds(ticks: u64) -> f64 {
    ticks as f64 / procfs::ticks_per_second() as f64
}
