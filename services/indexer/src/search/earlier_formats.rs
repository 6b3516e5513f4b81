//! Deletes the indexes of earlier formats, which an upgrade leaves behind.

use std::time::Duration;

use anyhow::Result;
use chart_index_search::{IndexWriter, Lag};
use chart_index_store::{ProcessRole, Store};

use crate::search::node::Node;

/// No replica searches an index that lacks a change of this age. While nothing changes, an index without a
/// follower stays: replicas of its version search it.
const UNUSED_AFTER: Duration = Duration::from_hours(1);

/// Deletes the indexes of earlier formats on a node that no process follows or builds, and no replica searches.
pub(super) async fn delete_earlier_formats(store: &Store, writer: &IndexWriter) -> Result<()> {
    for earlier in writer.earlier_formats().await? {
        let node = Node::connect(store, &earlier).await?;
        let has_no_writer = node.locks.try_acquire(ProcessRole::Sync).await?
            && node.locks.try_acquire(ProcessRole::Rebuild).await?;
        if has_no_writer && is_unused(store, &earlier).await? {
            earlier.delete_index().await?;
            node.print(format_args!("deleted the index of format {}, which nothing uses", earlier.format()))?;
        }
    }
    Ok(())
}

async fn is_unused(store: &Store, writer: &IndexWriter) -> Result<bool> {
    let Some(position) = writer.read_position().await? else { return Ok(true) };
    Ok(Lag::read(store, position, None).await?.age() >= UNUSED_AFTER)
}
