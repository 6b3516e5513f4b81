//! Cores, and the CPU time of processes.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use procfs::process::{Process, Stat, all_processes};
use procfs::{CpuTime, CurrentSI, KernelStats};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores of the servers and those of the generator: the first half of the machine's and the rest. Threads
/// and processes run where the thread that starts them is pinned.
#[derive(Debug, Clone)]
pub(crate) struct Cores {
    servers: Vec<usize>,
    generator: Vec<usize>,
}

/// Pins this thread to the cores of the generator again when dropped.
#[derive(Debug)]
pub(crate) struct OnServers<'a>(&'a Cores);

impl Cores {
    /// Divides the cores that this process may use. With a single core both share it.
    pub(crate) fn divide() -> Result<Self> {
        let allowed = sched_getaffinity(None).context("cannot read the cores of this process")?;
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
        let (servers, generator) = match cores.as_slice() {
            [only] => (vec![*only], vec![*only]),
            cores => {
                let (servers, generator) = cores.split_at(cores.len() / 2);
                (servers.to_vec(), generator.to_vec())
            }
        };
        let cores = Self { servers, generator };
        pin(&cores.generator)?;
        Ok(cores)
    }

    /// Pins this thread to the cores of the servers, until the value is dropped.
    pub(crate) fn on_servers(&self) -> Result<OnServers<'_>> {
        pin(&self.servers)?;
        Ok(OnServers(self))
    }

    /// The cores of the servers.
    pub(crate) fn servers(&self) -> &[usize] {
        &self.servers
    }

    /// The cores of the generator.
    pub(crate) fn generator(&self) -> &[usize] {
        &self.generator
    }
}

impl Drop for OnServers<'_> {
    fn drop(&mut self) {
        // It succeeded before.
        let _ = pin(&self.0.generator);
    }
}

fn pin(cores: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core);
    }
    sched_setaffinity(None, &set).with_context(|| format!("cannot pin this thread to the cores {cores:?}"))
}

/// The user and system time of processes with their descendants, including those that have ended (`utime`,
/// `stime`, `cutime` and `cstime` of `/proc/<pid>/stat`, in ticks of 10 ms).
pub(crate) fn cpu_time(roots: &[u32]) -> Result<Duration> {
    let stats: BTreeMap<i32, _> = all_processes()?
        .filter_map(|process| process.ok()?.stat().ok())
        .map(|stat| (stat.pid, stat))
        .collect();
    let belongs = |pid: i32| {
        let ancestors = std::iter::successors(Some(pid), |pid| stats.get(pid).map(|stat| stat.ppid));
        ancestors
            .take_while(|pid| *pid > 1)
            .any(|pid| roots.iter().any(|root| i64::from(*root) == i64::from(pid)))
    };
    let of_ended = |stat: &Stat| u64::try_from(stat.cutime + stat.cstime).unwrap_or_default();
    let time = |stat: &Stat| stat.utime + stat.stime + of_ended(stat);
    let ticks: u64 = stats.values().filter(|stat| belongs(stat.pid)).map(time).sum();
    Ok(Duration::from_millis(ticks * 1_000 / procfs::ticks_per_second()))
}

/// The CPU time of processes that this one started and that have ended, such as a generator.
pub(crate) fn ended_children_cpu_time() -> Result<Duration> {
    let stat = Process::myself()?.stat()?;
    let ticks = u64::try_from(stat.cutime + stat.cstime).unwrap_or_default();
    Ok(Duration::from_millis(ticks * 1_000 / procfs::ticks_per_second()))
}

/// The busy and the total time of cores since the machine started, in ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CoreTimes {
    busy: u64,
    total: u64,
}

impl CoreTimes {
    /// Reads the times of these cores.
    pub(crate) fn read(cores: &[usize]) -> Result<Self> {
        let times = KernelStats::current()?.cpu_time;
        let mut sum = Self { busy: 0, total: 0 };
        for core in cores {
            let time = times.get(*core).with_context(|| format!("no times of core {core}"))?;
            let idle = time.idle + time.iowait.unwrap_or(0);
            let busy = busy_ticks(time);
            sum = Self { busy: sum.busy + busy, total: sum.total + busy + idle };
        }
        Ok(sum)
    }

    /// The share of the time since `before` in which the cores were busy.
    pub(crate) fn busy_since(self, before: Self) -> f64 {
        let total = self.total.saturating_sub(before.total).max(1);
        ratio(self.busy.saturating_sub(before.busy), total)
    }

    /// The share of the time since `before` that processes took which used this much CPU time.
    pub(crate) fn share_since(self, before: Self, used: Duration) -> f64 {
        let total = self.total.saturating_sub(before.total).max(1);
        used.as_secs_f64() / (ratio(total, 1) / ratio(procfs::ticks_per_second(), 1))
    }
}

fn busy_ticks(time: &CpuTime) -> u64 {
    let interrupts = time.irq.unwrap_or(0) + time.softirq.unwrap_or(0) + time.steal.unwrap_or(0);
    time.user + time.nice + time.system + interrupts
}

/// A ratio of two counts.
#[expect(clippy::cast_precision_loss, reason = "counts of a measurement are far below 2^52")]
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn cpu_time_includes_ended_processes() {
        let own = || cpu_time(&[std::process::id()]).unwrap();
        let (before, start) = (own(), Instant::now());
        let ended_before = ended_children_cpu_time().unwrap();
        let mut ended = Duration::ZERO;
        while ended < Duration::from_millis(200) {
            assert!(start.elapsed() < Duration::from_secs(30), "{ended:?}");
            let work = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done";
            assert!(std::process::Command::new("sh").args(["-c", work]).status().unwrap().success());
            ended = ended_children_cpu_time().unwrap().saturating_sub(ended_before);
        }
        assert!(own() >= before + ended, "{:?} after {before:?} and {ended:?}", own());
    }
}
