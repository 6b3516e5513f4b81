//! The metrics and spans of the cache.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../support/mod.rs"]
mod support;

/// The outcome of each read.
mod reads;
/// Spans of fills, and their links.
mod spans;
/// Memory, fills in flight, what is known of the catalogue.
mod state;

use std::sync::Arc;

use chart_index_cache::{Cache, CacheConfig, CacheConnections, CachedResponse, FillError};
use chart_index_domain::ReadError;
use chart_index_tests::RecordedTelemetry;

/// A cache without Redis and without polls.
fn memory_only(config: CacheConfig) -> Arc<Cache> {
    Cache::new(config, CacheConnections::disabled())
}

/// A fill that never ends.
async fn hanging() -> Result<CachedResponse, ReadError> {
    std::future::pending().await
}

type ReadResult = Result<CachedResponse, FillError>;

/// The reads of lookups so far, as `tier outcome` and their number.
fn reads(telemetry: &RecordedTelemetry) -> Vec<(String, f64)> {
    let series = telemetry.series().into_iter();
    let mut reads: Vec<_> = series
        .filter(|series| series.name == "chart_index_cache_requests_total" && series.value > 0.0)
        .map(|series| {
            assert_eq!(series.labels["chart_index_cache_group"], "lookup");
            let (tier, outcome) =
                (&series.labels["chart_index_cache_tier"], &series.labels["chart_index_outcome"]);
            (format!("{tier} {outcome}"), series.value)
        })
        .collect();
    reads.sort_by(|left, right| left.partial_cmp(right).unwrap());
    reads
}

#[track_caller]
fn assert_reads(telemetry: &RecordedTelemetry, expected: &[(&str, f64)]) {
    let expected: Vec<_> = expected.iter().map(|(read, number)| ((*read).to_owned(), *number)).collect();
    assert_eq!(reads(telemetry), expected);
}
