//! Turns panics of third-party parsers into refusals.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Refusal;

/// Runs `parse` and returns [`Refusal::DecoderPanicked`] if it panics.
///
/// The panic hook still runs and prints the message: the hook is global to the process, and its output is what
/// leads to the file at fault.
pub(crate) fn catch_panic<T>(parse: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    catch_unwind(AssertUnwindSafe(parse)).unwrap_or(Err(Refusal::DecoderPanicked))
}
