//! What several benchmarks share: a generator of synthetic catalogues, and a proxy that records searches.

pub mod catalogue;
mod recording_proxy;

pub use recording_proxy::RecordingProxy;
