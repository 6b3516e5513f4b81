//! Stores a generated catalogue in a database.

use std::sync::Arc;

use anyhow::Result;
use chart_index_store::{PutOutcome, Store, StoreError};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinSet;

use super::{CatalogueOptions, Sets, planned};

/// The number of concurrent transactions: enough to keep PostgreSQL busy while one waits for the disk.
const WRITERS: usize = 8;

/// Stores the catalogue, each chartset in one transaction, and shows the progress on standard error. Chartsets
/// that are stored already stay as they are, so that an interrupted fill can be repeated.
///
/// # Errors
///
/// When the database does not store a chartset.
pub async fn fill(store: &Store, options: CatalogueOptions) -> Result<()> {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {per_sec}, {eta} left")?;
    let bar = ProgressBar::new(options.chartsets()).with_style(style);
    let mut writers: JoinSet<Result<PutOutcome, StoreError>> = JoinSet::new();
    let sets = Arc::new(Sets::new(options));
    for planned in planned(options) {
        if writers.len() == WRITERS
            && let Some(stored) = writers.join_next().await
        {
            stored??;
            bar.inc(1);
        }
        let (store, sets) = (store.clone(), Arc::clone(&sets));
        writers.spawn(async move { store.put_chartset(&sets.draft(planned), planned.updated_at_ms).await });
    }
    while let Some(stored) = writers.join_next().await {
        stored??;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}
