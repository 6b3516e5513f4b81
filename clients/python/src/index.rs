//! Requests to an index.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chart_index_client::{ChartKey, ChartsetId, Error, Include, NoteHash};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::runtime::{Builder, Runtime};

use crate::cache::Mapping;
use crate::errors::request_error;

/// How often a request looks whether Ctrl-C was pressed.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

type Json = Box<RawValue>;

/// A chart index.
#[pyclass(module = "chart_index", frozen)]
pub(crate) struct ChartIndex {
    index: chart_index_client::ChartIndex,
    runtime: Arc<Runtime>,
}

#[pymethods]
impl ChartIndex {
    #[new]
    #[pyo3(signature = (base, user_agent, *, cache=None, max_retries=10, max_wait=600.0, on_pause=None))]
    fn new(
        base: &str,
        user_agent: &str,
        cache: Option<Py<PyAny>>,
        max_retries: u32,
        max_wait: f64,
        on_pause: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let max_wait = Duration::try_from_secs_f64(max_wait);
        let max_wait = max_wait.map_err(|error| PyValueError::new_err(format!("max_wait: {error}")))?;
        let builder = chart_index_client::ChartIndex::builder(base, user_agent);
        let mut builder = builder.max_retries(max_retries).max_wait(max_wait);
        if let Some(cache) = cache {
            builder = builder.cache(Mapping(cache));
        }
        if let Some(on_pause) = on_pause {
            builder = builder.on_pause(move |pause| {
                let arguments = (pause.status.as_u16(), pause.duration.as_secs_f64());
                Python::attach(|py| {
                    if let Err(error) = on_pause.call1(py, arguments) {
                        error.write_unraisable(py, Some(on_pause.bind(py)));
                    }
                });
            });
        }
        let index = builder.build().map_err(|error| request_error(&error))?;
        let runtime = Arc::new(Builder::new_current_thread().enable_all().build()?);
        Ok(Self { index, runtime })
    }

    fn get<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyAny>> {
        parsed(py, &wait(py, &self.runtime, self.index.get::<Json>(path))?)
    }

    fn get_bytes<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &wait(py, &self.runtime, self.index.get_bytes(path))?))
    }

    #[pyo3(signature = (hash, *, include=None))]
    fn lookup<'py>(
        &self,
        py: Python<'py>,
        hash: &str,
        include: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (hash, include) = (note_hash(hash)?, fields(include)?);
        parsed(py, &wait(py, &self.runtime, self.index.lookup_as::<Json>(hash, &include))?)
    }

    #[pyo3(signature = (charts, *, include=None))]
    fn lookup_many<'py>(
        &self,
        py: Python<'py>,
        charts: &Bound<'py, PyAny>,
        include: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let charts: Vec<ChartKey> =
            charts.try_iter()?.map(|chart| chart_key(&chart?)).collect::<PyResult<_>>()?;
        let include = fields(include)?;
        let mut found = Vec::<Json>::with_capacity(charts.len());
        wait(py, &self.runtime, self.index.lookup_into(&charts, &include, &mut found))?;
        found.iter().map(|item| parsed(py, item)).collect()
    }

    #[pyo3(signature = (**filters))]
    fn search(&self, py: Python<'_>, filters: Option<&Bound<'_, PyDict>>) -> PyResult<Chartsets> {
        let filters = match filters {
            Some(filters) => from_python(py, filters.as_any(), "search")?,
            None => chart_index_client::types::SearchFilters::default(),
        };
        Ok(Chartsets { chartsets: self.index.search_as(&filters), runtime: Arc::clone(&self.runtime) })
    }

    #[pyo3(signature = (id, *, include=None))]
    fn chartset<'py>(
        &self,
        py: Python<'py>,
        id: &str,
        include: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let id: ChartsetId = id.parse().map_err(value_error)?;
        let include = fields(include)?;
        parsed(py, &wait(py, &self.runtime, self.index.chartset_as::<Json>(id, &include))?)
    }

    fn rox<'py>(&self, py: Python<'py>, hash: &str) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &wait(py, &self.runtime, self.index.rox(note_hash(hash)?))?))
    }

    fn preview<'py>(&self, py: Python<'py>, hash: &str) -> PyResult<Bound<'py, PyAny>> {
        let path = format!("/api/charts/{}/preview", note_hash(hash)?);
        self.get(py, &path)
    }

    fn hash_filter(&self, py: Python<'_>) -> PyResult<Option<HashFilter>> {
        Ok(wait(py, &self.runtime, self.index.hash_filter())?.map(HashFilter))
    }
}

