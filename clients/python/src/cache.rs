//! A mapping of Python as a cache of responses.

use bytes::Bytes;
use chart_index_client::{Cache, CachedResponse};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A mutable mapping of URLs to tags and bodies.
#[derive(Debug)]
pub(crate) struct Mapping(pub(crate) Py<PyAny>);

impl Mapping {
    fn read(&self, py: Python<'_>, url: &str) -> PyResult<Option<CachedResponse>> {
        let found: Option<(String, Vec<u8>)> = self.0.bind(py).call_method1("get", (url,))?.extract()?;
        Ok(found.map(|(etag, body)| CachedResponse { etag, body: Bytes::from(body) }))
    }

    fn write(&self, py: Python<'_>, url: &str, response: &CachedResponse) -> PyResult<()> {
        self.0.bind(py).set_item(url, (&response.etag, PyBytes::new(py, &response.body)))
    }
}

/// Without a cache that works, requests are not conditional.
impl Cache for Mapping {
    fn get(&self, url: &str) -> Option<CachedResponse> {
        Python::attach(|py| {
            let read = self.read(py, url);
            read.unwrap_or_else(|error| {
                error.write_unraisable(py, Some(self.0.bind(py)));
                None
            })
        })
    }

    fn set(&self, url: &str, response: CachedResponse) {
        Python::attach(|py| {
            if let Err(error) = self.write(py, url, &response) {
                error.write_unraisable(py, Some(self.0.bind(py)));
            }
        });
    }
}
