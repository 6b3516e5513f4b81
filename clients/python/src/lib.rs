//! The Python module `chart_index._native`: the Rust client, with JSON as Python has it.

mod cache;
mod errors;
mod files;
mod index;

use pyo3::pymodule;

/// The Rust client of a chart index.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::files::{HashedFolder, hash_file, hash_folder};
    #[pymodule_export]
    use crate::index::{ChartIndex, Chartsets, HashFilter};
}
