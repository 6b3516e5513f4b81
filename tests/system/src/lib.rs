//! The test harness of the system tests, beyond that of `chart_index_tests`: proxies, Prometheus, the services
//! of docker-compose.yml, and load at a fixed rate.
//!
//! Every process that is started here is ended by the `Drop` of its value.
#![expect(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test harness panics if it cannot start something, and prints how long starts take"
)]

mod compose;
mod haproxy;
pub mod network;
mod open_loop;
mod prometheus;

pub use compose::{ComposeProject, Connection};
pub use haproxy::{PrivateHaproxy, haproxy_program};
pub use network::Networks;
pub use open_loop::{Load, LoadOutcome, OpenLoop, Sample, Senders};
pub use prometheus::{PrivatePrometheus, Rule};
