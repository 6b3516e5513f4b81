//! Cores for the clients and for the server.

use std::hint::black_box;
use std::num::NonZero;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{self, JoinHandle, available_parallelism};

/// The processes that share cores.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cores {
    /// The generator of the load: the first core.
    Clients,
    /// The server with its PostgreSQL and Redis: the last core.
    Server,
}

/// Pins this thread, and the threads and processes that it starts from now on, to their cores. Does nothing on
/// a machine with one.
pub(crate) fn pin(cores: Cores) {
    let last = available_cores() - 1;
    let core = match cores {
        Cores::Clients => 0,
        Cores::Server => last,
    };
    of_this_thread("taskset", &["--cpu-list", "--pid", &core.to_string()]);
}

/// Uses the processor time that the clients leave of their core, until the value is dropped.
///
/// On a virtual machine each core may be slower while the other one works: where this was measured, by a factor
/// of 1.0 to 1.8. Without this the server would be slower under overload than at its peak, since the clients
/// have more to do.
#[derive(Debug)]
pub(crate) struct BusyCore {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BusyCore {
    /// Starts a thread that runs when nothing else does on this core. Panics if the thread cannot be given that
    /// priority.
    pub(crate) fn start(cores: Cores) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let (started, starts) = mpsc::channel();
        let thread = thread::spawn(move || {
            pin(cores);
            of_this_thread("chrt", &["--idle", "--pid", "0"]);
            let _ = started.send(());
            let mut number = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                number = black_box(number.wrapping_mul(3).wrapping_add(1));
            }
        });
        assert!(starts.recv().is_ok(), "the thread has its core and its priority");
        Self { is_over, thread: Some(thread) }
    }
}

impl Drop for BusyCore {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Runs a command of util-linux with the id of this thread.
fn of_this_thread(program: &str, arguments: &[&str]) {
    // `<process>/task/<thread>`.
    let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    let thread = thread.file_name().unwrap_or_default();
    let output = Command::new(program).args(arguments).arg(thread).output();
    let output = output.unwrap_or_else(|error| panic!("{program} starts: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The cores of the machine; a pinned thread would see one.
fn available_cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, NonZero::get))
}
