//! The writers of a history: each changes its library and runs commands of `chart-indexer`, one at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::process::{Child, Command as Program};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use chart_index_client::InvalidHashFilter;
use chart_index_tests::Library;

use crate::bucket::{Bucket, NAMED_OBJECTS};
use crate::hash_filter;
use crate::history::World;
use crate::mirror::{self, Records};
use crate::model::{Chart, Entry, LARGE_CHARTS, LARGE_SETS, Moment, Set, UNTOUCHED_SETS, Version};
use crate::names::{self, source_id};
use crate::operator::{FaultEvent, Scope};
use crate::plan::{Change, Command, Disturbance};
use crate::postgres::query;
use crate::system::{WRITERS, database_url};

/// A command that takes longer is killed: it waits for a server that is unavailable.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(40);
/// How long the sessions of a killed command may last.
const SESSION_TIMEOUT: Duration = Duration::from_secs(40);

/// A writer with its library.
#[derive(Debug)]
pub(crate) struct Writer {
    world: Arc<World>,
    index: usize,
    library: Library,
    /// Has the large chartsets.
    large: Library,
    folders: BTreeMap<Set, Version>,
    archives: BTreeMap<Set, Version>,
    /// The entries that it has erased.
    erased: BTreeSet<Entry>,
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct CommandEvent {
    pub(crate) words: String,
    pub(crate) start: Moment,
    pub(crate) end: Moment,
    pub(crate) outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Succeeded,
    /// It may have taken effect.
    Failed(String),
    Killed,
}

/// An export that was written during a history, with the versions and charts that it contains.
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) start: Moment,
    pub(crate) end: Moment,
    pub(crate) records: Result<Records, String>,
}

/// The last hash filter after a command that builds one.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) start: Moment,
    pub(crate) end: Moment,
    /// The number of its charts, according to PostgreSQL.
    pub(crate) count: u32,
    pub(crate) charts: Result<BTreeSet<Chart>, InvalidHashFilter>,
}

/// What a removal has left of the objects that the rows of its charts named.
#[derive(Debug)]
pub(crate) struct RemovedObjects {
    pub(crate) start: Moment,
    pub(crate) end: Moment,
    pub(crate) left: Vec<String>,
}

impl Writer {
    pub(crate) fn new(world: Arc<World>, index: usize) -> Self {
        let (folders, archives) = (BTreeMap::new(), BTreeMap::new());
        let [library, large] = [(); 2].map(|()| Library::new());
        Self { world, index, library, large, folders, archives, erased: BTreeSet::new() }
    }

