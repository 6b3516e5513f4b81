//! The signals that end a program.

use std::io;
use std::process;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What shells add to the number of a signal in the exit code of a process that it ended.
const EXIT_CODE_OF_SIGNALS: i32 = 128;

/// Completes at the first SIGTERM or SIGINT. Both are caught from this call on.
///
/// A second one, while the program is about to end, ends it at once, with the exit code 143 or 130.
///
/// # Errors
/// The signals cannot be caught.
pub fn shutdown_signal() -> io::Result<impl Future<Output = ()>> {
    let mut signals = Signals::new()?;
    Ok(async move {
        signals.next().await;
        tokio::spawn(async move {
            let signal = signals.next().await;
            process::exit(EXIT_CODE_OF_SIGNALS + signal.as_raw_value());
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
