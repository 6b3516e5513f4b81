//! What happens in a history: the operations of two writers and the faults, all from a seed.

use std::ops::Range;
use std::time::Duration;

use chart_index_tests::Random;

use crate::model::{Chart, Entry, REPLACED_CHARTS, Set, UNTOUCHED_CHARTS, UNTOUCHED_SETS};
use crate::system::{EDGE, FOLLOW, MIRROR, NODES, OBJECTS, PURGES, REPLICAS, WRITERS};

/// What moves and deletes objects. Backups need no grace period: the bucket keeps deleted objects.
const OBJECT_COMMANDS: [&[&str]; 3] =
    [&["objects", "migrate"], &["objects", "migrate", "--to-postgres"], &["objects", "gc", "--grace", "0s"]];

/// Those who inject faults.
pub(crate) const OPERATORS: usize = 2;

/// Who performs a step. The steps of an actor follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    /// Index of a writer.
    Writer(usize),
    /// Index of an operator, who injects faults.
    Operator(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) actor: Actor,
    /// Time after the previous step of the actor.
    pub(crate) pause: Duration,
    pub(crate) action: Action,
}

#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// A command of a writer, after changes of its library.
    Command(Command, Disturbance),
    Fault(Fault),
}

#[derive(Debug, Clone)]
pub(crate) enum Command {
    Ingest(Vec<Change>),
    /// Restores these charts, ingests the large chartsets, and removes the charts and this chartset.
    IngestLarge(Set, Vec<Chart>),
    Remove(Entry),
    Restore(Entry),
    Erase(Entry),
    ReplaceRox(Chart),
    /// Applies a list of removals.
    RemoveList(Set, Vec<Chart>),
    Export,
    Filter,
    Rebuild,
    /// One of the commands `objects`.
    Objects(&'static [&'static str]),
}

/// A change of a library.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// The folder of a set has these charts, and a new title.
    WriteFolder(Set, Vec<Chart>),
    /// An archive with the same id as the folder.
    WriteArchive(Set, Vec<Chart>),
    DeleteFolder(Set),
}

/// What happens to a command.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Disturbance {
    None,
    KillAfter(Duration),
    FreezeAfter(Duration, Duration),
}

/// Faults with a duration end after it; a process that was killed is then started again. `postgres` and `redis`
/// are the primaries, `postgres-standby` and `redis-standby` the others.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    Kill(&'static str, Duration),
    Freeze(&'static str, Duration),
    Separate(&'static str, &'static str, Duration),
    /// The standby receives nothing for this time, then it is promoted.
    PromotePostgres(Duration),
    /// A restore to the state this long before.
    RestorePostgres(Duration),
    /// A restore of a dump from this long before, into a new database.
    RestoreDump(Duration),
    /// The standby receives changes and does not show them.
    PauseReplay(Duration),
    /// Half of the packets between `follow` and the edge are lost.
    SlowPurges(Duration),
    FlushRedis,
    FailOverRedis,
    /// The next objects that are written are not in the bucket for this time.
    LoseObjects(Duration),
    /// The node gets the data that it had this long before.
    RestoreNode(&'static str, Duration),
    /// A transaction in another database stays open.
    OpenTransaction(Duration),
    /// Commits wait for their numbers; the writers are killed meanwhile.
    BlockCommits(Duration),
}

impl Fault {
    /// The services that it is about.
    pub(crate) fn services(&self) -> Vec<&'static str> {
        match self {
            Self::Kill(name, _) | Self::Freeze(name, _) | Self::RestoreNode(name, _) => vec![name],
            Self::Separate(first, second, _) => vec![first, second],
            // What follows is a new standby, a rebuild of the search nodes, and the return of deleted objects.
            Self::PromotePostgres(_) | Self::RestorePostgres(_) | Self::RestoreDump(_) => {
                [&["postgres", "postgres-standby", FOLLOW, OBJECTS], &NODES[..]].concat()
            }
            Self::PauseReplay(_) => vec!["postgres-standby"],
            Self::SlowPurges(_) => vec![FOLLOW, PURGES],
            Self::FlushRedis => vec!["redis"],
            Self::FailOverRedis => vec!["redis", "redis-standby"],
            Self::LoseObjects(_) => vec![OBJECTS],
            Self::OpenTransaction(_) | Self::BlockCommits(_) => vec!["postgres"],
        }
    }
}

/// Whether the system has an object store.
pub(crate) const fn has_objects(seed: u64) -> bool {
    seed % 2 == 1
}

/// Whether the catalogue has the large chartsets.
pub(crate) const fn has_large(seed: u64) -> bool {
    seed.is_multiple_of(3)
}

