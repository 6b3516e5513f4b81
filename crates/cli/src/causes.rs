//! Errors with their causes.

use std::error::Error;
use std::fmt;

/// Displays an error with its causes, on one line. Some errors end with the text of their cause, which is shown
/// once.
#[derive(Debug, Clone, Copy)]
pub struct Causes<'a>(pub &'a dyn Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.0.to_string();
        f.write_str(&text)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            let cause_text = error.to_string();
            if !text.ends_with(&cause_text) {
                write!(f, ": {cause_text}")?;
            }
            text = cause_text;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Whether its text ends with that of its cause.
    #[derive(Debug, thiserror::Error)]
    enum Outer {
        #[error("read a chart: {0}")]
        Repeats(#[source] io::Error),
        #[error("read a chart")]
        Names(#[source] io::Error),
    }

    #[test]
    fn causes_are_named_once() {
        let refused = || io::Error::other("connection refused");
        for error in [Outer::Repeats(refused()), Outer::Names(refused())] {
            assert_eq!(Causes(&error).to_string(), "read a chart: connection refused");
        }
    }
}
