//! Other instances of the index.

use std::time::Duration;

use chart_index_client::{Builder, ChartIndex};
use chart_index_telemetry::print;
use reqwest::Url;
use tracing::Level;

pub(crate) const USER_AGENT: &str = concat!("chart-indexer/", env!("CARGO_PKG_VERSION"));
/// Timeout for a request with its response, unless that is a file of any size.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

/// The instance with this base address, which says when it waits.
pub(crate) fn instance(base: &Url) -> Builder {
    let host = base.host_str().unwrap_or_default().to_owned();
    ChartIndex::builder(base.as_str(), USER_AGENT).on_pause(move |pause| {
        let (status, seconds) = (pause.status, pause.duration.as_secs());
        print(Level::INFO, format_args!("{host} refuses requests with {status}: continues in {seconds} s"));
    })
}