/// Generates the steps of a history of this length. Steps that have not begun at its end are left out.
pub(crate) fn generate(seed: u64, length: Duration, has_meilisearch: bool) -> Vec<Step> {
    let mut random = Random::new(seed);
    let mut steps = Vec::new();
    for (index, _) in WRITERS.iter().enumerate() {
        let mut time = Duration::ZERO;
        let mut removed = Vec::new();
        while time < length {
            let pause = milliseconds(&mut random, 100, 1500);
            let command = if has_objects(seed) && random.one_in(8) {
                Command::Objects(random.pick::<&[&str]>(&OBJECT_COMMANDS))
            } else if index == 0 && has_large(seed) && random.one_in(10) {
                Command::IngestLarge(set(&mut random, index), removable_charts(&mut random, index, 4))
            } else {
                command(&mut random, index, &mut removed, has_meilisearch)
            };
            if let Command::Remove(entry) = &command {
                removed.push(*entry);
            }
            let disturbance = disturbance(&mut random);
            steps.push(Step {
                actor: Actor::Writer(index),
                pause,
                action: Action::Command(command, disturbance),
            });
            // A command takes about this long at least.
            time += pause + Duration::from_millis(100);
        }
    }
    for index in 0..OPERATORS {
        let mut time = Duration::ZERO;
        while time < length {
            // Faults of both operators overlap for a part of the time, and for another one there is none.
            let pause = milliseconds(&mut random, 2000, 16_000);
            let fault = if has_objects(seed) && random.one_in(4) {
                fault_of_objects(&mut random)
            } else {
                fault(&mut random, has_meilisearch)
            };
            time += pause + Duration::from_secs(1);
            steps.push(Step { actor: Actor::Operator(index), pause, action: Action::Fault(fault) });
        }
    }
    steps
}

fn milliseconds(random: &mut Random, from: u32, to: u32) -> Duration {
    Duration::from_millis((from + random.below(to - from)).into())
}

/// One of the numbers that a writer owns.
fn owned(random: &mut Random, numbers: Range<u32>, writer: usize) -> u32 {
    let writers = u32::try_from(WRITERS.len()).expect("few writers");
    let count = (numbers.end - numbers.start) / writers;
    numbers.start + random.below(count) * writers + u32::try_from(writer).expect("few writers")
}

fn set(random: &mut Random, writer: usize) -> Set {
    owned(random, 0..UNTOUCHED_SETS.start, writer)
}

/// One of the charts whose removals a writer owns. Sets of both writers contain it.
fn removable_chart(random: &mut Random, writer: usize) -> Chart {
    // The first half is never removed.
    owned(random, UNTOUCHED_CHARTS.start / 2..UNTOUCHED_CHARTS.start, writer)
}

/// Up to this many of these charts.
fn removable_charts(random: &mut Random, writer: usize, count: usize) -> Vec<Chart> {
    let mut charts: Vec<Chart> = (0..count).map(|_| removable_chart(random, writer)).collect();
    charts.sort_unstable();
    charts.dedup();
    charts
}

/// The charts of a set: most are shared with others.
pub(crate) fn charts(random: &mut Random) -> Vec<Chart> {
    let mut charts: Vec<Chart> =
        (0..=random.below(4)).map(|_| random.below(UNTOUCHED_CHARTS.start)).collect();
    charts.sort_unstable();
    charts.dedup();
    charts
}

/// A command of a writer. It restores what its earlier commands have `removed`, if there is something.
fn command(random: &mut Random, writer: usize, removed: &mut Vec<Entry>, has_meilisearch: bool) -> Command {
    match random.below(30) {
        0..=2 => Command::Remove(Entry::ChartRemoval(removable_chart(random, writer))),
        3..=5 if removed.is_empty() => Command::Restore(Entry::ChartRemoval(removable_chart(random, writer))),
        3..=5 => Command::Restore(taken(random, removed)),
        6 | 7 => Command::Remove(Entry::SetRemoval(set(random, writer))),
        8 => Command::Export,
        9 => Command::Filter,
        10 if has_meilisearch => Command::Rebuild,
        11 => Command::Ingest(Vec::new()),
        12 => Command::RemoveList(set(random, writer), removable_charts(random, writer, 2)),
        13 => Command::Erase(Entry::ChartRemoval(removable_chart(random, writer))),
        14 => Command::Erase(Entry::SetRemoval(set(random, writer))),
        15 | 16 => Command::ReplaceRox(owned(random, REPLACED_CHARTS, writer)),
        _ => Command::Ingest((0..=random.below(3)).map(|_| change(random, writer)).collect()),
    }
}

