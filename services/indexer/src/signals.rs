//! The signals that end the program.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Completes at the first SIGTERM or SIGINT. Both are caught from this call on.
pub(crate) fn shutdown() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
