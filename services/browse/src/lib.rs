//! browse
