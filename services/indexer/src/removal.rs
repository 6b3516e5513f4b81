//! `chart-indexer remove` and `restore`.

use std::io::Write;

use anyhow::{Result, bail};
use chart_index_store::{RemovalOutcome, Store};

use crate::change_feed;
use crate::cli::Entry;
use crate::clock::now_ms;
use crate::filter::{self, Due};

/// Removes an entry from the index.
///
/// # Errors
/// The entry is not in the index, or the store failed.
pub(crate) async fn remove(store: &Store, entry: Entry) -> Result<()> {
    let outcome = match entry {
        Entry::Chart { hash } => store.remove_chart(hash, now_ms()).await?,
        Entry::Chartset { id } => store.remove_chartset(id, now_ms()).await?,
    };
    // Even if nothing changed: an earlier run may have been interrupted before it did.
    change_feed::assign(store).await?;
    print_outcome(entry, outcome, "removed", "was already removed")
}

/// Restores a removed entry.
///
/// # Errors
/// The entry is not in the index, the store failed, or the hash filter could not be built.
pub(crate) async fn restore(store: &Store, entry: Entry) -> Result<()> {
    let outcome = match entry {
        Entry::Chart { hash } => store.restore_chart(hash, now_ms()).await?,
        Entry::Chartset { id } => store.restore_chartset(id, now_ms()).await?,
    };
    change_feed::assign(store).await?;
    filter::build(store, Due::AnyChange).await?;
    print_outcome(entry, outcome, "restored", "was not removed")
}

fn print_outcome(entry: Entry, outcome: RemovalOutcome, done: &str, already: &str) -> Result<()> {
    let name = match entry {
        Entry::Chart { hash } => format!("chart {hash}"),
        Entry::Chartset { id } => format!("chartset {id}"),
    };
    let outcome = match outcome {
        RemovalOutcome::Changed => done,
        RemovalOutcome::Unchanged => already,
        RemovalOutcome::NotFound => bail!("{name} is not in the index"),
    };
    writeln!(std::io::stdout(), "{name} {outcome}")?;
    Ok(())
}
