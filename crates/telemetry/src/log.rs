//! The log of the process, on standard error.
#![expect(clippy::disallowed_methods, reason = "these are the ways to standard error")]

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::panic;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::Args;
use opentelemetry_sdk::trace::SdkTracer;
use tracing::subscriber::Interest;
use tracing::{Level, Metadata, Subscriber};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format;
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

use crate::log_format::{LogFormat, WithSpanIds, text_fields};
use crate::print::print;
use crate::traces;

/// Maximum lines waiting to be written, about 3 MB. Further lines are dropped until standard error is read
/// again.
const BUFFERED_LINES: usize = 8_192;

/// Maximum time to write the remaining lines at exit.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Format and filter of the log.
#[derive(Debug, Clone, Args)]
pub struct LogConfig {
    /// Format of the log on standard error.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value = "text", global = true)]
    pub log_format: LogFormat,

    /// Log filter in the syntax of `tracing_subscriber::EnvFilter`, e.g. `info,chart_index_store=debug`. The
    /// default hides the slow-statement warnings of sqlx (`sqlx::query`) and the retries of `object_store`.
    #[arg(
        long,
        env = "RUST_LOG",
        value_name = "RUST_LOG",
        default_value = "info,sqlx::query=error,object_store=warn",
        value_parser = parse_filter,
        global = true
    )]
    pub log_filter: String,
}

/// Validates a filter. Returns the text, because `EnvFilter` is not `Clone`.
fn parse_filter(text: &str) -> Result<String, tracing_subscriber::filter::ParseError> {
    EnvFilter::try_new(text).map(|_| text.to_owned())
}

/// The log of the process. A thread writes it to standard error from a bounded buffer, so that requests do not
/// wait if standard error is not read: lines are dropped while the buffer is full.
#[derive(Debug)]
#[must_use = "`finish` writes the buffered lines"]
pub(crate) struct Log {
    writer: WorkerGuard,
    dropped: ErrorCounter,
}

impl Log {
    /// Starts the log of this process, and, with a tracer, its spans; to be called once. Also logs panics,
    /// which would otherwise block on standard error.
    pub(crate) fn start(config: &LogConfig, tracer: Option<SdkTracer>) -> Self {
        let (sender, writer) = spawn_writer(BufWriter::new(io::stderr()));
        let dropped = sender.error_counter();
        let registry = Registry::default().with(lines(config, sender));
        match tracer {
            Some(tracer) => registry.with(spans(tracer)).init(),
            // Not a layer that is `None`: it would enable all spans.
            None => registry.init(),
        }
        panic::set_hook(Box::new(log_panic));
        Self { writer, dropped }
    }

    /// The number of lines that were dropped since the start.
    pub(crate) fn dropped_lines(&self) -> ErrorCounter {
        self.dropped.clone()
    }

    /// Writes the buffered lines, then the final message of the program, if any. Waits for standard error at
    /// most 2 seconds.
    pub(crate) fn finish(self, final_message: Option<String>) {
        let lines = self.dropped.dropped_lines();
        if lines > 0 {
            tracing::warn!(lines, "log lines were dropped because standard error was not read");
        }
        let (done, finished) = mpsc::channel();
        // In a thread, because a write to a full pipe has no timeout.
        thread::spawn(move || {
            drop(self.writer);
            if let Some(message) = final_message {
                print(Level::ERROR, message);
            }
            let _ = done.send(());
        });
        let _ = finished.recv_timeout(FLUSH_TIMEOUT);
    }
}

fn spans<S>(tracer: SdkTracer) -> impl Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_filter(traces::span_filter())
}

/// Writes events as lines. A line contains the fields of its event and no others, whether or not its span is
/// sampled.
fn lines<S>(config: &LogConfig, sender: NonBlocking) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let filter = EventFilter(EnvFilter::new(&config.log_filter));
    let format = config.log_format;
    let ansi = io::stderr().is_terminal();
    match format {
        LogFormat::Text => {
            let lines = WithSpanIds { lines: format::Format::default().with_ansi(ansi), format };
            let layer = fmt::layer().event_format(lines).fmt_fields(text_fields());
            layer.with_ansi(ansi).with_writer(sender).with_filter(filter).boxed()
        }
        LogFormat::Json => {
            let lines = format::Format::default().json().with_current_span(false).with_span_list(false);
            let layer = fmt::layer().json().event_format(WithSpanIds { lines, format });
            layer.with_ansi(false).with_writer(sender).with_filter(filter).boxed()
        }
    }
}

/// Enables events by an [`EnvFilter`], and no spans.
///
/// Asks it for each event: where the interest of an event is cached, `tracing-subscriber` drops the next event
/// of a thread on which `log::log_enabled!` was false, as after each statement of sqlx
/// (tokio-rs/tracing, issue 2519).
struct EventFilter(EnvFilter);

impl<S> Filter<S> for EventFilter {
    fn enabled(&self, metadata: &Metadata<'_>, context: &Context<'_, S>) -> bool {
        metadata.is_event() && Filter::enabled(&self.0, metadata, context)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.is_event() { Interest::sometimes() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Filter::<S>::max_level_hint(&self.0)
    }
}

/// A non-blocking sender of lines, and the guard of the thread that writes them.
fn spawn_writer(output: impl Write + Send + 'static) -> (NonBlocking, WorkerGuard) {
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

    /// An output that blocks until it is released.
    struct Blocked {
        released: mpsc::Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Blocked {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Returns at once when the sender is dropped.
            let _ = self.released.recv();
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn blocked_output_drops_lines_without_blocking() {
        let (release, released) = mpsc::channel();
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let (mut sender, guard) = spawn_writer(Blocked { released, written: Arc::clone(&written) });
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
            "all other lines are written"
        );
    }

    #[test]
    fn invalid_filters_are_rejected() {
        assert!(parse_filter("info,chart_index_http=debug").is_ok());
        assert!(parse_filter("info,=").is_err());
    }
}
