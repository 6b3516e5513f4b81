//! What several benchmarks share: a generator of synthetic catalogues, CPU time and memory of processes, and a proxy that
//! records searches.

pub mod catalogue;
pub mod processes;
mod recording_proxy;

pub use recording_proxy::RecordingProxy;
