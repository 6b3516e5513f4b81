//! Local files.

use std::path::PathBuf;

use chart_index_client::{FileError, Hashed};
use pyo3::prelude::*;

use crate::errors::file_error;
use crate::index::to_python;

/// The charts of a folder, read one by one.
#[pyclass(module = "chart_index")]
pub(crate) struct HashedFolder(chart_index_client::HashedFolder);

#[pymethods]
impl HashedFolder {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match py.detach(|| self.0.next()) {
            Some(Ok(found)) => to_python(py, &found).map(Some),
            Some(Err(error)) => Err(file_error(&error)),
            None => Ok(None),
        }
    }
}

/// Hashes the charts of a chart file or an archive with this name.
#[pyfunction]
#[pyo3(signature = (name, content, /))]
pub(crate) fn hash_file<'py>(py: Python<'py>, name: &str, content: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let hashed: Result<Vec<Hashed>, FileError> = py.detach(|| chart_index_client::hash_file(name, content));
    to_python(py, &hashed.map_err(|error| file_error(&error))?)
}

/// Hashes the chart files and archives at or below a path, in the order of their names, one by one.
#[pyfunction]
#[pyo3(signature = (path, /))]
pub(crate) fn hash_folder(path: PathBuf) -> PyResult<HashedFolder> {
    chart_index_client::hash_folder(path).map(HashedFolder).map_err(|error| file_error(&error))
}
