//! A generator of synthetic catalogues, for benchmarks and tests of load.

pub mod catalogue;
