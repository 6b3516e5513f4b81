//! What the programs of this package share: a generator of synthetic catalogues.

pub mod catalogue;