    pub(crate) fn run(&mut self, command: &Command, disturbance: Disturbance) {
        match command {
            Command::Ingest(changes) => {
                for change in changes {
                    self.apply(change);
                }
                self.ingest(disturbance);
            }
            Command::IngestLarge(set, charts) => {
                for chart in charts {
                    self.mark(Entry::ChartRemoval(*chart), false, Disturbance::None);
                }
                self.ingest_large();
                self.remove_list(*set, charts, disturbance);
            }
            Command::Remove(entry) => self.mark(*entry, true, disturbance),
            Command::Restore(entry) => self.mark(*entry, false, disturbance),
            Command::Erase(entry) => self.erase(*entry, disturbance),
            Command::ReplaceRox(chart) => self.replace_rox(*chart, disturbance),
            Command::RemoveList(set, charts) => self.remove_list(*set, charts, disturbance),
            Command::Export => self.export(disturbance),
            Command::Filter => self.filter(disturbance),
            Command::Rebuild => drop(self.execute(&["rebuild"], disturbance)),
            Command::Objects(arguments) => drop(self.execute(arguments, disturbance)),
        }
        self.wait_for_sessions();
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::WriteFolder(set, charts) => self.write_folder(*set, charts),
            Change::WriteArchive(set, charts) => {
                let version = self.write_files(*set, charts, "new");
                let archive = format!("alpha/{} set.osz", source_id(*set));
                if self.archives.insert(*set, version).is_some() {
                    self.library.delete(&archive);
                }
                self.library.pack(&format!("alpha/{} new", source_id(*set)), &archive);
            }
            Change::DeleteFolder(set) => {
                if self.folders.remove(set).is_some() {
                    self.library.delete(&format!("alpha/{} set", source_id(*set)));
                }
            }
        }
    }

    pub(crate) fn write_folder(&mut self, set: Set, charts: &[Chart]) {
        if self.folders.contains_key(&set) {
            self.library.delete(&format!("alpha/{} set", source_id(set)));
        }
        let version = self.write_files(set, charts, "set");
        self.folders.insert(set, version);
    }

    fn write_files(&self, set: Set, charts: &[Chart], name: &str) -> Version {
        let version = self.world.model().add_version(charts.to_vec());
        for chart in charts {
            let path = format!("alpha/{} {name}/{chart}.osu", source_id(set));
            self.library.osu(&path, names::spec(set, version, *chart));
        }
        version
    }

    pub(crate) fn ingest(&mut self, disturbance: Disturbance) {
        let sets: BTreeSet<Set> = self.folders.keys().chain(self.archives.keys()).copied().collect();
        if sets.is_empty() {
            return;
        }
        let writes = sets.into_iter().map(|set| {
            // A folder takes precedence over an archive.
            (set, *self.folders.get(&set).or_else(|| self.archives.get(&set)).expect("it is in one"))
        });
        self.ingest_versions(&self.library, writes.collect(), disturbance);
    }

    /// Ingests a new version of each large chartset.
    pub(crate) fn ingest_large(&self) {
        let write = |(set, chart): (Set, Chart)| {
            let version = self.world.model().add_version(vec![chart]);
            for (number, spec) in names::specs(set, version, chart).enumerate() {
                self.large.osu(&format!("alpha/{} set/{number}.osu", source_id(set)), spec);
            }
            (set, version)
        };
        let versions = LARGE_SETS.zip(LARGE_CHARTS).map(write).collect();
        let start = self.world.now();
        self.ingest_versions(&self.large, versions, Disturbance::None);
        let end = Some(self.world.now());
        let event = FaultEvent { name: "a large ingest".to_owned(), scope: Scope::ManyChanges, start, end };
        self.world.log().faults.push(event);
    }

    fn ingest_versions(&self, library: &Library, versions: Vec<(Set, Version)>, disturbance: Disturbance) {
        let start = self.world.now();
        let writes = versions.into_iter().map(|(set, version)| {
            self.world.model().begin_set(set, version, start);
            let (id, title) = (self.world.names.id(set), names::title(set, version));
            (
                Entry::Set(set),
                format!("EXISTS (SELECT FROM chartsets WHERE id = '{id}' AND title = '{title}')"),
            )
        });
        self.write(&writes.collect::<Vec<_>>(), &["ingest", &library.argument()], disturbance);
    }

    /// Removes or restores an entry, which need not be in the index.
    fn mark(&self, entry: Entry, removed: bool, disturbance: Disturbance) {
        let verb = if removed { "remove" } else { "restore" };
        let (kind, name) = self.entity(entry);
        let write = self.begin_removal(entry, removed);
        if !removed && self.erased.contains(&entry) {
            // It takes effect with an ingest, if there is one.
            self.execute(&[verb, kind, &name], disturbance);
        } else {
            self.write(&[write], &[verb, kind, &name], disturbance);
        }
    }

    fn erase(&mut self, entry: Entry, disturbance: Disturbance) {
        self.erased.insert(entry);
        let charts = self.world.model().charts_of(entry);
        self.world.log().erased.extend(charts);
        let (kind, name) = self.entity(entry);
        let write = self.begin_removal(entry, true);
        self.write(&[write], &["remove", kind, &name, "--erase"], disturbance);
    }

    /// Replaces the ROX file of a chart, always with the same other file.
    fn replace_rox(&self, chart: Chart, disturbance: Disturbance) {
        let (set, version) = (UNTOUCHED_SETS.start, Version::MAX);
        self.library.osu("../replacement.osu", names::spec(set, version, chart));
        let file = self.library.root().join("../replacement.osu");
        let hash = self.world.names.hash(chart);
        let condition = format!(
            "EXISTS (SELECT FROM rox_files WHERE hash = '\\x{hash}' AND replacement_digest IS NOT NULL)"
        );
        let entry = Entry::RoxFile(chart);
        self.world.model().begin_mark(entry, true, self.world.now());
        let arguments = ["replace-rox", hash, "--from", file.to_str().expect("a readable path")];
        self.write(&[(entry, condition)], &arguments, disturbance);
    }

    fn remove_list(&self, set: Set, charts: &[Chart], disturbance: Disturbance) {
        let charts = charts.iter().map(|chart| Entry::ChartRemoval(*chart));
        let entries: Vec<Entry> = charts.chain([Entry::SetRemoval(set)]).collect();
        let lines: Vec<String> = entries
            .iter()
            .map(|entry| match self.entity(*entry) {
                ("chart", hash) => format!("{{\"kind\":\"chart\",\"chartHash\":\"{hash}\"}}\n"),
                (kind, id) => format!("{{\"kind\":\"{kind}\",\"id\":\"{id}\"}}\n"),
            })
            .collect();
        let list = self.library.root().join("../removals.jsonl");
        std::fs::write(&list, lines.concat()).expect("a file");
        let writes: Vec<_> = entries.iter().map(|entry| self.begin_removal(*entry, true)).collect();
        self.write(&writes, &["remove", "--from", list.to_str().expect("a readable path")], disturbance);
    }

    /// The kind and the name of what is removed.
    fn entity(&self, entry: Entry) -> (&'static str, String) {
        match entry {
            Entry::ChartRemoval(chart) | Entry::RoxFile(chart) => {
                ("chart", self.world.names.hash(chart).to_owned())
            }
            Entry::SetRemoval(set) | Entry::Set(set) => ("chartset", self.world.names.id(set).to_owned()),
        }
    }

    /// Begins a write of the model. Returns it with the condition under which it is written.
    fn begin_removal(&self, entry: Entry, removed: bool) -> (Entry, String) {
        self.world.model().begin_mark(entry, removed, self.world.now());
        let name = self.entity(entry).1;
        (entry, format!("EXISTS (SELECT FROM removals WHERE entity = '\\x{name}') = {removed}"))
    }

    /// Runs a command that writes these entries. A condition in SQL holds when an entry is written.
    fn write(&self, writes: &[(Entry, String)], arguments: &[&str], disturbance: Disturbance) {
        let (start, named) = (self.world.now(), self.objects_of_removal(writes, arguments));
        let outcome = self.execute(arguments, disturbance);
        if outcome == Outcome::Succeeded && !named.is_empty() {
            let objects = self.world.system().bucket.as_ref().map(Bucket::objects).unwrap_or_default();
            let left = named.into_iter().filter(|name| objects.contains(name)).collect();
            let removed = RemovedObjects { start, end: self.world.now(), left };
            self.world.log().removed_objects.push(removed);
        }
        let is_written = match outcome {
            Outcome::Succeeded => vec![true; writes.len()],
            Outcome::Failed(_) | Outcome::Killed => are_true(writes.iter().map(|(_, condition)| condition)),
        };
        let end = self.world.now();
        for ((entry, _), _) in writes.iter().zip(is_written).filter(|(_, is_written)| *is_written) {
            self.world.model().complete(*entry, end);
        }
    }

    /// The objects of the charts that a command removes; none if PostgreSQL does not respond.
    fn objects_of_removal(&self, writes: &[(Entry, String)], arguments: &[&str]) -> Vec<String> {
        if self.world.system().bucket.is_none() || arguments[0] != "remove" {
            return Vec::new();
        }
        let charts = writes.iter().filter_map(|(entry, _)| match entry {
            Entry::ChartRemoval(chart) => Some(format!("'\\x{}'", self.world.names.hash(*chart))),
            _ => None,
        });
        let charts = charts.collect::<Vec<_>>().join(", ");
        let named = format!("{NAMED_OBJECTS} AND hash = ANY(ARRAY[{charts}]::bytea[])");
        let named = query(&database_url("chart_index"), &named).unwrap_or_default();
        named.lines().map(str::to_owned).collect()
    }

    fn export(&self, disturbance: Disturbance) {
        let folder = self.world.system().exports();
        let folder = folder.to_str().expect("a readable path");
        let start = self.world.now();
        let (outcome, printed) = self.execute_and_read(&["export", folder, "--rox"], disturbance);
        if outcome != Outcome::Succeeded {
            return;
        }
        let (path, _) = printed.split_once(": ").expect("the path of the export");
        let chartsets = mirror::chartsets_of_export(std::path::Path::new(path));
        let records = mirror::contents(&chartsets, &self.world.names);
        let export = Export { start, end: self.world.now(), records };
        self.world.log().exports.push(export);
    }

    fn filter(&self, disturbance: Disturbance) {
        const LAST: &str =
            "SELECT hashes || ' ' || encode(bytes, 'hex') FROM hash_filters ORDER BY sequence DESC LIMIT 1";
        let start = self.world.now();
        if self.execute(&["filter"], disturbance) != Outcome::Succeeded {
            return;
        }
        let Ok(last) = query(&database_url("chart_index"), LAST) else { return };
        let end = self.world.now();
        let (count, digits) = last.split_once(' ').expect("a row");
        let digits = digits.as_bytes().chunks(2).map(|digits| str::from_utf8(digits).expect("ASCII"));
        let bytes: Vec<_> = digits.map(|digits| u8::from_str_radix(digits, 16).expect("a byte")).collect();
        let charts = hash_filter::charts_in(&bytes, &self.world.names);
        let count = count.parse().expect("a count");
        self.world.log().filters.push(Filter { start, end, count, charts });
    }

    fn execute(&self, arguments: &[&str], disturbance: Disturbance) -> Outcome {
        self.execute_and_read(arguments, disturbance).0
    }

    /// Runs a command. Returns its output as well.
    fn execute_and_read(&self, arguments: &[&str], disturbance: Disturbance) -> (Outcome, String) {
        let writer = WRITERS[self.index];
        let mut command = self.world.system().indexer(writer, arguments);
        let start = self.world.now();
        let (outcome, printed) = self.wait(&mut command, disturbance);
        let words = format!("{writer}: {} ({disturbance:?})", arguments.join(" "));
        let end = self.world.now();
        self.world.log().commands.push(CommandEvent { words, start, end, outcome: outcome.clone() });
        (outcome, printed)
    }

    fn wait(&self, command: &mut Program, disturbance: Disturbance) -> (Outcome, String) {
        let writer = WRITERS[self.index];
        let mut child = command.spawn().expect("nsenter is installed");
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let stdout = thread::spawn(move || read(stdout));
        let stderr = thread::spawn(move || read(stderr));
        let start = Instant::now();
        let mut disturbance = Some(disturbance);
        let status = loop {
            if let Some(status) = child.try_wait().expect("a state") {
                break status.code();
            }
            let elapsed = start.elapsed();
            match disturbance {
                Some(Disturbance::KillAfter(delay)) if elapsed >= delay => self.kill(&mut child),
                Some(Disturbance::FreezeAfter(delay, duration)) if elapsed >= delay => {
                    self.world.system().signal_writer(writer, "STOP");
                    thread::sleep(duration);
                    self.world.system().signal_writer(writer, "CONT");
                    disturbance = None;
                }
                _ if elapsed >= COMMAND_TIMEOUT => self.kill(&mut child),
                _ => thread::sleep(Duration::from_millis(2)),
            }
        };
        let (stdout, stderr) = (stdout.join().expect("it is read"), stderr.join().expect("it is read"));
        let outcome = match status {
            None => Outcome::Killed,
            Some(0) => Outcome::Succeeded,
            Some(_) => Outcome::Failed(stderr.lines().last().unwrap_or_default().to_owned()),
        };
        (outcome, stdout)
    }

    fn kill(&self, child: &mut Child) {
        self.world.system().signal_writer(WRITERS[self.index], "KILL");
        // nsenter becomes the program: it is the process in the namespace.
        let _ = child.kill();
    }

    /// Waits until PostgreSQL has ended the sessions of a command: what follows is not concurrent with one that
    /// was killed.
    fn wait_for_sessions(&self) {
        let address = self.world.system().address(WRITERS[self.index]);
        let count = format!("SELECT count(*) FROM pg_stat_activity WHERE client_addr = '{address}'");
        let start = Instant::now();
        while start.elapsed() < SESSION_TIMEOUT {
            if query(&database_url("postgres"), &count).as_deref() == Ok("0") {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Which of these conditions PostgreSQL finds true; none if it does not respond.
fn are_true<'a>(conditions: impl Iterator<Item = &'a String>) -> Vec<bool> {
    let conditions: Vec<_> = conditions.map(String::as_str).collect();
    let statement = format!("SELECT concat_ws(' ', {})", conditions.join(", "));
    let found = query(&database_url("chart_index"), &statement).unwrap_or_default();
    found.split_whitespace().map(|found| found == "t").collect()
}

fn read(source: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    let _ = source.map(|mut source| source.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}
