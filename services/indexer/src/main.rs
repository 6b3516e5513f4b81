//! indexer
fn main() {}