fn taken(random: &mut Random, entries: &mut Vec<Entry>) -> Entry {
    let count = u32::try_from(entries.len()).expect("few entries");
    entries.swap_remove(random.below(count) as usize)
}

fn change(random: &mut Random, writer: usize) -> Change {
    let set = set(random, writer);
    match random.below(8) {
        0 => Change::WriteArchive(set, charts(random)),
        1 => Change::DeleteFolder(set),
        _ => Change::WriteFolder(set, charts(random)),
    }
}

fn disturbance(random: &mut Random) -> Disturbance {
    let delay = milliseconds(random, 10, 500);
    match random.below(8) {
        0 | 1 => Disturbance::KillAfter(delay),
        2 => Disturbance::FreezeAfter(delay, milliseconds(random, 500, 4000)),
        _ => Disturbance::None,
    }
}

fn fault(random: &mut Random, has_meilisearch: bool) -> Fault {
    let duration = milliseconds(random, 500, 10_000);
    let earlier = milliseconds(random, 2000, 8000);
    let node = one_of(random, &NODES);
    match random.below(if has_meilisearch { 29 } else { 28 }) {
        0..=4 => Fault::Kill(process(random, has_meilisearch), duration),
        5..=9 => Fault::Freeze(process(random, has_meilisearch), duration),
        10..=16 => {
            let (first, second) = link(random, has_meilisearch);
            Fault::Separate(first, second, if random.one_in(6) { duration * 4 } else { duration })
        }
        17 => Fault::PromotePostgres(milliseconds(random, 0, 6000)),
        18 => Fault::RestorePostgres(earlier),
        27 => Fault::RestoreDump(earlier),
        19 => Fault::FlushRedis,
        20 => Fault::FailOverRedis,
        21 if random.one_in(3) => Fault::OpenTransaction(Duration::from_mins(1)),
        21 | 22 => Fault::BlockCommits(milliseconds(random, 8000, 12_000)),
        23..=25 => Fault::PauseReplay(duration),
        26 => Fault::SlowPurges(duration),
        _ => Fault::RestoreNode(node, earlier),
    }
}

/// The object store refuses connections, hangs, cannot be reached, or lacks an object.
fn fault_of_objects(random: &mut Random) -> Fault {
    let duration = milliseconds(random, 500, 10_000);
    match random.below(8) {
        0 | 1 => Fault::Kill(OBJECTS, duration),
        2 | 3 => Fault::Freeze(OBJECTS, duration),
        4 => Fault::Separate(one_of(random, &REPLICAS), OBJECTS, duration),
        // The mirror waits 10 s for what a replica may not have yet.
        5 | 6 => Fault::LoseObjects(milliseconds(random, 12_000, 25_000)),
        _ => Fault::Separate(one_of(random, &WRITERS), OBJECTS, duration),
    }
}

/// A process that is killed or frozen. Most faults are of the servers that all replicas need.
fn process(random: &mut Random, has_meilisearch: bool) -> &'static str {
    match random.below(if has_meilisearch { 16 } else { 15 }) {
        0..=3 => "postgres",
        4 | 5 => "redis",
        6 | 7 => one_of(random, &REPLICAS),
        8 => one_of(random, &[FOLLOW, MIRROR]),
        9 => "haproxy",
        10 | 11 => "postgres-standby",
        12 => "redis-standby",
        13 | 14 => EDGE,
        _ => one_of(random, &NODES),
    }
}

fn one_of(random: &mut Random, names: &[&'static str]) -> &'static str {
    let name: &&str = random.pick(names);
    name
}

/// Two components that communicate with each other.
fn link(random: &mut Random, has_meilisearch: bool) -> (&'static str, &'static str) {
    let [replica, node, writer] = [&REPLICAS[..], &NODES, &WRITERS].map(|names| one_of(random, names));
    let server = if has_meilisearch && random.one_in(2) { node } else { "postgres" };
    match random.below(14) {
        0..=2 => (replica, server),
        3 | 4 => (one_of(random, &REPLICAS[..2]), "redis"),
        5 | 6 => (writer, server),
        7 => (FOLLOW, server),
        8 => ("haproxy", replica),
        9 => (replica, "postgres-standby"),
        10 => (FOLLOW, PURGES),
        11 => (EDGE, "haproxy"),
        _ => *random.pick(&[("postgres", "postgres-standby"), ("redis", "redis-standby")]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_determines_the_steps() {
        let steps = |seed| format!("{:?}", generate(seed, Duration::from_mins(1), true));
        assert_eq!(steps(1), steps(1));
        assert_ne!(steps(1), steps(2));
    }
}
