//! What the tests of the workspace share: databases of their own, servers that may be killed, and the real
//! programs as child processes.
//!
//! Everything that is started here is stopped by its `Drop`, by its own process id.
#![expect(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a harness that cannot start ends the test, with the reason, and what it prints is shown with it"
)]

mod answer;
mod database;
mod library;
mod meilisearch;
mod programs;
mod proxy;
mod random;
mod redis;
mod servers;
mod waiting;

pub use answer::{Answer, Client};
pub use database::TestDatabase;
pub use library::{ChartSpec, Library};
pub use meilisearch::PrivateMeilisearch;
pub use programs::{IndexerRun, Service, ServiceOptions, indexer, indexer_command};
pub use proxy::Proxy;
pub use random::Random;
pub use redis::{PrivateRedis, PrivateRedisCluster, TestRedis};
pub use servers::{DataCopy, PrivatePostgres};
pub use waiting::within;

use std::path::{Path, PathBuf};

/// The root of the checkout.
pub fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies below the root").to_path_buf()
}

/// The project's own sample library.
pub fn samples() -> PathBuf {
    workspace_root().join("samples")
}

/// The real charts beside the checkout, or at `CHARTS_DIR`. A test that calls this is marked with `#[ignore]`: it fails
/// where there are none.
pub fn real_charts() -> PathBuf {
    let folder = std::env::var_os("CHARTS_DIR")
        .map_or_else(|| workspace_root().join("../shared/charts"), PathBuf::from);
    assert!(folder.join("alpha").is_dir(), "no real charts at {}", folder.display());
    folder
}
