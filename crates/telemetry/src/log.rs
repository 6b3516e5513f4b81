//! The log of the process, on standard error.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::panic;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

/// The lines that may wait to be written, some 3 MB. When standard error takes none of them for so long that there are
/// more, those above it are dropped.
const BUFFERED_LINES: usize = 8_192;

/// How long the end of the program may wait for standard error to take what is left.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// What is logged, and how.
#[derive(Debug, Clone, Args)]
pub struct LogConfig {
    /// How the log is written.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value = "text", global = true)]
    pub log_format: LogFormat,

    /// What is logged, as levels and targets: `info`, `debug`, `info,chart_index_http=debug`, … By default without slow
    /// statements of PostgreSQL (`sqlx::query`), of which there is a line each.
    #[arg(
        long,
        env = "RUST_LOG",
        value_name = "RUST_LOG",
        default_value = "info,sqlx::query=error",
        value_parser = filter,
        global = true
    )]
    pub log_filter: String,
}

/// The form of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// A JSON object a line, for programs.
    Json,
}

/// Checks a filter. It is kept as text because the parsed one cannot be cloned.
fn filter(text: &str) -> Result<String, tracing_subscriber::filter::ParseError> {
    EnvFilter::try_new(text).map(|_| text.to_owned())
}

/// The running log. A thread of its own writes to standard error, so that a reader that stops reading there delays no
/// request: lines wait for it in a bounded buffer, and are dropped when that is full.
#[derive(Debug)]
#[must_use = "what is buffered is written by `finish`"]
pub struct Log {
    writer: WorkerGuard,
    dropped: ErrorCounter,
}

impl Log {
    /// Starts the log of this process, once. Panics are logged like everything else, since a panic must not wait for
    /// standard error either.
    pub fn start(config: &LogConfig) -> Self {
        let (sender, writer) = writer_to(BufWriter::new(io::stderr()));
        let dropped = sender.error_counter();
        let log = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new(&config.log_filter))
            .with_writer(sender)
            .with_ansi(io::stderr().is_terminal());
        match config.log_format {
            LogFormat::Text => log.init(),
            LogFormat::Json => log.json().init(),
        }
        panic::set_hook(Box::new(log_panic));
        Self { writer, dropped }
    }

    /// Writes what is buffered and then the last words of the program, if there are any. Waits for standard error
    /// 2 seconds at most.
    pub fn finish(self, last_words: Option<String>) {
        let lines = self.dropped.dropped_lines();
        if lines > 0 {
            tracing::warn!(lines, "log lines were dropped: standard error was not read");
        }
        let (done, finished) = mpsc::channel();
        // In a thread, since nothing bounds the time of a write to a full pipe.
        thread::spawn(move || {
            drop(self.writer);
            if let Some(words) = last_words {
                let _ = writeln!(io::stderr(), "{words}");
            }
            let _ = done.send(());
        });
        let _ = finished.recv_timeout(FLUSH_TIMEOUT);
    }
}

/// A sender of lines that never waits, and the thread that writes them.
fn writer_to(output: impl Write + Send + 'static) -> (NonBlocking, WorkerGuard) {
    NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(BUFFERED_LINES)
        .thread_name("log")
        .finish(output)
}

fn log_panic(panic: &panic::PanicHookInfo<'_>) {
    let backtrace = Backtrace::capture();
    let backtrace =
        (backtrace.status() == BacktraceStatus::Captured).then(|| tracing::field::display(backtrace));
    tracing::error!(%panic, backtrace, "a thread panicked");
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// An output that takes nothing until it is released.
    struct Blocked {
        released: mpsc::Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Blocked {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // When the other end is gone, this returns at once.
            let _ = self.released.recv();
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_blocked_output_drops_lines_and_delays_nothing() {
        let (release, released) = mpsc::channel();
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let (mut sender, guard) = writer_to(Blocked { released, written: Arc::clone(&written) });
        let counter = sender.error_counter();
        for _ in 0..3 * BUFFERED_LINES {
            sender.write_all(b"line\n").unwrap();
        }
        let dropped = counter.dropped_lines();
        assert!(dropped >= 2 * BUFFERED_LINES - 1, "{dropped} lines were dropped");
        drop(release);
        drop(guard);
        assert_eq!(
            written.lock().unwrap().len(),
            5 * (3 * BUFFERED_LINES - dropped),
            "the others are written"
        );
    }

    #[test]
    fn a_filter_is_checked() {
        assert!(filter("info,chart_index_http=debug").is_ok());
        assert!(filter("info,=").is_err());
    }
}
