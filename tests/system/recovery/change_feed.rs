//! A mirror follows the change feed while PostgreSQL, the indexer and the mirror are killed at random moments,
//! and another one starts from an export.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chart_index_tests::{
    ChartSpec, Client, Library, PrivatePostgres, Random, Service, ServiceOptions, TestDatabase, indexer,
    indexer_command,
};
use serde_json::value::RawValue;

/// The number of different charts and chartsets.
const CHARTS: u32 = 60;
const SETS: u32 = 25;
/// A command or PostgreSQL is killed after at most this time.
const MAX_DELAY_MS: u32 = 900;
/// How long a mirror waits after the last page and during an outage.
const PAUSE: Duration = Duration::from_millis(20);

/// A JSON object. Its values are compared as the bytes that they are.
type Object = BTreeMap<String, Box<RawValue>>;

fn text(object: &Object, field: &str) -> String {
    object[field].get().trim_matches('"').to_owned()
}

fn number(object: &Object, field: &str) -> u64 {
    object[field].get().parse().expect("a number")
}

fn objects(object: &Object, field: &str) -> Vec<Object> {
    serde_json::from_str(object[field].get()).expect("an array of objects")
}

/// What a client stores of the feed. It is killed between any two writes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Mirror {
    next: u64,
    charts: BTreeSet<String>,
    /// The records by the id of the chartset.
    chartsets: BTreeMap<String, String>,
}

/// The result of a request for a page.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// The page was applied, or a part of it before a kill.
    More,
    /// The last page was applied.
    End,
    Unavailable,
    /// Changes were lost: the mirror started again.
    Lost,
}

impl Mirror {
    async fn step(&mut self, client: &Client, random: &mut Random) -> Step {
        let (after, limit) = (self.next, 1 + random.below(40));
        let response = client.get(&format!("/api/changes?after={after}&limit={limit}")).await;
        match response.status.as_u16() {
            200 => (),
            503 => return Step::Unavailable,
            410 => {
                *self = Self::default();
                return Step::Lost;
            }
            status => panic!("{status} after {after}"),
        }
        let page: Object = serde_json::from_slice(&response.body).expect("an object");
        let items = objects(&page, "items");
        let is_killed = random.one_in(5);
        let end = u32::try_from(items.len()).expect("a page");
        let applied = if is_killed { random.below(end + 1) } else { end };
        for item in &items[..applied as usize] {
            assert!(number(item, "sequence") > after, "{item:?}");
            self.apply(item);
        }
        if is_killed {
            return Step::More;
        }
        self.next = number(&page, "next");
        if page["hasMore"].get() == "true" { Step::More } else { Step::End }
    }

    fn apply(&mut self, item: &Object) {
        let is_removed = text(item, "change") == "removed";
        match (text(item, "kind") == "chart", is_removed) {
            (true, false) => drop(self.charts.insert(text(item, "chartHash"))),
            (true, true) => drop(self.charts.remove(&text(item, "chartHash"))),
            (false, false) => {
                self.chartsets.insert(text(item, "id"), item["chartset"].get().to_owned());
            }
            (false, true) => drop(self.chartsets.remove(&text(item, "id"))),
        }
    }

    /// A mirror with the content of an export.
    fn restore(export: &Path) -> Self {
        let manifest = fs::read(export.join("manifest.json")).expect("a manifest");
        let manifest: Object = serde_json::from_slice(&manifest).expect("an object");
        let mut mirror = Self { next: number(&manifest, "sequence"), ..Self::default() };
        let chartsets = File::open(export.join("chartsets.ndjson.zst")).expect("chartsets");
        let chartsets = zstd::decode_all(chartsets).expect("a zstd frame");
        for line in String::from_utf8(chartsets).expect("UTF-8").lines() {
            let line: Object = serde_json::from_str(line).expect("an object");
            let record: Object = serde_json::from_str(line["chartset"].get()).expect("an object");
            mirror.charts.extend(objects(&record, "charts").iter().map(|chart| text(chart, "hash")));
            mirror.chartsets.insert(text(&record, "id"), line["chartset"].get().to_owned());
        }
        mirror
    }

