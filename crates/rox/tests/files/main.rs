//! Tests of the public API of the crate.

#![cfg(test)]

mod damage;
mod document;
mod document_reader;
mod library;
mod limits;
mod support;
