//! The commands that keep Meilisearch nodes equal to PostgreSQL.
//!
//! Each node is independent: it has its own index, its own checkpoint in it, and its own writers. Three locks of
//! PostgreSQL keep those apart, by the URL of the node:
//!
//! - `Sync` is held by a `sync` for as long as it runs, so that one process follows the catalogue;
//! - `Rebuild` is held by a rebuild for as long as it runs, so that one process fills the new index;
//! - `Write` is held for one pass of `sync`, and for the end of a rebuild: whoever writes to the live index.
//!
//! A `sync --follow` so goes on while a rebuild fills the other index. The swap loses nothing, and nothing that was
//! computed before it is written after it, because of this:
//!
//! - A pass takes `Write`, and only then reads the checkpoint of the live index, the changes and the sets, and it
//!   gives `Write` back when its last task has succeeded and the checkpoint is set. What it writes was read under
//!   the lock that it is written under.
//! - A rebuild takes `Write`, applies to the new index every change up to the horizon of then, and swaps, all under
//!   that lock. The checkpoint of the new index is therefore at least the one that any earlier pass could set on the
//!   old one: a horizon never goes back. The next pass reads the new one's, and goes on from it.
//! - A process that dies gives up its locks with its connection, and leaves tasks in the queue of the node.
//!   Meilisearch does them in their order, so whatever the next writer sends comes after them. Were one of them the
//!   swap of a rebuild, the next pass may have read the checkpoint of the old index: a lower or equal one, from which
//!   it applies some changes once more. Sets are always written as they are in PostgreSQL at the time, and a
//!   checkpoint is set after all that it stands for, so doing anything again does no harm.
//! - A process that lives and loses its connection has lost its locks. It asks for them right before every request
//!   that writes, and once a second otherwise, and ends. What remains is a request that was on its way at that
//!   moment: Meilisearch has no way to refuse it. `verify --search` would find what it did, were it ever to come
//!   after the next writer's.

mod node;
mod pass;
mod rebuild;
mod sync;
mod verify;

pub(crate) use rebuild::rebuild;
pub(crate) use sync::sync;
pub(crate) use verify::verify;

use anyhow::{Context, Result, ensure};
use chart_index_search::{IndexWriter, MeilisearchArguments};

/// A writer to each node.
///
/// # Errors
/// No node is named, or the nodes and keys do not go together.
pub(crate) fn writers(arguments: &MeilisearchArguments) -> Result<Vec<IndexWriter>> {
    let nodes = arguments.nodes()?;
    ensure!(!nodes.is_empty(), "no Meilisearch node: set MEILISEARCH_URL or --meilisearch-url");
    nodes.iter().map(|node| IndexWriter::new(node).with_context(|| node.url.to_string())).collect()
}
