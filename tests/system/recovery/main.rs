//! Upgrades and restores: replicas serve while the schema is migrated, and a restored dump gives the same
//! responses. The long forms are run by `make test-full`.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test panics if its set-up fails, and prints what it measured"
)]

mod backup;
mod catalogue;
mod compose_backup;
mod index_format;
mod lineage;
mod lost_state;
mod migrations;
mod responses;
mod restore;
mod versions;

use std::time::Duration;

use chart_index_tests::{Service, within};

/// Maximum time until a replica is ready, or until HAProxy notices that, beyond the configured times.
const TIMEOUT: Duration = Duration::from_secs(20);

async fn wait_until_ready(replica: &Service) {
    within(TIMEOUT, async || is_ready(replica).await.then_some(())).await;
}

async fn is_ready(replica: &Service) -> bool {
    replica.private_client().get("/readyz").await.status == 200
}
