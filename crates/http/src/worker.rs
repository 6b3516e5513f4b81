//! The threads that handle requests.

use std::io;
use std::num::NonZeroUsize;
use std::thread::{self, JoinHandle};

use axum::Router;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::CancellationToken;

/// The router of the connections of one runtime.
#[derive(Debug, Clone)]
pub struct Worker {
    /// A runtime with one thread, which handles the connections of this worker.
    pub runtime: Handle,
    /// The router, with connections of its own to what the requests wait for: then no request wakes another
    /// thread.
    pub router: Router,
}

impl Worker {
    /// Handles connections on the current runtime.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    #[must_use]
    pub fn on_current_runtime(router: Router) -> Self {
        Self { runtime: Handle::current(), router }
    }
}

/// Threads with a single-threaded runtime each, one for each core.
///
/// A connection is handled by one thread from its first request to its last, with a connection to Redis of the
/// thread. On a runtime that distributes its tasks among threads, a request wakes another thread when these are
/// handled by different ones: a cached lookup takes 1.5 times the CPU time of service and Redis
/// (benchmarks/results/2026-11-28-plain-axum.md).
///
/// One listener passes each connection to the thread with the fewest. Listeners for each thread
/// (`SO_REUSEPORT`) would get connections by their hash, which is uneven for the few connections of a reverse
/// proxy, and reset those in the backlog of a listener that is closed.
#[derive(Debug)]
pub struct WorkerThreads {
    threads: Vec<JoinHandle<()>>,
    runtimes: Vec<Handle>,
    stop: CancellationToken,
}

impl WorkerThreads {
    /// Starts this number of threads.
    ///
    /// # Errors
    ///
    /// The system cannot start a thread or its runtime.
    pub fn start(number: NonZeroUsize) -> io::Result<Self> {
        let mut this = Self { threads: Vec::new(), runtimes: Vec::new(), stop: CancellationToken::new() };
        for number in 0..number.get() {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            this.runtimes.push(runtime.handle().clone());
            let stop = this.stop.clone();
            let thread = thread::Builder::new().name(format!("worker-{number}"));
            this.threads.push(thread.spawn(move || run(runtime, &stop))?);
        }
        Ok(this)
    }

    /// The runtime of each thread.
    #[must_use]
    pub fn runtimes(&self) -> &[Handle] {
        &self.runtimes
    }
}

fn run(runtime: Runtime, stop: &CancellationToken) {
    runtime.block_on(stop.cancelled());
    // Without waiting for blocking tasks, such as the resolution of a host name.
    runtime.shutdown_background();
}

impl Drop for WorkerThreads {
    /// Stops the threads. Tasks that they still run are dropped.
    fn drop(&mut self) {
        self.stop.cancel();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
