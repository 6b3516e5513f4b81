//! Errors as Python exceptions.

use std::error::Error as StdError;
use std::io;

use chart_index_client::{Error, FileError, Problem};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The text of an error with its causes.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = std::fmt::Write::write_fmt(&mut text, format_args!(": {error}"));
        cause = error.source();
    }
    text
}

/// A request that failed: `chart_index.ChartIndexError`, or `ValueError` if the caller is at fault.
pub(crate) fn request_error(error: &Error) -> PyErr {
    let message = match error {
        Error::Problem(problem) => problem.to_string(),
        other => chain(other),
    };
    if matches!(error, Error::Base(_) | Error::UserAgent) {
        return PyValueError::new_err(message);
    }
    Python::attach(|py| chart_index_error(py, message, error.problem()).unwrap_or_else(|error| error))
}

fn chart_index_error(py: Python<'_>, message: String, problem: Option<&Problem>) -> PyResult<PyErr> {
    let none = Problem::default();
    let Problem { status, problem_type, detail, retry_after, .. } = problem.unwrap_or(&none);
    let status = problem.map(|_| *status);
    let retry_after = retry_after.map(|pause| pause.as_secs_f64());
    let class = py.import("chart_index._errors")?.getattr("ChartIndexError")?;
    Ok(PyErr::from_value(class.call1((message, status, problem_type, detail, retry_after))?))
}

/// A path that cannot be hashed: `ValueError`, or an `OSError` of its kind.
pub(crate) fn file_error(error: &FileError) -> PyErr {
    match error {
        FileError::Read { cause, .. } | FileError::List { cause, .. } => {
            io::Error::new(cause.kind(), chain(error)).into()
        }
        other => PyValueError::new_err(other.to_string()),
    }
}
