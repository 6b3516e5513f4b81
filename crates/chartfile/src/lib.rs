//! chartfile
