//! `chart-indexer remove` and `restore`.

use std::io::Write;

use anyhow::{Result, bail};
use chart_index_store::{RemovalOutcome, Store};

use crate::announcements::Announcer;
use crate::cli::Entry;
use crate::ingest::now_ms;

/// Takes an entry out of the index.
///
/// # Errors
/// The index does not know it, or the store failed.
pub(crate) async fn remove(store: &Store, announcer: &Announcer, entry: Entry) -> Result<()> {
    let outcome = match entry {
        Entry::Chart { hash } => store.remove_chart(hash, now_ms()).await?,
        Entry::Chartset { id } => store.remove_chartset(id, now_ms()).await?,
    };
    announce(store, announcer, entry).await?;
    tell(entry, outcome, "removed", "was removed before")
}

/// Takes back a removal.
///
/// # Errors
/// The index does not know the entry, or the store failed.
pub(crate) async fn restore(store: &Store, announcer: &Announcer, entry: Entry) -> Result<()> {
    let outcome = match entry {
        Entry::Chart { hash } => store.restore_chart(hash, now_ms()).await?,
        Entry::Chartset { id } => store.restore_chartset(id, now_ms()).await?,
    };
    announce(store, announcer, entry).await?;
    tell(entry, outcome, "restored", "was not removed")
}

/// Also where nothing had to be done: the run that did it may have ended before it could say so.
async fn announce(store: &Store, announcer: &Announcer, entry: Entry) -> Result<()> {
    let charts = match entry {
        Entry::Chart { hash } => vec![hash],
        Entry::Chartset { id } => store.chart_hashes(id).await?,
    };
    announcer.announce_and_confirm(&charts).await
}

fn tell(entry: Entry, outcome: RemovalOutcome, done: &str, already: &str) -> Result<()> {
    let name = match entry {
        Entry::Chart { hash } => format!("chart {hash}"),
        Entry::Chartset { id } => format!("chartset {id}"),
    };
    let told = match outcome {
        RemovalOutcome::Changed => done,
        RemovalOutcome::Unchanged => already,
        RemovalOutcome::NotFound => bail!("{name} is not in the index"),
    };
    writeln!(std::io::stdout(), "{name} {told}")?;
    Ok(())
}
