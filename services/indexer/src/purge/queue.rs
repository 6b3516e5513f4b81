//! The purges of a CDN that are to be sent, those of removals first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chart_index_domain::{CatalogueChange, CataloguePoll, Entity, Position};
use tokio::time::Instant;

use crate::metrics::Backlog;

/// When tags are purged, from when their change was read. A replica learns of a change when it next polls,
/// within about a second, or within three if it reads a standby that lags; one whose polls fail does not show
/// responses to be current after three seconds.
const DELAYS: [Duration; 3] = [Duration::ZERO, Duration::from_secs(3), Duration::from_secs(6)];

/// The number of requests that are sent at once.
const CONCURRENT: usize = 4;
/// Maximum number of requests of removals that wait, beyond which everything is purged. An API that takes
/// 150 ms is asked for as many in 1.2 s, so that the second purge of a removal is over after 5 s.
const MAX_REMOVALS: usize = 32;
/// The same of other changes: 30 s.
const MAX_OTHERS: usize = 800;

/// The tag of every response.
const ALL: &str = "all";
/// The tag of responses that may show any chart or chartset.
const SHARED: &str = "shared";

/// Purges that are due, or will be.
#[derive(Debug)]
pub(super) struct PurgeQueue {
    /// Maximum number of tags in a request.
    max_tags: usize,
    /// That of the last poll; `None` before the first one of a database.
    position: Option<Position>,
    requests: BTreeMap<RequestKey, PurgeRequest>,
    next_number: u64,
}

/// A request of the queue. They are sent in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequestKey {
    priority: Priority,
    due: Instant,
    number: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    Removal,
    Other,
}

#[derive(Debug)]
struct PurgeRequest {
    tags: Arc<[String]>,
    /// When the changes were read.
    read_at: Instant,
    /// The position before them.
    after: Option<Position>,
}

impl PurgeQueue {
    /// An empty queue of requests with up to `max_tags` tags. All changes up to the position are purged.
    pub(super) const fn new(max_tags: usize, position: Option<Position>) -> Self {
        Self { max_tags, position, requests: BTreeMap::new(), next_number: 0 }
    }

    /// The last change that was read.
    pub(super) fn last_sequence(&self) -> u64 {
        self.position.map_or(0, |position| position.sequence)
    }

    /// The position up to which all purges are done.
    pub(super) fn done(&self) -> Option<Position> {
        let first = self.requests.values().min_by_key(|request| request.read_at);
        first.map_or(self.position, |request| request.after)
    }

    /// Adds what a poll found after the [last change](Self::last_sequence): everything, if the poll reached
    /// another server than the one before, has not found all changes, or more wait than can be purged in time.
    pub(super) fn add(&mut self, poll: &CataloguePoll, now: Instant) {
        let done = self.done();
        let continues = |previous: &Position| {
            previous.origin == poll.position.origin
                && (poll.complete_after..=poll.position.sequence).contains(&previous.sequence)
        };
        let previous = self.position.replace(poll.position).filter(continues);
        if let Some(previous) = previous {
            let is_new = |removal: u64| removal > previous.sequence;
            let (removals, others): (Vec<_>, Vec<_>) =
                poll.changes.iter().partition(|change| is_new(change.last_removal));
            let shared = is_new(poll.last_removal).then(|| SHARED.to_owned());
            let removals: Vec<_> = shared.into_iter().chain(tags(&removals)).collect();
            self.push(Priority::Removal, &removals, previous, now);
            self.push(Priority::Other, &tags(&others).collect::<Vec<_>>(), previous, now);
        }
        if previous.is_none() || self.is_too_long(now) {
            // It is as late as what it replaces. What is due later stays, so that removals are purged in time.
            let due = self.next_due().map_or(now, |due| due.min(now));
            self.requests.retain(|key, _| key.due > now);
            self.insert(Priority::Removal, due, [ALL.to_owned()].into(), now, done);
        }
    }

    /// The next requests that are due, to be sent at once.
    pub(super) fn due(&self, now: Instant) -> Vec<(RequestKey, Arc<[String]>)> {
        let due = self.requests.iter().filter(|(key, _)| key.due <= now);
        due.take(CONCURRENT).map(|(key, request)| (*key, Arc::clone(&request.tags))).collect()
    }

