//! Polls: what has changed since the last one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chart_index_domain::{CatalogueChange, CataloguePoll, Entity};
use chart_index_store::CatalogueWatch;

use crate::support::{Catalogue, chart, folder, hash, id};

/// Longer than anything that a test waits for.
const TIMEOUT: Duration = Duration::from_secs(20);

impl Catalogue {
    async fn poll(&self, after: u64) -> CataloguePoll {
        self.store.poll_catalogue(after).await.unwrap()
    }
}

fn entities(poll: &CataloguePoll) -> Vec<Entity> {
    poll.changes.iter().map(|change| change.entity).collect()
}

#[tokio::test]
async fn entities_with_later_sequences_are_returned() {
    let catalogue = Catalogue::create().await;
    let empty = catalogue.poll(0).await;
    assert_eq!((empty.position.sequence, empty.changes), (0, vec![]));
    catalogue.put(&folder(1, [chart(1)]), 10).await;
    let first = catalogue.poll(0).await;
    assert_eq!(first.position.sequence, 2);
    assert_eq!(first.position, catalogue.store.feed_position().await.unwrap());
    let changed = [Entity::Chart(hash(1)), Entity::Chartset(id(1))];
    assert!(changed.iter().all(|entity| entities(&first).contains(entity)), "{first:?}");
    catalogue.remove(id(1), 20).await;
    let second = catalogue.poll(2).await;
    assert_eq!(second.changes.iter().map(|change| change.sequence).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(catalogue.poll(4).await.changes, []);
    assert_eq!(catalogue.poll(u64::MAX).await.changes, [], "of another origin");
}

/// A lookup of the other chart shows the title of the set, which was that of the removed one.
#[tokio::test]
async fn charts_that_showed_the_title_of_a_removed_one_are_marked() {
    let catalogue = Catalogue::create().await;
    catalogue.put(&folder(1, [chart(1), chart(2)]), 10).await;
    let after = catalogue.poll(0).await.position.sequence;
    catalogue.remove(hash(1), 20).await;
    let changes = catalogue.poll(after).await.changes;
    let marked: HashMap<_, _> =
        changes.iter().map(|change| (change.entity, change.last_removal > after)).collect();
    let entities = [Entity::Chart(hash(1)), Entity::Chart(hash(2)), Entity::Chartset(id(1))];
    assert_eq!(marked, entities.map(|entity| (entity, true)).into());
}

#[tokio::test]
async fn removals_of_operators_are_marked() {
    let catalogue = Catalogue::create().await;
    let mut after = 0;
    // What has changed, and whether that is a removal.
    let mut changes = async || {
        let poll = catalogue.poll(after).await;
        let last_removals = poll.changes.iter().map(|change| change.last_removal);
        assert_eq!(poll.last_removal > after, last_removals.max().is_some_and(|last| last > after));
        let is_removal = |change: CatalogueChange| (change.entity, change.last_removal > after);
        let changes: HashMap<_, _> = poll.changes.into_iter().map(is_removal).collect();
        after = poll.position.sequence;
        changes
    };
    let [first, second] = [1, 2].map(|number| Entity::Chart(hash(number)));
    let [set, other] = [1, 2].map(|number| Entity::Chartset(id(number)));
    catalogue.put(&folder(1, [chart(1), chart(2)]), 10).await;
    assert!(changes().await.values().all(|is_removal| !is_removal));
    // It is in no set any more.
    catalogue.put(&folder(1, [chart(1)]), 20).await;
    assert!(!changes().await[&second]);
    catalogue.remove(hash(1), 30).await;
    assert_eq!(changes().await, HashMap::from([(first, true), (set, true)]), "the set shows the chart");
    // It stays removed.
    let mut renamed = chart(1);
    renamed.metadata.title.push('x');
    catalogue.put(&folder(1, [renamed]), 35).await;
    assert!(!changes().await[&first]);
    catalogue.restore(hash(1), 40).await;
    assert_eq!(changes().await, HashMap::from([(first, false), (set, false)]));
    catalogue.put(&folder(2, [chart(1), chart(2)]), 45).await;
    changes().await;
    catalogue.remove(id(1), 50).await;
    assert_eq!(
        changes().await,
        HashMap::from([(first, true), (set, true)]),
        "the chart names the set as a source"
    );
    // The other set no longer contains the chart: no operator removed that.
    catalogue.put(&folder(2, [chart(2)]), 60).await;
    let expected = [(first, false), (second, false), (other, false)];
    assert_eq!(changes().await, HashMap::from(expected), "the set has another title");
    // Before the next poll, something else changes.
    catalogue.remove(id(2), 70).await;
    catalogue.put(&folder(2, [chart(2), chart(3)]), 80).await;
    assert!(changes().await[&other]);
}

#[tokio::test]
async fn only_the_last_changes_are_listed() {
    let catalogue = Catalogue::create().await;
    let add = |from: u32, to: u32| {
        let _ = catalogue.database.psql(&format!(
            "INSERT INTO catalogue_changes (sequence, changed_at_ms, change, entity)
             SELECT number, 1, 'added', decode(lpad(to_hex(number), 16, '0'), 'hex')
             FROM generate_series({from}, {to}) AS number;
             UPDATE change_feed SET last_sequence = {to}"
        ));
    };
    add(1, 10_000);
    add(10_001, 10_003);
    for (after, first, complete_after) in
        [(0, 4, 3), (2, 4, 3), (3, 4, 3), (4, 5, 4), (10_003, 10_004, 10_003)]
    {
        let poll = catalogue.poll(after).await;
        assert_eq!((poll.position.sequence, poll.complete_after), (10_003, complete_after), "after {after}");
        assert!(poll.changes.iter().map(|change| change.sequence).eq(first..=10_003), "after {after}");
    }
}

#[tokio::test]
async fn a_watch_passes_on_each_poll() {
    let catalogue = Catalogue::create().await;
    let polls = Arc::new(Mutex::new(Vec::new()));
    let on_poll = {
        let polls = Arc::clone(&polls);
        move |poll: CataloguePoll, began| polls.lock().unwrap().push((poll, began))
    };
    let before = Instant::now();
    let interval = Duration::from_millis(50);
    let watch = CatalogueWatch::start(&catalogue.store, None, interval * 400, on_poll.clone()).await;
    let (first, began) = polls.lock().unwrap().pop().unwrap();
    assert!(before <= began && began <= Instant::now());
    assert_eq!((first, watch.sequence()), (catalogue.poll(0).await, 0));

    let watch = CatalogueWatch::start(&catalogue.store, None, interval, on_poll).await;
    catalogue.put(&folder(1, [chart(1)]), 1).await;
    while watch.sequence() < 2 {
        assert!(before.elapsed() < TIMEOUT);
        tokio::task::yield_now().await;
    }
    let is_passed_on = || polls.lock().unwrap().iter().any(|(poll, _)| entities(poll).len() == 2);
    while !is_passed_on() {
        assert!(before.elapsed() < TIMEOUT);
        tokio::task::yield_now().await;
    }
    assert_eq!(CatalogueWatch::disabled().sequence(), 0);
}
