//! The commands `sync`, `rebuild` and `verify --search`, and the part of `follow` that keeps Meilisearch nodes
//! in sync with PostgreSQL.
//!
//! Each node is independent: it has its own index with its own position in the change feed, and its own
//! writers. So is each index format on a node: a new version builds and follows an index of its own beside that
//! of an earlier version. Three locks per index coordinate its writers. They are advisory locks of PostgreSQL,
//! keyed by the URL of the index:
//!
//! | Lock | Held by | For | So that |
//! |---|---|---|---|
//! | `Sync` | `sync`, `follow` | its whole run | only one process follows the catalogue |
//! | `Rebuild` | `rebuild` | its whole run | only one process fills the new index |
//! | `Write` | `sync`, `follow` | one pass | only one process writes to the live index |
//! | `Write` | `rebuild` | the last changes and the swap | only one process writes to the live index |
//!
//! `follow` therefore continues while a rebuild fills the new index:
//!
//! ```text
//! follow   ── pass ── pass ── pass ── pass ─┐ waits for Write ┌─ pass on the new index ──
//! rebuild  ── fill the new index ── catch up ── Write: catch up, check, swap ─┘
//! ```
//!
//! # Why no change is lost, and none is overwritten by an older one
//!
//! - A pass acquires `Write` before it reads the position of the live index, the changes and the chartsets. It
//!   releases `Write` after its last task has succeeded and the position is set. So everything that it writes
//!   was read under the same lock.
//! - A rebuild acquires `Write`, applies all changes that have numbers to the new index, and swaps the indexes,
//!   all under this lock. Numbers only increase, so the position of the new index is at least that of the old
//!   one, unless the old one is of another feed. The next pass reads the position of the new index and
//!   continues from it.
//! - A process that dies releases its locks with its connection, but may leave tasks in the queue of the node.
//!   Meilisearch processes tasks in order, so those of the next writer come after them. If one of them is the
//!   swap of a rebuild, the next pass may have read the position of the old index, which is lower or equal, and
//!   applies some changes a second time. That is harmless: chartsets are always written in their state in the
//!   feed or a later one, and a position is set after everything that it covers.
//! - A pass ends without setting the position if the index no longer has the one that the pass began with: the
//!   node was restarted with the data of an earlier time, or such a swap came in between. The next pass applies
//!   what the index lacks.
//! - A rebuild numbers all changes after it has read the last chartset. So an index has no change without a
//!   number, and if PostgreSQL loses one that it has, in a failover or a restore, its position is lost as well.
//!   A pass that failed may have written changes after the position: `follow` makes sure that they are not lost
//!   before it runs the next one.
//! - A process that loses its connection has lost its locks. It checks them before every write request, and
//!   once a second otherwise, and ends. Only a request that was already in flight cannot be prevented, since
//!   Meilisearch has no conditional writes. If it arrived after those of the next writer, `verify --search`
//!   would find the difference.

mod earlier_formats;
mod node;
mod pass;
mod rebuild;
mod sync;
mod verify;

pub(crate) use rebuild::rebuild;
pub(crate) use sync::{Follower, NodePosition, sync};
pub(crate) use verify::verify;

use anyhow::{Context, Result, ensure};
use chart_index_search::{IndexWriter, MeilisearchArguments};

/// Checks that the arguments name a node.
///
/// # Errors
/// No node is configured, or the numbers of nodes and keys do not match.
pub(crate) fn check_nodes(arguments: &MeilisearchArguments) -> Result<()> {
    let nodes = arguments.nodes()?;
    ensure!(!nodes.is_empty(), "no Meilisearch node: set MEILISEARCH_URL or --meilisearch-url");
    Ok(())
}

/// A writer for each node.
///
/// # Errors
/// The numbers of nodes and keys do not match, or the system has no root certificates for a node with TLS.
pub(crate) fn writers(arguments: &MeilisearchArguments) -> Result<Vec<IndexWriter>> {
    let nodes = arguments.nodes()?;
    nodes.iter().map(|node| IndexWriter::new(node).with_context(|| node.url.to_string())).collect()
}
