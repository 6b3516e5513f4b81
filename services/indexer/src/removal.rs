//! `chart-indexer remove`, `removals` and `restore`.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use chart_index_domain::{ChartsetId, Entity, NoteHash};
use chart_index_store::{Removal, RemovalOutcome, Store};
use serde::{Deserialize, Serialize};

use crate::cli::{Entry, RemoveArguments};
use crate::clock::now_ms;
use crate::filter::{self, Due};
use crate::stdout;

/// Maximum number of removals in a transaction, which ingests wait for.
const BATCH: usize = 200;

/// A line of the list of removals (docs/operations/removals.md, "List").
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
enum ListLine {
    Chart {
        chart_hash: NoteHash,
        /// Without it, now.
        removed_at_ms: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        erased: bool,
    },
    Chartset {
        id: ChartsetId,
        removed_at_ms: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        erased: bool,
    },
}

impl From<Removal> for ListLine {
    fn from(Removal { entity, removed_at_ms, reason, erased }: Removal) -> Self {
        let removed_at_ms = Some(removed_at_ms);
        match entity {
            Entity::Chart(chart_hash) => Self::Chart { chart_hash, removed_at_ms, reason, erased },
            Entity::Chartset(id) => Self::Chartset { id, removed_at_ms, reason, erased },
        }
    }
}

impl From<ListLine> for Removal {
    fn from(line: ListLine) -> Self {
        let (entity, removed_at_ms, reason, erased) = match line {
            ListLine::Chart { chart_hash, removed_at_ms, reason, erased } => {
                (Entity::Chart(chart_hash), removed_at_ms, reason, erased)
            }
            ListLine::Chartset { id, removed_at_ms, reason, erased } => {
                (Entity::Chartset(id), removed_at_ms, reason, erased)
            }
        };
        Self { entity, removed_at_ms: removed_at_ms.unwrap_or_else(now_ms), reason, erased }
    }
}

/// Removes an entry, or those of a list.
///
/// # Errors
/// The list is not valid, and nothing was removed; or the store failed.
pub(crate) async fn remove(store: &Store, arguments: RemoveArguments) -> Result<()> {
    let RemoveArguments { from, reason, erase, entry } = arguments;
    let mut removals = match (&from, entry) {
        (_, Some(entry)) => {
            vec![Removal { entity: entity(entry), removed_at_ms: now_ms(), reason, erased: erase }]
        }
        (Some(file), None) => read_list(file)?,
        (None, None) => Vec::new(),
    };
    for removal in &mut removals {
        removal.erased |= erase;
    }
    let outcomes = if store.objects().is_some() {
        // An object is deleted while a row names it, so that an interrupted run leaves none behind.
        let not_erased = |removal: &Removal| Removal { erased: false, ..removal.clone() };
        let outcomes = add(store, &removals.iter().map(not_erased).collect::<Vec<_>>()).await?;
        let withdrawn = store.withdraw_objects().await;
        withdrawn.context("removed, but objects are not deleted yet: run this command again")?;
        removals.retain(|removal| removal.erased);
        add(store, &removals).await?;
        outcomes
    } else {
        add(store, &removals).await?
    };
    match (entry, &outcomes[..]) {
        (Some(entry), [outcome]) => print_outcome(
            entry,
            match outcome {
                RemovalOutcome::NotStored => "removed, and is not in the index yet",
                _ if erase => "removed and erased",
                RemovalOutcome::Removed => "removed",
                RemovalOutcome::AlreadyRemoved => "was already removed",
            },
        ),
        _ => print_summary(&outcomes),
    }
}

/// Adds entries to the list of removals.
async fn add(store: &Store, removals: &[Removal]) -> Result<Vec<RemovalOutcome>> {
    let mut outcomes = Vec::with_capacity(removals.len());
    for batch in removals.chunks(BATCH) {
        outcomes.append(&mut store.remove(batch, now_ms()).await?);
    }
    Ok(outcomes)
}

/// Prints the list of removals.
///
/// # Errors
/// The store failed.
pub(crate) async fn export(store: &Store) -> Result<()> {
    let removals = store.removals().await?;
    let mut output = BufWriter::new(std::io::stdout().lock());
    for removal in removals {
        stdout::write_json(&mut output, &ListLine::from(removal))?;
    }
    output.flush()?;
    Ok(())
}

/// Restores a removed entry.
///
/// # Errors
/// The store failed, or the hash filter could not be built.
pub(crate) async fn restore(store: &Store, entry: Entry) -> Result<()> {
    let was_removed = store.restore(entity(entry), now_ms()).await?;
    filter::build(store, Due::AnyChange).await?;
    print_outcome(entry, if was_removed { "restored" } else { "was not removed" })
}

const fn entity(entry: Entry) -> Entity {
    match entry {
        Entry::Chart { hash } => Entity::Chart(hash),
        Entry::Chartset { id } => Entity::Chartset(id),
    }
}

/// Reads a list completely, so that nothing is removed if a line of it is not valid.
fn read_list(path: &Path) -> Result<Vec<Removal>> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    let mut removals = Vec::new();
    for (index, line) in BufReader::new(file).lines().enumerate() {
        let line = line.with_context(|| format!("cannot read {name}"))?;
        if line.trim().is_empty() {
            continue;
        }
        let parsed = serde_json::from_str::<ListLine>(&line);
        let parsed = parsed.with_context(|| format!("line {} of {name} is not a removal", index + 1))?;
        removals.push(parsed.into());
    }
    Ok(removals)
}

fn print_outcome(entry: Entry, outcome: &str) -> Result<()> {
    Ok(stdout::print(format_args!("{} {outcome}", entity(entry)))?)
}

fn print_summary(outcomes: &[RemovalOutcome]) -> Result<()> {
    let count = |outcome| outcomes.iter().filter(|other| **other == outcome).count();
    let not_stored = count(RemovalOutcome::NotStored);
    let (removed, already) =
        (count(RemovalOutcome::Removed) + not_stored, count(RemovalOutcome::AlreadyRemoved));
    stdout::print(format_args!(
        "{removed} removed ({not_stored} not in the index yet), {already} already removed"
    ))?;
    Ok(())
}
