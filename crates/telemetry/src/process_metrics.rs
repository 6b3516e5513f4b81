//! Metrics of the process: CPU time, memory, open file descriptors.

use std::path::Path;
use std::time::SystemTime;

use chart_index_instrumentation::meter;
use opentelemetry::KeyValue;
use procfs::process::{LimitValue, Process};
use procfs::{Current, Meminfo};

/// Where cgroups of version 2 are mounted, and the file with the limit. A container with its own namespace of
/// cgroups sees its own as the root.
const CGROUPS: (&str, &str) = ("/sys/fs/cgroup", "memory.max");
/// The same for version 1. In a container the path of its cgroup is that of the host, and its own is the root.
const CGROUPS_V1: (&str, &str) = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes");
/// Limits from here on are none: version 1 has the largest number of pages.
const NO_LIMIT: u64 = 1 << 60;

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
        "process.memory.limit",
        "By",
        "Memory limit of the cgroup of the process, or the memory of the machine",
        |process| cgroup_limit(process).or_else(|| Some(Meminfo::current().ok()?.mem_total)),
    );
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
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    meter()
        .f64_observable_gauge("process.start_time")
        .with_unit("s")
        .with_description("Unix time of the start of the process")
        .with_callback(move |observer| observer.observe(started, &[]))
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

/// The memory limit of the cgroups of a process. `None` without one.
fn cgroup_limit(process: &Process) -> Option<u64> {
    let groups = process.cgroups().ok()?;
    let limits = groups.into_iter().filter_map(|group| {
        let is_v1 = group.controllers.iter().any(|controller| controller == "memory");
        let (root, file) = if is_v1 { CGROUPS_V1 } else { CGROUPS };
        if !is_v1 && group.hierarchy != 0 {
            return None;
        }
        lowest_limit(Path::new(root), &group.pathname, file)
    });
    limits.min()
}

/// The lowest limit, in bytes, of a cgroup and those above it, up to the root. `None` without one.
fn lowest_limit(root: &Path, group: &str, file: &str) -> Option<u64> {
    let folder = root.join(group.trim_start_matches('/'));
    let folders = folder.ancestors().take_while(|folder| folder.starts_with(root));
    let limits = folders.filter_map(|folder| std::fs::read_to_string(folder.join(file)).ok());
    limits.filter_map(|limit| limit.trim().parse().ok()).filter(|limit| *limit < NO_LIMIT).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_memory_limit_of_cgroups_applies() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("outer/inner");
        std::fs::create_dir_all(&inner).unwrap();
        let limit = || lowest_limit(root.path(), "/outer/inner", "memory.max");
        assert_eq!(limit(), None);
        std::fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(limit(), None);
        std::fs::write(root.path().join("outer/memory.max"), "2048\n").unwrap();
        assert_eq!(limit(), Some(2048));
        std::fs::write(inner.join("memory.max"), "1024\n").unwrap();
        assert_eq!(limit(), Some(1024));
    }

    /// As in a container of Docker, whose own cgroup is the root.
    #[test]
    fn limit_of_version_1_is_that_of_the_root() {
        let root = tempfile::tempdir().unwrap();
        let limit = || lowest_limit(root.path(), "/docker/0123", "memory.limit_in_bytes");
        for (text, expected) in [("9223372036854771712\n", None), ("536870912\n", Some(536_870_912))] {
            std::fs::write(root.path().join("memory.limit_in_bytes"), text).unwrap();
            assert_eq!(limit(), expected);
        }
    }
}
