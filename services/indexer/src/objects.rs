//! `chart-indexer objects`: moves files, and deletes the objects that no chart needs.

use std::time::Duration;

use anyhow::{Result, bail};
use chart_index_store::{FilePlace, Store};
use tokio_util::sync::CancellationToken;

use crate::backoff::retry_store_call;
use crate::report::plural;
use crate::stdout;

/// Moves all ROX files.
///
/// # Errors
/// The objects of some files are missing or damaged, after all others are moved; or a store failed.
pub(crate) async fn migrate(store: &Store, to_postgresql: bool) -> Result<()> {
    let place = if to_postgresql { FilePlace::PostgreSql } else { FilePlace::Objects };
    // Never cancelled: an interrupted run is dropped.
    let stop = CancellationToken::new();
    let (mut moved, mut lost, mut after) = (0, 0, None);
    while let Some(batch) = retry_store_call(&stop, || store.move_files_after(place, after)).await? {
        after = Some(batch.last);
        moved += batch.moved;
        lost += batch.lost.len() as u64;
        for (hash, reason) in batch.lost {
            stdout::print(format_args!("chart {hash}: {reason}"))?;
        }
    }
    let place = if to_postgresql { "PostgreSQL" } else { "the object store" };
    stdout::print(format_args!("{} moved to {place}", plural(moved, "file")))?;
    if lost > 0 {
        bail!("{} not moved", plural(lost, "file"));
    }
    Ok(())
}

/// Deletes the objects that no chart needs and that are older than the grace period.
///
/// # Errors
/// A store failed.
pub(crate) async fn gc(store: &Store, grace: Duration) -> Result<()> {
    let collected = store.collect_objects(grace).await?;
    stdout::print(format_args!(
        "{} with {} bytes, {} with {} bytes deleted",
        plural(collected.listed, "object"),
        collected.listed_bytes,
        collected.deleted,
        collected.deleted_bytes
    ))?;
    Ok(())
}
