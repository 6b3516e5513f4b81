//! Cores for the clients and for the server.

use std::num::NonZero;
use std::process::Command;
use std::sync::OnceLock;
use std::thread::available_parallelism;

/// The processes that share cores.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cores {
    /// The generator of the load: the first core.
    Clients,
    /// The server with its PostgreSQL and Redis: the last core.
    Server,
}

/// Pins this thread, and the threads and processes that it starts from now on, to their cores. Does nothing on a machine with one.
pub(crate) fn pin(cores: Cores) {
    let last = available_cores() - 1;
    let core = match cores {
        Cores::Clients => 0,
        Cores::Server => last,
    };
    // `<process>/task/<thread>`.
    let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    let thread = thread.file_name().unwrap_or_default();
    let output =
        Command::new("taskset").args(["--cpu-list", "--pid", &core.to_string()]).arg(thread).output();
    let output = output.unwrap_or_else(|error| panic!("taskset starts: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The cores of the machine; a pinned thread would see one.
fn available_cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, NonZero::get))
}
