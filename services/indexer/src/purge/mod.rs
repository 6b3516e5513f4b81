//! The part of `chart-indexer follow` that purges a CDN (docs/operations/cdn.md).
//!
//! Purges follow the change feed: at least once, in order. A replica may respond with the earlier state for a
//! few seconds after a change has its number, and the CDN may keep that response, so each tag is purged again
//! twice. The position that is stored is behind these.

mod purger;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use chart_index_domain::{CataloguePoll, Entity, Position};
use chart_index_instrumentation::meter;
use chart_index_store::{Backlog, ChangesError, Store};
use opentelemetry::KeyValue;
use opentelemetry::metrics::Counter;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::backoff::{PURGE, Pauses};
use crate::metrics::BacklogGauges;

pub(crate) use self::purger::{PurgeArguments, Purger};

/// When tags are purged again after the first time. A replica learns of a change when it next polls, within
/// about a second, or within three if it reads a standby that lags; one whose polls fail does not show
/// responses to be current after three seconds.
const REPEATS: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(6)];
/// Maximum time between two reads of the change feed.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// The tag of every response.
const ALL: &str = "all";
/// The tag of responses that may show any chart or chartset.
const SHARED: &str = "shared";

/// Follows the change feed, and purges what has changed. Never returns.
pub(crate) async fn follow(store: Store, purger: Purger, mut numbers: watch::Receiver<u64>) -> Infallible {
    let mut follower = Follower {
        store,
        purger,
        backlog: BacklogGauges::of_purges(&meter()),
        purges: meter()
            .u64_counter("chart_index.purge.tags")
            .with_unit("{tag}")
            .with_description("Tags that were purged from the CDN, the repetitions included, by outcome")
            .build(),
        waiting_since: None,
    };
    let mut pauses = Pauses::new(PURGE);
    loop {
        let Err(error) = follower.follow_until_error(&mut numbers, &mut pauses).await;
        let _ = writeln!(std::io::stderr(), "purge: {error:#}");
        tokio::time::sleep(pauses.next()).await;
    }
}

struct Follower {
    store: Store,
    purger: Purger,
    backlog: Arc<BacklogGauges>,
    purges: Counter<u64>,
    /// When the oldest change was read that is not purged.
    waiting_since: Option<Instant>,
}

/// Tags that are purged again.
struct Repeat {
    at: Instant,
    tags: Arc<[String]>,
    /// The position that is stored afterwards.
    then: Option<Position>,
}

impl Follower {
    async fn follow_until_error(
        &mut self,
        numbers: &mut watch::Receiver<u64>,
        pauses: &mut Pauses,
    ) -> Result<Infallible> {
        let mut position = self.first_position().await?;
        let mut repeats = VecDeque::new();
        loop {
            let poll = self.store.poll_catalogue(position.sequence).await?;
            let is_lost = match self.store.chartset_changes(position, 0).await {
                Ok(_) => false,
                Err(ChangesError::RebuildNeeded(_)) => true,
                Err(ChangesError::Read(error)) => return Err(error.into()),
            };
            let tags: Arc<[String]> =
                if is_lost { [ALL.to_owned()].into() } else { tags(&poll, position.sequence).into() };
            position = poll.position;
            if !tags.is_empty() {
                self.waiting_since.get_or_insert_with(Instant::now);
                self.set_backlog(tags.len());
                self.purge(&tags).await?;
                let now = Instant::now();
                let repeat = |(index, after)| Repeat {
                    at: now + after,
                    tags: Arc::clone(&tags),
                    then: (index + 1 == REPEATS.len()).then_some(position),
                };
                repeats.extend(REPEATS.into_iter().enumerate().map(repeat));
                repeats.make_contiguous().sort_by_key(|repeat| repeat.at);
            }
            self.waiting_since = None;
            self.set_backlog(0);
            pauses.reset();
            while let Some(Repeat { tags, then, .. }) =
                repeats.pop_front_if(|repeat| repeat.at <= Instant::now())
            {
                self.purge(&tags).await?;
                if let Some(position) = then {
                    self.store.set_purge_position(position).await?;
                }
            }
            let next = repeats.front().map_or(MAX_PAUSE, |repeat| repeat.at.duration_since(Instant::now()));
            let _ = tokio::time::timeout(next.min(MAX_PAUSE), numbers.changed()).await;
        }
    }

    /// The stored position. Before the first purge that of the feed: the CDN has nothing with tags yet.
    async fn first_position(&self) -> Result<Position> {
        if let Some(position) = self.store.purge_position().await? {
            return Ok(position);
        }
        let position = self.store.feed_position().await?;
        self.store.set_purge_position(position).await?;
        Ok(position)
    }

    async fn purge(&self, tags: &[String]) -> Result<()> {
        let purged = self.purger.purge(tags).await;
        let outcome = if purged.is_ok() { "success" } else { "error" };
        self.purges.add(tags.len() as u64, &[KeyValue::new("chart_index.outcome", outcome)]);
        purged
    }

    fn set_backlog(&self, changes: usize) {
        let oldest_age = self.waiting_since.map(|since| since.elapsed());
        self.backlog.set(Some(Backlog { changes: changes as u64, oldest_age }));
    }
}

/// The tags of what has changed after a sequence.
fn tags(poll: &CataloguePoll, after: u64) -> Vec<String> {
    if poll.complete_after > after {
        return vec![ALL.to_owned()];
    }
    let mut tags: Vec<String> = poll
        .changes
        .iter()
        .map(|change| match change.entity {
            Entity::Chart(hash) => hash.to_string(),
            Entity::Chartset(id) => id.to_string(),
        })
        .collect();
    if poll.last_removal > after {
        tags.insert(0, SHARED.to_owned());
    }
    tags
}

#[cfg(test)]
mod tests {
    use chart_index_domain::{CatalogueChange, ChartsetId, Lineage, NoteHash, Origin};

    use super::*;

    #[test]
    fn changes_purge_their_entities_and_removals_what_is_shared() {
        let change = |sequence, entity| CatalogueChange { sequence, entity, last_removal: 0 };
        let mut poll = CataloguePoll {
            lineage: Lineage::from_bytes([1; 8]),
            position: Position { origin: Origin(1), sequence: 8 },
            last_removal: 5,
            oldest_pending: None,
            changes: vec![
                change(7, NoteHash::from_bytes([0xab; 32]).into()),
                change(8, ChartsetId::from_bytes([0x12; 8]).into()),
            ],
            complete_after: 6,
        };
        let entities = ["ab".repeat(32), "12".repeat(8)];
        assert_eq!(tags(&poll, 6), entities);
        assert_eq!(tags(&poll, 5), ["all"], "more has changed than a poll returns");
        poll.last_removal = 7;
        assert_eq!(tags(&poll, 6), ["shared", &entities[0], &entities[1]]);
    }
}
