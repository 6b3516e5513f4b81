//! Progress bars on a terminal, with the rate and an estimate of the time that is left.

use std::fmt::Write;

use chart_index_telemetry::is_interactive;
use indicatif::{ProgressBar, ProgressFinish, ProgressState, ProgressStyle};

/// A bar of this many items, on standard error for as long as it lives. Nothing is drawn where standard error
/// is no terminal, or the log is JSON.
pub(crate) fn items(total: u64) -> ProgressBar {
    bar(Some(total), "{bar:40} {human_pos} of {human_len}, {rate}, {eta} left")
}

/// The same of bytes.
pub(crate) fn bytes(total: u64) -> ProgressBar {
    bar(Some(total), "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left")
}

/// The same of items whose number is not known.
pub(crate) fn count() -> ProgressBar {
    bar(None, "{human_pos}, {rate}, {elapsed}")
}

fn bar(total: Option<u64>, template: &str) -> ProgressBar {
    if !is_interactive() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
    let rate = |state: &ProgressState, text: &mut dyn Write| _ = write!(text, "{:.1}/s", state.per_sec());
    bar.with_style(style.with_key("rate", rate)).with_finish(ProgressFinish::AndClear)
}
