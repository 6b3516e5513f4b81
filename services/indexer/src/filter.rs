//! `chart-indexer filter`: the hash filter, with which clients tell without a request which charts the index
//! does not know (docs/formats/hash-filter.md).

use std::convert::Infallible;
use std::time::Duration;

use anyhow::{Context, Result};
use chart_index_cli::Causes;
use chart_index_client::HashFilter;
use chart_index_store::{HashFilterState, NewHashFilter, Store};
use chart_index_telemetry::print;
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::backoff::retry_store_call;
use crate::clock::now_ms;
use crate::report::plural;
use crate::stdout;

/// This many changed charts make a new filter due, whatever its size and age.
const MANY_CHANGES: u64 = 1_000;
/// So does this share of the charts of the filter, in percent.
const MANY_PERCENT: u64 = 1;
/// A filter of this age is due after any change.
const MAX_AGE: Duration = Duration::from_hours(1);
/// How often `follow` checks whether a filter is due.
const INTERVAL: Duration = Duration::from_mins(1);
/// Timeout of [`build_after_interruption`]: the process must end soon, even during an outage.
const INTERRUPTED_TIMEOUT: Duration = Duration::from_secs(5);

/// When a new filter is built, if there is one already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// After any change: without it a client would not find an added chart.
    AnyChange,
    /// After changes of 1,000 charts or 1 % of the charts, or after any change if the filter is an hour old.
    ManyChanges,
}

/// Builds the filter if a chart has changed since the last one, and prints what was done.
pub(crate) async fn filter(store: &Store) -> Result<()> {
    match build(store, Due::AnyChange).await? {
        Some(built) => stdout::print(format_args!(
            "hash filter of {} built at sequence {}: {} bytes",
            plural(built.hashes, "chart"),
            built.sequence,
            built.bytes.len()
        ))?,
        None => stdout::print("no chart has changed since the last hash filter")?,
    }
    Ok(())
}

/// Builds and stores the filter if it is due, and returns it.
///
/// # Errors
/// PostgreSQL is unavailable for longer than store calls are retried, or the filter could not be built.
pub(crate) async fn build(store: &Store, due: Due) -> Result<Option<NewHashFilter>> {
    build_if_due(store, due).await.context("cannot build the hash filter")
}

/// Builds the filter after a command was interrupted or failed. Makes one short attempt, and prints what is
/// left to do if it fails.
pub(crate) async fn build_after_interruption(store: &Store) {
    let built = tokio::time::timeout(INTERRUPTED_TIMEOUT, build(store, Due::AnyChange)).await;
    if !matches!(built, Ok(Ok(_))) {
        print(
            Level::WARN,
            "the last changes are stored, but may be missing in the hash filter: the next command that writes, or \
             `chart-indexer follow`, adds them",
        );
    }
}

async fn build_if_due(store: &Store, due: Due) -> Result<Option<NewHashFilter>> {
    let never = CancellationToken::new();
    let last = retry_store_call(&never, || store.hash_filter_state(MANY_CHANGES)).await?;
    if last.is_some_and(|last| !is_due(&last, due, now_ms())) {
        return Ok(None);
    }
    let read = async || {
        let mut keys = Vec::new();
        let sequence = store.known_hashes(|hash| keys.push(HashFilter::key(hash))).await?;
        Ok((sequence, keys))
    };
    let (sequence, keys) = retry_store_call(&never, read).await?;
    let filter = tokio::task::spawn_blocking(move || HashFilter::build(sequence, keys)).await??;
    let built =
        NewHashFilter { sequence, hashes: filter.count, built_at_ms: now_ms(), bytes: filter.to_bytes()? };
    retry_store_call(&never, || store.put_hash_filter(&built)).await?;
    Ok(Some(built))
}

fn is_due(last: &HashFilterState, due: Due, now_ms: i64) -> bool {
    let enough = match due {
        Due::AnyChange => 1,
        Due::ManyChanges if is_old(last, now_ms) => 1,
        Due::ManyChanges => (last.hashes * MANY_PERCENT / 100).clamp(1, MANY_CHANGES),
    };
    last.changed_charts >= enough
}

fn is_old(last: &HashFilterState, now_ms: i64) -> bool {
    let age_ms = u64::try_from(now_ms - last.built_at_ms).unwrap_or_default();
    Duration::from_millis(age_ms) >= MAX_AGE
}

/// Builds the filter whenever it is due: after an ingest that was killed, or after writes of another version.
pub(crate) async fn follow(store: Store) -> Infallible {
    loop {
        match build(&store, Due::ManyChanges).await {
            Ok(Some(NewHashFilter { sequence, hashes, .. })) => {
                tracing::info!(sequence, hashes, "hash filter built");
            }
            Ok(None) => (),
            Err(error) => {
                let error = Causes(error.as_ref()).to_string();
                tracing::warn!(error, "hash filter not built");
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Checks the last filter, if there is one. Returns what is wrong: it is damaged, or lacks charts that were
/// known at its sequence.
pub(crate) async fn verify(store: &Store) -> Result<Option<String>> {
    let Some(sequence) = store.last_hash_filter().await? else { return Ok(None) };
    // Another filter may have replaced it.
    let Some(bytes) = store.hash_filter(sequence).await? else { return Ok(None) };
    let filter = match HashFilter::from_bytes(&bytes) {
        Ok(filter) => filter,
        Err(error) => return Ok(Some(format!("hash filter {sequence}: {error}"))),
    };
    let (mut lacking, mut after) = (0, 0);
    loop {
        let page = store.charts_of_feed(after, sequence).await?;
        let Some((last, _)) = page.last() else { break };
        after = *last;
        lacking += page.iter().filter(|(_, hash)| !filter.may_contain(*hash)).count() as u64;
    }
    let finding = || format!("hash filter {sequence}: lacks {}", plural(lacking, "known chart"));
    Ok((lacking > 0).then(finding))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_is_due_after_many_changes_or_an_hour() {
        let hour_ms = 3_600_000;
        for (hashes, changed_charts, age_ms, expected) in [
            (0, 0, 0, [false, false]),
            (0, 1, 0, [true, true]),
            (1_000, 9, 0, [true, false]),
            (1_000, 10, 0, [true, true]),
            (1_000_000, 999, 0, [true, false]),
            (1_000_000, 1_000, 0, [true, true]),
            (1_000_000, 1, hour_ms - 1, [true, false]),
            (1_000_000, 1, hour_ms, [true, true]),
            (1_000_000, 0, 24 * hour_ms, [false, false]),
            // The clock was set back.
            (1_000_000, 1, -hour_ms, [true, false]),
        ] {
            let last = HashFilterState { hashes, changed_charts, built_at_ms: 5 * hour_ms };
            let found =
                [Due::AnyChange, Due::ManyChanges].map(|due| is_due(&last, due, 5 * hour_ms + age_ms));
            assert_eq!(found, expected, "{last:?} after {age_ms} ms");
        }
    }
}
