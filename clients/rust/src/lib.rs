//! The client of a chart index that programs of others use.

#![doc = include_str!("../README.md")]

mod body;
mod cache;
mod error;
mod files;
mod hash_filter;
mod http;
mod lookup;
mod retries;
mod search;
pub mod types;

pub use body::read_body;
pub use cache::{Cache, CachedResponse, MemoryCache};
pub use chart_index_chartfile::RefusalKind;
pub use chart_index_domain::{ChartsetId, FileMd5, KeyCount, NoteHash, Variant};
pub use error::{Error, InvalidResponse, Problem};
pub use files::{FileError, Hashed, HashedFolder, LocalChart, RefusedFile, hash_file, hash_folder};
pub use hash_filter::{HashFilter, HashFilterBuildError, InvalidHashFilter};
pub use http::{Builder, ChartIndex, parse_base};
pub use lookup::{ChartKey, Include};
pub use retries::Pause;
pub use search::Chartsets;