    /// When the next request is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.requests.keys().map(|key| key.due).min()
    }

    /// Records that a request succeeded that was sent at this time.
    pub(super) fn purged(&mut self, key: RequestKey, sent_at: Instant) {
        let Some(request) = self.requests.remove(&key) else { return };
        let times = DELAYS.map(|delay| request.read_at + delay);
        if let Some(due) = times.into_iter().find(|time| *time > sent_at) {
            self.requests.insert(RequestKey { due, ..key }, request);
        }
    }

    /// The tags that are due, and the time for which the first of them is.
    pub(super) fn backlog(&self, now: Instant) -> Backlog {
        let due = || self.requests.iter().filter(|(key, _)| key.due <= now);
        let changes = due().map(|(_, request)| request.tags.len() as u64).sum();
        Backlog { changes, oldest_age: due().map(|(key, _)| now - key.due).max() }
    }

    fn push(&mut self, priority: Priority, tags: &[String], after: Position, now: Instant) {
        for tags in tags.chunks(self.max_tags) {
            self.insert(priority, now, tags.into(), now, Some(after));
        }
    }

    fn insert(
        &mut self,
        priority: Priority,
        due: Instant,
        tags: Arc<[String]>,
        read_at: Instant,
        after: Option<Position>,
    ) {
        let key = RequestKey { priority, due, number: self.next_number };
        self.next_number += 1;
        self.requests.insert(key, PurgeRequest { tags, read_at, after });
    }

    fn is_too_long(&self, now: Instant) -> bool {
        [(Priority::Removal, MAX_REMOVALS), (Priority::Other, MAX_OTHERS)].into_iter().any(
            |(priority, max)| {
                self.requests.keys().filter(|key| key.priority == priority && key.due <= now).count() > max
            },
        )
    }
}

