//! Metrics of the process: CPU time, memory, open file descriptors.

use std::path::Path;
use std::time::SystemTime;

use chart_index_instrumentation::Metrics;
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
pub(crate) fn register(metrics: &Metrics) {
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    metrics.observe_always(move |metrics| {
        metrics.process_start_time_seconds.set([], started);
        if let Ok(process) = Process::myself() {
            report(metrics, &process);
        }
    });
}

fn report(metrics: &Metrics, process: &Process) {
    if let Ok(stat) = process.stat() {
        metrics.process_cpu_time_seconds_total.set(["user"], seconds(stat.utime));
        metrics.process_cpu_time_seconds_total.set(["system"], seconds(stat.stime));
        metrics.process_memory_usage_bytes.set([], stat.rss * procfs::page_size());
    }
    metrics.process_memory_limit_bytes.set_known([], memory_limit());
    metrics.process_file_descriptors_open.set_known([], process.fd_count().ok());
    if let Ok(limits) = process.limits()
        && let LimitValue::Value(limit) = limits.max_open_files.soft_limit
    {
        metrics.process_file_descriptors_limit.set([], limit);
    }
}

/// The memory limit of the cgroup of this process, or the memory of the machine, in bytes; `None` if `/proc`
/// has neither.
#[must_use]
pub fn memory_limit() -> Option<u64> {
    let limit = Process::myself().ok().and_then(|process| cgroup_limit(&process));
    limit.or_else(|| Meminfo::current().ok().map(|memory| memory.mem_total))
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
