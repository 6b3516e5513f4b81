//! The test harness of the workspace: a database per test, private servers that a test may kill, and the
//! programs as child processes.
//!
//! Every process that is started here is ended by the `Drop` of its value.
#![expect(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test harness panics if it cannot start something, and prints what the programs log"
)]

mod client;
mod database;
pub mod http_server;
mod library;
mod meilisearch;
mod otlp_receiver;
mod polling;
mod postgres;
mod programs;
mod proxy;
mod random;
mod redis;
mod shared;
mod telemetry;

pub use client::{Client, Response, http_client_builder, paths_of_all_kinds};
pub use database::TestDatabase;
pub use library::{ChartSpec, Library, notes_of_preview};
pub use meilisearch::PrivateMeilisearch;
pub use otlp_receiver::{OtlpReceiver, ReceivedSpan};
pub use polling::within;
pub use postgres::{DataCopy, PrivatePostgres};
pub use programs::{
    IndexerRun, ReplicaAddresses, RunningIndexer, Service, ServiceOptions, fixed_address, generate_catalogue,
    hash_command, indexer, indexer_command, program, program_command, send_signal,
};
pub use proxy::Proxy;
pub use random::Random;
pub use redis::{PrivateRedis, PrivateRedisCluster, TestRedis};
pub use shared::Shared;
pub use telemetry::{RecordedSpan, RecordedTelemetry, Series, series};

use std::path::{Path, PathBuf};

/// The root of the checkout that this test was built from.
pub fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies below the root").to_path_buf()
}

/// The sample library of the project.
pub fn samples() -> PathBuf {
    workspace_root().join("samples")
}

/// The real charts: at `CHARTS_DIR`, by default in a folder next to the checkout. Tests that call this are
/// `#[ignore]`d, because it panics if there are none.
pub fn real_charts() -> PathBuf {
    let folder = std::env::var_os("CHARTS_DIR")
        .map_or_else(|| workspace_root().join("../shared/charts"), PathBuf::from);
    assert!(folder.join("alpha").is_dir(), "no real charts at {}", folder.display());
    folder
}