/// The tags of the responses about what has changed.
fn tags<'a>(changes: &'a [&CatalogueChange]) -> impl Iterator<Item = String> + 'a {
    changes.iter().map(|change| match change.entity {
        Entity::Chart(hash) => hash.to_string(),
        Entity::Chartset(id) => id.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use chart_index_domain::{ChartsetId, Lineage, NoteHash, Origin};

    use super::*;

    const ORIGIN: Origin = Origin(1);

    /// A queue that is at 1,000, of requests with up to `max_tags` tags.
    fn queue(max_tags: usize) -> PurgeQueue {
        PurgeQueue::new(max_tags, Some(position(1_000)))
    }

    fn position(sequence: u64) -> Position {
        Position { origin: ORIGIN, sequence }
    }

    /// A poll that finds changes of charts after `after`, the removals among them.
    fn poll(after: u64, last: u64, removals: &[u64]) -> CataloguePoll {
        let change = |sequence| CatalogueChange {
            sequence,
            entity: entity(sequence),
            last_removal: if removals.contains(&sequence) { sequence } else { 0 },
        };
        CataloguePoll {
            lineage: Lineage::from_bytes([1; 8]),
            position: position(last),
            last_removal: removals.iter().copied().max().unwrap_or(0),
            changes: (after + 1..=last).map(change).collect(),
            complete_after: after,
        }
    }

    /// A chart, or of an odd number a chartset.
    fn entity(number: u64) -> Entity {
        if number % 2 == 1 {
            return ChartsetId::from_bytes(number.to_be_bytes()).into();
        }
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        NoteHash::from_bytes(bytes).into()
    }

    fn tag(number: u64) -> String {
        let change = CatalogueChange { sequence: number, entity: entity(number), last_removal: 0 };
        tags(&[&change]).collect()
    }

    /// Sends what is due, all of which succeeds, until nothing is. Returns the requests.
    fn send_all(queue: &mut PurgeQueue, now: Instant) -> Vec<Vec<String>> {
        let mut sent = Vec::new();
        loop {
            let due = queue.due(now);
            if due.is_empty() {
                return sent;
            }
            for (key, tags) in due {
                queue.purged(key, now);
                sent.push(tags.to_vec());
            }
        }
    }

    #[test]
    fn changes_purge_their_tags_and_removals_come_first() {
        let (mut queue, now) = (queue(2), Instant::now());
        queue.add(&poll(1_000, 1_005, &[1_003, 1_004]), now);
        let [removals, others] = [[1_003, 1_004], [1_001, 1_002]].map(|numbers| numbers.map(tag));
        let expected = vec![
            vec!["shared".to_owned(), removals[0].clone()],
            vec![removals[1].clone()],
            others.to_vec(),
            vec![tag(1_005)],
        ];
        assert_eq!(send_all(&mut queue, now), expected);
        // A removal is sent before what waits.
        queue.add(&poll(1_005, 1_007, &[]), now);
        queue.add(&poll(1_007, 1_008, &[1_008]), now);
        assert_eq!(
            send_all(&mut queue, now),
            [vec!["shared".to_owned(), tag(1_008)], vec![tag(1_006), tag(1_007)]]
        );
    }

    #[test]
    fn purges_are_repeated_until_six_seconds_after_their_change() {
        let (mut queue, start) = (queue(10), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        queue.add(&poll(1_000, 1_001, &[]), start);
        for (seconds, requests) in [(0, 1), (2, 0), (3, 1), (5, 0), (6, 1), (9, 0)] {
            assert_eq!(send_all(&mut queue, at(seconds)).len(), requests, "after {seconds} s");
        }
        assert_eq!((queue.done(), queue.next_due()), (Some(position(1_001)), None));
        // One that waits for longer than this is the last one.
        queue.add(&poll(1_001, 1_002, &[]), start);
        assert_eq!(send_all(&mut queue, at(4)).len(), 1);
        assert_eq!(queue.next_due(), Some(at(6)));
        queue.add(&poll(1_002, 1_003, &[]), start);
        assert_eq!(send_all(&mut queue, at(8)).len(), 2);
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn position_is_behind_the_last_purge_of_its_changes() {
        let (mut queue, start) = (queue(10), Instant::now());
        queue.add(&poll(1_000, 1_002, &[1_002]), start);
        send_all(&mut queue, start);
        let second = start + Duration::from_secs(1);
        queue.add(&poll(1_002, 1_003, &[]), second);
        assert_eq!(queue.done(), Some(position(1_000)));
        // What failed stays due.
        let third = start + Duration::from_secs(6);
        let [(removal, _), (last, _), (other, _)] = &queue.due(third)[..] else { panic!("{queue:?}") };
        queue.purged(*removal, third);
        queue.purged(*last, third);
        assert_eq!(queue.done(), Some(position(1_000)));
        queue.purged(*other, third);
        assert_eq!(queue.done(), Some(position(1_002)));
        queue.add(&poll(1_003, 1_003, &[]), third);
        send_all(&mut queue, second + Duration::from_secs(6));
        assert_eq!(queue.done(), Some(position(1_003)));
    }

    #[test]
    fn another_history_purges_everything_once() {
        let elsewhere = |sequence| Position { origin: Origin(2), sequence };
        for (what, previous, next, complete_after) in [
            ("the first position of a database", None, position(7), 0),
            ("a restart", Some(position(7)), elsewhere(7), 7),
            ("another database", Some(position(7)), elsewhere(9), 7),
            ("a restore", Some(position(7)), position(6), 7),
            ("more changes than a poll returns", Some(position(7)), position(90), 8),
        ] {
            let (mut queue, start) = (PurgeQueue::new(10, previous), Instant::now());
            let mut poll = CataloguePoll { position: next, complete_after, ..poll(7, 9, &[]) };
            queue.add(&poll, start);
            poll.complete_after = next.sequence;
            poll.changes.clear();
            for (seconds, requests) in [(0, 1), (1, 0), (3, 1), (6, 1), (7, 0)] {
                let now = start + Duration::from_secs(seconds);
                queue.add(&poll, now);
                assert_eq!(queue.done(), if seconds < 7 { previous } else { Some(next) }, "{what}");
                assert_eq!(send_all(&mut queue, now), vec![["all"]; requests], "{what}: {seconds} s");
            }
        }
    }

    #[test]
    fn queue_is_bounded_and_shows_how_late_it_is() {
        for removals in [true, false] {
            let (mut queue, start) = (queue(1), Instant::now());
            let (mut last, mut seconds) = (1_000, 0);
            // Nothing is purged.
            while queue.due(start)[..].first().is_none_or(|(_, tags)| tags[..] != ["all"]) {
                let numbers: Vec<u64> = (last + 1..=last + 10).collect();
                queue.add(&poll(last, last + 10, if removals { &numbers } else { &[] }), start);
                last += 10;
            }
            assert_eq!(last, if removals { 1_030 } else { 1_810 }, "33 requests, with `shared`, and 810");
            for _ in 0..200 {
                seconds += 1;
                let now = start + Duration::from_secs(seconds);
                queue.add(&poll(last, last + 10, &[]), now);
                last += 10;
                let backlog = queue.backlog(now);
                assert_eq!(backlog.oldest_age, Some(Duration::from_secs(seconds)));
                assert!(backlog.changes < 850, "{backlog:?}");
            }
            assert_eq!(queue.done(), Some(position(1_000)));
        }
    }

    /// An API takes 150 ms, and 50,000 changes are read within 10 seconds.
    #[test]
    fn removals_are_purged_within_five_seconds_of_any_ingest() {
        const LATENCY: Duration = Duration::from_millis(150);
        for max_tags in [1, 30, 63] {
            let (mut queue, start) = (queue(max_tags), Instant::now());
            let (mut now, mut last, mut read_at) = (start, 1_000, start);
            let mut removal = None;
            let mut purges = Vec::new();
            while now < start + Duration::from_mins(1) {
                if now >= read_at {
                    let changes = if last < 51_000 { 2_500 } else { 0 };
                    let removed = (removal.is_none() && now > start + Duration::from_secs(3)).then(|| {
                        removal = Some((last + 1_000, now));
                        last + 1_000
                    });
                    queue.add(&poll(last, last + changes, removed.as_slice()), now);
                    last += changes;
                    read_at = now + Duration::from_millis(500);
                }
                let due = queue.due(now);
                let sent_at = now;
                now += LATENCY;
                for (key, tags) in due {
                    if let Some((number, at)) = removal
                        && tags.iter().any(|purged| *purged == tag(number) || purged == "all")
                    {
                        purges.push(now - at);
                    }
                    queue.purged(key, sent_at);
                }
            }
            let in_time = |from, to| purges.iter().any(|at| (from..to).contains(at));
            let seconds = Duration::from_secs;
            assert!(in_time(seconds(0), seconds(1)), "{max_tags}: {purges:?}");
            assert!(in_time(seconds(3), seconds(5)), "{max_tags}: {purges:?}");
            assert_eq!(queue.done(), Some(position(51_000)), "{max_tags}");
        }
    }
}
