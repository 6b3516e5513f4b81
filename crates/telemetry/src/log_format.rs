//! The format of log lines, which have the ids of the current span, and no control characters in values.

use std::fmt;

use chart_index_cli::{escape_controls, escape_controls_in_json};
use clap::ValueEnum;
use opentelemetry::trace::{SpanContext, TraceContextExt};
use tracing::field::Field;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The log format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Human-readable lines.
    Text,
    /// One JSON object per line.
    Json,
}

/// A format of log lines, with `trace_id` and `span_id` of the current span, if there is one.
pub(crate) struct WithSpanIds<F> {
    pub(crate) lines: F,
    pub(crate) format: LogFormat,
}

impl<S, N, F> FormatEvent<S, N> for WithSpanIds<F>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.lines.format_event(context, Writer::new(&mut line), event)?;
        let current = opentelemetry::Context::current();
        let span = current.span().span_context().clone();
        if span.is_valid() {
            line = with_ids(&line, self.format, &span);
        }
        match self.format {
            // Its fields are escaped already: the line has the colours of a terminal.
            LogFormat::Text => writer.write_str(&line),
            LogFormat::Json => writer
                .write_str(&escape_controls_in_json(line.trim_end_matches('\n')))
                .and_then(|()| writer.write_char('\n')),
        }
    }
}

/// The format of the fields in lines of text.
pub(crate) fn text_fields() -> impl for<'writer> FormatFields<'writer> + Send + Sync + 'static {
    debug_fn(|writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug| {
        let value = format!("{value:?}");
        match field.name() {
            "message" => write!(writer, "{}", escape_controls(&value)),
            // Where an event of the crate `log` comes from, which the line names already.
            name if name.starts_with("log.") => Ok(()),
            name => write!(writer, " {}={}", name.trim_start_matches("r#"), escape_controls(&value)),
        }
    })
}

/// The line with the ids at its end, as fields of the format.
fn with_ids(line: &str, format: LogFormat, span: &SpanContext) -> String {
    let (line, trace, span) = (line.trim_end_matches('\n'), span.trace_id(), span.span_id());
    match format {
        LogFormat::Text => format!("{line} trace_id={trace} span_id={span}\n"),
        LogFormat::Json => {
            let object = line.strip_suffix('}').unwrap_or(line);
            format!("{object},\"trace_id\":\"{trace}\",\"span_id\":\"{span}\"}}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{SpanId, TraceFlags, TraceId, TraceState};

    use super::*;

    #[test]
    fn ids_are_fields_of_the_line() {
        let span = SpanContext::new(
            TraceId::from(0xab_u128),
            SpanId::from(0xcd_u64),
            TraceFlags::SAMPLED,
            false,
            TraceState::default(),
        );
        assert_eq!(
            with_ids("INFO stopped\n", LogFormat::Text, &span),
            "INFO stopped trace_id=000000000000000000000000000000ab span_id=00000000000000cd\n"
        );
        assert_eq!(
            with_ids("{\"level\":\"INFO\"}\n", LogFormat::Json, &span),
            "{\"level\":\"INFO\",\"trace_id\":\"000000000000000000000000000000ab\",\"span_id\":\"00000000000000cd\"}\n"
        );
    }
}
