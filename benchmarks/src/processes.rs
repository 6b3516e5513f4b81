//! CPU time and memory of processes.

use std::time::Duration;

use anyhow::{Context, Result};
use procfs::process::{Process, all_processes};

/// The user and system time of a process and of its children, those that have ended included. Ticks are 10 ms.
pub fn cpu_time(process: u32) -> Result<Duration> {
    let process = i32::try_from(process)?;
    let own = Process::new(process)?.stat()?;
    let ended = u64::try_from(own.cutime + own.cstime).unwrap_or(0);
    let children: u64 = all_processes()?
        .filter_map(|child| child.ok()?.stat().ok())
        .filter(|child| child.ppid == process)
        .map(|child| child.utime + child.stime)
        .sum();
    let ticks = own.utime + own.stime + ended + children;
    Ok(Duration::from_millis(ticks * 1_000 / procfs::ticks_per_second()))
}

/// The resident memory of a process.
#[derive(Debug, Clone, Copy)]
pub struct ResidentMemory {
    /// Bytes now.
    pub now: u64,
    /// The most bytes so far.
    pub peak: u64,
}

impl ResidentMemory {
    /// Reads `VmRSS` and `VmHWM`.
    pub fn of(process: u32) -> Result<Self> {
        let status = Process::new(i32::try_from(process)?)?.status()?;
        let bytes = |kibibytes: Option<u64>| kibibytes.map(|kibibytes| kibibytes << 10);
        Ok(Self {
            now: bytes(status.vmrss).context("the process has ended")?,
            peak: bytes(status.vmhwm).context("the process has ended")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_includes_children() {
        let before = cpu_time(std::process::id()).unwrap();
        let loop_of_a_shell = "for i in $(seq 300000); do :; done";
        let ended = std::process::Command::new("sh").args(["-c", loop_of_a_shell]).status().unwrap();
        assert!(ended.success());
        assert!(cpu_time(std::process::id()).unwrap() > before);
    }

    #[test]
    fn peak_is_at_least_the_present_memory() {
        let memory = ResidentMemory::of(std::process::id()).unwrap();
        assert!(memory.now > 1 << 20 && memory.peak >= memory.now, "{memory:?}");
    }
}