/// The chartsets of a search, read page by page.
#[pyclass(module = "chart_index")]
pub(crate) struct Chartsets {
    chartsets: chart_index_client::Chartsets<Json>,
    runtime: Arc<Runtime>,
}

#[pymethods]
impl Chartsets {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let next = wait(py, &self.runtime, self.chartsets.next())?;
        next.map(|item| parsed(py, &item)).transpose()
    }
}

/// The charts that an index may know.
#[pyclass(module = "chart_index", frozen)]
pub(crate) struct HashFilter(chart_index_client::HashFilter);

#[pymethods]
impl HashFilter {
    #[new]
    #[pyo3(signature = (content, /))]
    fn new(content: &[u8]) -> PyResult<Self> {
        chart_index_client::HashFilter::from_bytes(content).map(Self).map_err(value_error)
    }

    /// The sequence of the change feed at which it has every known chart.
    #[getter]
    fn sequence(&self) -> u64 {
        self.0.sequence
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.0.count.try_into()?)
    }

    fn __contains__(&self, hash: &str) -> PyResult<bool> {
        Ok(self.0.may_contain(note_hash(hash)?))
    }
}

/// Waits for a request. Other threads of Python run meanwhile, and Ctrl-C ends it.
fn wait<T: Send>(
    py: Python<'_>,
    runtime: &Runtime,
    request: impl Future<Output = Result<T, Error>> + Send,
) -> PyResult<T> {
    let request = async {
        let mut request = std::pin::pin!(request);
        loop {
            tokio::select! {
                response = &mut request => return response.map_err(|error| request_error(&error)),
                () = tokio::time::sleep(SIGNAL_INTERVAL) => check_signals()?,
            }
        }
    };
    py.detach(|| runtime.block_on(request))
}

/// Runs the handlers of signals that have arrived, such as that of Ctrl-C, which raises.
fn check_signals() -> PyResult<()> {
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is not general enough")]
    Python::attach(|py| py.check_signals())
}

fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn note_hash(text: &str) -> PyResult<NoteHash> {
    text.parse().map_err(value_error)
}

fn fields(include: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Include>> {
    include.map_or(Ok(Vec::new()), |include| from_python(include.py(), include, "include"))
}

/// A note hash, or a dictionary with another key.
fn chart_key(chart: &Bound<'_, PyAny>) -> PyResult<ChartKey> {
    if let Ok(hash) = chart.cast::<PyString>() {
        return Ok(note_hash(hash.to_str()?)?.into());
    }
    from_python(chart.py(), chart, "a chart is a note hash, or has one of hash, md5 and alphaBeatmapId")
}

/// A value of Python that JSON has.
fn from_python<T: DeserializeOwned>(py: Python<'_>, value: &Bound<'_, PyAny>, what: &str) -> PyResult<T> {
    let text: String = py.import("json")?.call_method1("dumps", (value,))?.extract()?;
    serde_json::from_str(&text).map_err(|error| PyValueError::new_err(format!("{what}: {error}")))
}

/// The value of Python for some JSON.
fn parsed<'py>(py: Python<'py>, json: &Json) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (json.get(),))
}

/// The value of Python for a value that is serialised.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let json = serde_json::value::to_raw_value(value).map_err(value_error)?;
    parsed(py, &json)
}
