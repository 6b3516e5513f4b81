//! Shutdown signals.

use std::io;
use std::process;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code of a process ended by a signal is this plus the number of the signal, as in a shell.
const SIGNAL_EXIT_CODE_BASE: i32 = 128;

/// Returns a future that completes at the first SIGTERM or SIGINT. The handlers are installed by this call.
///
/// A second signal, during the shutdown, exits at once with the code 143 or 130.
///
/// # Errors
///
/// The signal handlers cannot be installed.
pub fn shutdown_signal() -> io::Result<impl Future<Output = ()>> {
    let mut signals = Signals::new()?;
    Ok(async move {
        signals.next().await;
        tokio::spawn(async move {
            let signal = signals.next().await;
            process::exit(SIGNAL_EXIT_CODE_BASE + signal.as_raw_value());
        });
    })
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
        }
    }
}