    /// Follows until the end of the feed. Returns how often changes were lost.
    async fn follow_to_end(&mut self, client: &Client, random: &mut Random) -> u32 {
        let mut lost = 0;
        loop {
            match self.step(client, random).await {
                Step::End => return lost,
                Step::More => (),
                Step::Lost => lost += 1,
                Step::Unavailable => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

/// An index whose PostgreSQL may be killed.
struct Index {
    database: TestDatabase,
    library: Library,
    service: Service,
    postgres: PrivatePostgres,
}

impl Index {
    fn new() -> Self {
        let postgres = PrivatePostgres::start();
        let database = TestDatabase::create_on(postgres.url());
        indexer(database.url(), &["migrate"]).succeeded();
        let arguments = ["--rate-limit-feed", "1000000"];
        let service = Service::start_with(
            database.url(),
            &ServiceOptions { arguments: &arguments, ..ServiceOptions::default() },
        );
        Self { database, library: Library::new(), service, postgres }
    }

    /// Writes a chartset of up to five charts, which other chartsets may contain as well.
    fn write_set(&self, random: &mut Random) {
        let set = 1 + random.below(SETS);
        let path = |chart: u32| format!("alpha/{set} set/{chart}.osu");
        let folder = self.library.root().join(format!("alpha/{set} set"));
        if folder.exists() {
            self.library.delete(&format!("alpha/{set} set"));
        }
        for chart in 0..=random.below(5) {
            let spec = ChartSpec::numbered(random.below(CHARTS));
            let title = format!("Title {}", random.below(1_000));
            self.library.osu(&path(chart), ChartSpec { title, set_id: set.into(), ..spec });
        }
    }

    /// A command that writes.
    fn command(&self, random: &mut Random) -> Vec<String> {
        let verb = if random.one_in(2) { "remove" } else { "restore" };
        let words: Vec<String> = match random.below(4) {
            0 => vec![verb.into(), "chart".into(), ChartSpec::numbered(random.below(CHARTS)).note_hash()],
            1 => {
                let ids = self.database.psql("SELECT id FROM chartsets ORDER BY id");
                let ids: Vec<&str> = ids.lines().collect();
                if ids.is_empty() {
                    return self.ingest();
                }
                vec![verb.into(), "chartset".into(), (*random.pick(&ids)).to_owned()]
            }
            _ => return self.ingest(),
        };
        words
    }

    fn ingest(&self) -> Vec<String> {
        vec!["ingest".into(), self.library.argument()]
    }

    /// Runs a command; kills it, or PostgreSQL, at a random moment, or neither.
    async fn disturb(&self, random: &mut Random) {
        let words = self.command(random);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = indexer_command(self.database.url(), &words);
        let mut running =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("chart-indexer starts");
        let delay = Duration::from_millis(random.below(MAX_DELAY_MS).into());
        match random.below(3) {
            0 => {
                tokio::time::sleep(delay).await;
                println!("{} is killed after {delay:?}", words[0]);
                running.kill().expect("it is killed");
            }
            1 => {
                tokio::time::sleep(delay).await;
                println!("PostgreSQL is killed after {delay:?} of {}", words[0]);
                self.postgres.kill();
                self.postgres.restart();
            }
            _ => println!("{} is not disturbed", words[0]),
        }
        // A removal of what is not in the index fails.
        let _ = running.wait().expect("it ends");
    }

    /// Exports the index, and restores a mirror from it.
    fn export(&self) -> Mirror {
        let exports = tempfile::tempdir().expect("a folder");
        let folder = exports.path().to_str().expect("UTF-8");
        let printed = indexer(self.database.url(), &["export", folder]).succeeded();
        let (path, _) = printed.split_once(": ").expect("the path of the export");
        Mirror::restore(Path::new(path))
    }

    /// What `verify` sees: the known charts, and the ids of the shown chartsets.
    fn catalogue(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let set = |statement: &str| self.database.psql(statement).lines().map(str::to_owned).collect();
        let charts = set("SELECT DISTINCT encode(chart.hash, 'hex') FROM charts AS chart
                          JOIN chartset_charts AS member ON member.chart_hash = chart.hash
                          JOIN chartsets AS chartset ON chartset.id = member.chartset_id
                          WHERE chart.removed_at_ms IS NULL AND chartset.removed_at_ms IS NULL");
        (charts, set("SELECT id FROM chartsets WHERE shown"))
    }

    /// Fails unless the mirror has the catalogue, and the records of one that followed from 0 without
    /// disturbance.
    async fn assert_mirrored(&self, mirror: &Mirror) {
        let (charts, chartsets) = self.catalogue();
        assert_eq!(mirror.charts, charts);
        assert_eq!(mirror.chartsets.keys().cloned().collect::<BTreeSet<_>>(), chartsets);
        let mut fresh = Mirror::default();
        fresh.follow_to_end(&self.service.client(), &mut Random::new(0)).await;
        assert_eq!(*mirror, fresh);
        let verified = indexer(self.database.url(), &["verify"]).succeeded();
        assert!(
            verified.contains(", 0 findings") && !verified.contains("not in the change feed"),
            "{verified}"
        );
    }
}

/// A mirror in a task, which follows until it is stopped.
async fn follow(client: Client, mut random: Random, stop: Arc<AtomicBool>) -> Mirror {
    let mut mirror = Mirror::default();
    while !stop.load(Ordering::Relaxed) {
        match mirror.step(&client, &mut random).await {
            Step::More => (),
            Step::Lost => panic!("PostgreSQL loses no change when it is killed"),
            Step::End | Step::Unavailable => tokio::time::sleep(PAUSE).await,
        }
    }
    mirror
}

async fn follow_while_disturbed(seed: u64, rounds: u32) {
    println!("FEED_SEED={seed}");
    let (index, mut random) = (Index::new(), Random::new(seed));
    let stop = Arc::new(AtomicBool::new(false));
    let mirror = tokio::spawn(follow(index.service.client(), Random::new(seed ^ 1), Arc::clone(&stop)));
    let mut restored = Mirror::default();
    for round in 0..rounds {
        for _ in 0..=random.below(8) {
            index.write_set(&mut random);
        }
        index.disturb(&mut random).await;
        if round == rounds / 2 {
            restored = index.export();
        }
    }
    indexer(index.database.url(), &["ingest", &index.library.argument()]).succeeded();
    stop.store(true, Ordering::Relaxed);
    let mut mirror = mirror.await.expect("the mirror follows");
    assert_eq!(mirror.follow_to_end(&index.service.client(), &mut random).await, 0);
    assert!(!mirror.chartsets.is_empty());
    index.assert_mirrored(&mirror).await;
    assert_eq!(restored.follow_to_end(&index.service.client(), &mut random).await, 0);
    index.assert_mirrored(&restored).await;
}

fn seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    std::env::var("FEED_SEED").map_or(now.as_secs(), |seed| seed.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_ends_with_the_catalogue() {
    follow_while_disturbed(seed(), 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: minutes"]
async fn long_mirrors_end_with_the_catalogue() {
    let first = seed();
    for run in 0..20 {
        follow_while_disturbed(first + run, 20).await;
    }
}

/// A mirror that applied changes which a restore lost gets a 410, and starts again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirror_of_a_restored_database_starts_again() {
    let (index, mut random) = (Index::new(), Random::new(7));
    let ingest = |random: &mut Random| {
        for _ in 0..6 {
            index.write_set(random);
        }
        indexer(index.database.url(), &["ingest", &index.library.argument()]).succeeded();
    };
    let client = index.service.client();
    let (mut early, mut late) = (Mirror::default(), Mirror::default());
    ingest(&mut random);
    early.follow_to_end(&client, &mut random).await;
    let backup = index.postgres.stop_and_copy();
    index.postgres.restart();
    ingest(&mut random);
    late.follow_to_end(&client, &mut random).await;
    assert!(late.next > early.next);
    index.postgres.stop_and_restore(&backup);
    index.postgres.restart();
    // More changes than were lost, so that their numbers alone do not reveal the loss.
    for _ in 0..3 {
        ingest(&mut random);
    }
    assert_eq!(early.follow_to_end(&client, &mut random).await, 0, "it has seen nothing that was lost");
    assert_eq!(late.follow_to_end(&client, &mut random).await, 1);
    index.assert_mirrored(&early).await;
    index.assert_mirrored(&late).await;
}
