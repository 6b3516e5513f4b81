//! `chart-indexer mirror`, of real instances and of hostile ones.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chart_index_tests::http_server::{self, response};
use chart_index_tests::{
    Client, PrivatePostgres, ReplicaAddresses, RunningIndexer, Service, ServiceOptions, within,
};
use serde_json::{Value, json};

use super::exports::paths;
use super::signed_exports::KEYS;
use super::table_locks::{block_table, release, wait_until_blocked};
use super::*;

const TIMEOUT: Duration = Duration::from_secs(30);

/// An index with its library, from which mirrors are filled.
pub(crate) struct Origin {
    pub(crate) database: Database,
    pub(crate) library: Library,
    pub(crate) exports: tempfile::TempDir,
}

impl Origin {
    pub(crate) fn new(database: Database) -> Self {
        let library = Library::new();
        library.osu("alpha/1 one/a.osu", ChartSpec::numbered(1));
        library.osu("alpha/1 one/b.osu", ChartSpec::numbered(2));
        library.osu("alpha/2 two/a.osu", ChartSpec::numbered(3));
        library.osu("alpha/3 three/a.osu", ChartSpec::numbered(1));
        library.osu("beta/4 four/song/a.osu", ChartSpec { tags: "a \"b\"".into(), ..ChartSpec::numbered(4) });
        library.osu("alpha/five/a.osu", ChartSpec { title: "연못".into(), ..ChartSpec::numbered(5) });
        database.ingest(&library);
        Self { database, library, exports: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn export(&self, arguments: &[&str]) -> String {
        let exports = self.exports.path().to_str().unwrap();
        self.database.run(&[&["export", exports], arguments].concat())
    }

    /// Replaces the ROX file of a chart by one of this chart.
    pub(crate) fn replace_rox(&self, chart: ChartSpec) {
        let hash = self.library.osu("../replacement.osu", chart).note_hash();
        let file = self.library.root().join("../replacement.osu");
        self.database.run(&["replace-rox", &hash, "--from", file.to_str().unwrap()]);
    }

    pub(crate) fn serve(&self) -> Service {
        self.serve_at(ReplicaAddresses::choose())
    }

    pub(crate) fn serve_at(&self, addresses: ReplicaAddresses) -> Service {
        let exports = self.exports.path().to_str().unwrap();
        let variables = [("EXPORTS_DIR", exports)];
        let options =
            ServiceOptions { variables: &variables, addresses: Some(addresses), ..Default::default() };
        Service::start_with(self.database.0.url(), &options)
    }
}

/// A mirror with its folder for downloads.
pub(crate) struct Mirror {
    pub(crate) database: Database,
    downloads: tempfile::TempDir,
}

impl Mirror {
    pub(crate) async fn new() -> Self {
        Self { database: Database::new().await, downloads: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn command(&self, upstream: &str, arguments: &[&str]) -> Command {
        let mut command =
            indexer_command(self.database.0.url(), &[&["mirror", upstream], arguments].concat());
        command.env("DOWNLOADS_DIR", self.downloads.path());
        command
    }

    pub(crate) fn try_follow(&self, upstream: &str) -> IndexerRun {
        IndexerRun::run(&mut self.command(upstream, &["--once"]))
    }

    /// Follows to the end of the feed, and returns standard error.
    pub(crate) fn follow(&self, upstream: &Service) -> String {
        let run = self.try_follow(&base(upstream));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.stderr
    }

    fn start(&self, upstream: &Service) -> Child {
        let mut command = self.command(&base(upstream), &["--once"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    pub(crate) fn sequence(&self) -> String {
        self.database.0.psql("SELECT sequence FROM mirror")
    }
}

pub(crate) fn base(service: &Service) -> String {
    format!("http://{}", service.address())
}

/// Status and body of a response. The feed has no times of checks.
async fn read(client: &Client, path: &str) -> (u16, Vec<u8>) {
    let response = client.get(path).await;
    let status = response.status.as_u16();
    if response.header("content-type") != "application/json" {
        return (status, response.body);
    }
    let mut body = response.json();
    for source in body["sources"].as_array_mut().into_iter().flatten() {
        source.as_object_mut().unwrap().remove("checkedAtMs");
    }
    (status, body.to_string().into_bytes())
}

/// Asserts that the mirrors have the responses of the origin, and nothing else.
pub(crate) async fn assert_same(origin: &Database, mirrors: &[&Mirror]) {
    let original = Service::start(origin.0.url());
    for Mirror { database, .. } in mirrors {
        let mirrored = Service::start(database.0.url());
        let paths: BTreeSet<String> = paths(origin).into_iter().chain(paths(database)).collect();
        // Pages show the times of checks.
        for path in paths.into_iter().filter(|path| !path.starts_with("/chartsets/")) {
            let expected = read(&original.client(), &path).await;
            let actual = read(&mirrored.client(), &path).await;
            let text = |(_, body): &(u16, Vec<u8>)| String::from_utf8_lossy(body).into_owned();
            assert!(actual == expected, "{path}: {} {}", text(&actual), text(&expected));
        }
        assert!(database.run(&["verify"]).contains(", 0 findings"));
        assert_eq!(database.0.psql("SELECT count(*) FROM mirror_unconfirmed"), "0");
    }
}

#[tokio::test]
async fn mirrors_of_mirrors_follow_every_change() {
    let origin = Origin::new(Database::new().await);
    let (first, second) = (Mirror::new().await, Mirror::new().await);
    let (upstream, middle) = (origin.serve(), Service::start(first.database.0.url()));
    let Origin { database, library, .. } = &origin;
    let hash = |number| ChartSpec::numbered(number).note_hash();
    let id = |path: &str| database.chartsets()[path].clone();
    let changes: [(&str, &dyn Fn()); 10] = [
        ("start", &|| ()),
        ("add and update", &|| {
            library.osu("alpha/6 six/a.osu", ChartSpec::numbered(2));
            library.osu("alpha/1 one/c.osu", ChartSpec { keys: 7, ..ChartSpec::numbered(6) });
            library.delete("alpha/1 one/b.osu");
            database.ingest(library);
        }),
        ("remove", &|| {
            database.run(&["remove", "chart", &hash(1)]);
            database.run(&["remove", "chartset", &id("alpha/2 two")]);
        }),
        ("restore", &|| {
            database.run(&["restore", "chart", &hash(1)]);
            database.run(&["restore", "chartset", &id("alpha/2 two")]);
        }),
        ("erase", &|| {
            database.run(&["remove", "chartset", &id("alpha/2 two"), "--erase"]);
            database.run(&["remove", "chart", &hash(5), "--erase"]);
        }),
        ("ingest what was erased, with another file", &|| {
            database.run(&["restore", "chart", &hash(5)]);
            library.osu("alpha/five/a.osu", ChartSpec { bpm: 77.0, ..ChartSpec::numbered(5) });
            database.run(&["ingest", &library.argument(), "--full"]);
        }),
        // The mirrors find the last change only, and the numbers stay.
        ("erase, and ingest another file", &|| {
            database.run(&["remove", "chart", &hash(5), "--erase"]);
            database.run(&["restore", "chart", &hash(5)]);
            let chart = ChartSpec { bpm: 77.0, title: "eltiT".into(), ..ChartSpec::numbered(5) };
            library.osu("alpha/five/a.osu", chart);
            database.run(&["ingest", &library.argument(), "--full"]);
        }),
        ("replace a file with other numbers", &|| {
            origin.replace_rox(ChartSpec { bpm: 99.0, ..ChartSpec::numbered(1) });
        }),
        // The numbers and the size stay.
        ("replace a file with another title", &|| {
            origin.replace_rox(ChartSpec { title: "eltiT".into(), ..ChartSpec::numbered(4) });
        }),
        ("update", &|| {
            library.osu("alpha/1 one/a.osu", ChartSpec { title: "New".into(), ..ChartSpec::numbered(1) });
            database.ingest(library);
        }),
    ];
    for (name, change) in changes {
        println!("{name}");
        change();
        first.follow(&upstream);
        second.follow(&middle);
        assert_same(database, &[&first, &second]).await;
        // To apply everything again changes nothing.
        let last_change = || {
            let last = "SELECT max(sequence) FROM catalogue_changes WHERE change <> 'removed'";
            first.database.0.psql(last)
        };
        let before = (first.sequence(), last_change());
        first.database.0.psql("UPDATE mirror SET sequence = 0");
        first.follow(&upstream);
        assert_eq!((first.sequence(), last_change()), before, "{name}");
    }
}

/// What was removed from the mirror stays removed, and what the other index removes is not in its list.
#[tokio::test]
async fn removals_of_the_mirror_stay() {
    let origin = Origin::new(Database::new().await);
    let (mirror, upstream) = (Mirror::new().await, origin.serve());
    let (one, two) =
        (&origin.database.chartsets()["alpha/1 one"], &origin.database.chartsets()["alpha/2 two"]);
    let (hash, erased) = (ChartSpec::numbered(1).note_hash(), ChartSpec::numbered(4).note_hash());
    mirror.database.run(&["remove", "chart", &erased, "--erase"]);
    mirror.follow(&upstream);
    mirror.database.run(&["remove", "chart", &hash]);
    mirror.database.run(&["remove", "chartset", two]);
    let list = mirror.database.run(&["removals", "export"]);
    origin.library.osu("alpha/1 one/a.osu", ChartSpec { title: "New".into(), ..ChartSpec::numbered(1) });
    origin.library.osu("alpha/2 two/a.osu", ChartSpec { title: "New".into(), ..ChartSpec::numbered(3) });
    origin.database.ingest(&origin.library);
    origin.database.run(&["remove", "chart", &ChartSpec::numbered(5).note_hash()]);
    mirror.follow(&upstream);
    let service = Service::start(mirror.database.0.url());
    for (path, status) in [
        (format!("/api/charts/{hash}/rox"), 404),
        (format!("/api/charts/{erased}/rox"), 404),
        (format!("/api/chartsets/{two}"), 404),
        (format!("/api/chartsets/{one}"), 200),
    ] {
        assert_eq!(service.client().get(&path).await.status, status, "{path}");
    }
    assert_eq!(mirror.database.run(&["removals", "export"]), list);
    assert!(mirror.database.run(&["verify"]).contains(", 0 findings"));
    let stored = format!("SELECT count(*) FROM charts WHERE hash = '\\x{erased}'");
    assert_eq!(mirror.database.0.psql(&stored), "0");
}

#[tokio::test]
async fn killed_mirror_continues() {
    let origin = Origin::new(Database::new().await);
    origin.export(&["--rox"]);
    let upstream = origin.serve();
    origin.library.osu("alpha/6 six/a.osu", ChartSpec::numbered(6));
    origin.database.ingest(&origin.library);
    let mirror = Mirror::new().await;
    let downloaded = || {
        let entries = fs::read_dir(mirror.downloads.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    // While the export is imported.
    let lock = block_table(&mirror.database, "rox_files").await;
    let child = mirror.start(&upstream);
    wait_until_blocked(&mirror.database, "rox_files").await;
    let other = mirror.try_follow(&base(&upstream));
    assert_eq!((other.code, other.stderr.contains("another process")), (Some(1), true), "{}", other.stderr);
    kill(child);
    release(&mirror.database, lock);
    assert_eq!(mirror.sequence(), "");
    // The download continues: what was damaged before is found.
    let archive = downloaded()[0].join("rox.tar");
    let mut content = fs::read(&archive).unwrap();
    content.truncate(content.len() / 2);
    content[5] ^= 1;
    fs::write(&archive, &content).unwrap();
    let run = mirror.try_follow(&base(&upstream));
    assert_eq!((run.code, run.stderr.contains("rox.tar is damaged")), (Some(1), true), "{}", run.stderr);
    mirror.follow(&upstream);
    assert_same(&origin.database, &[&mirror]).await;
    assert_eq!(downloaded().len(), 0, "the files are deleted");
    // When the chartsets of a page are stored, and its position is not.
    origin.library.osu("alpha/7 seven/a.osu", ChartSpec::numbered(7));
    origin.database.ingest(&origin.library);
    let before = mirror.sequence();
    let lock = block_table(&mirror.database, "mirror_unconfirmed").await;
    let child = mirror.start(&upstream);
    wait_until_blocked(&mirror.database, "mirror_unconfirmed").await;
    assert_eq!(mirror.database.0.psql("SELECT count(*) FROM chartsets"), "7");
    kill(child);
    release(&mirror.database, lock);
    assert_eq!(mirror.sequence(), before);
    mirror.follow(&upstream);
    assert_same(&origin.database, &[&mirror]).await;
}

#[tokio::test]
async fn mirror_starts_with_a_signed_export() {
    let origin = Origin::new(Database::new().await);
    let folder = tempfile::tempdir().unwrap();
    let [key, other] = &KEYS;
    origin.export(&["--rox", "--sign-key", &key.secret_in(folder.path())]);
    let (mirror, upstream) = (Mirror::new().await, origin.serve());
    let follow = |keys: &[&str]| {
        let mut command = mirror.command(&base(&upstream), &["--once"]);
        IndexerRun::run(command.env("EXPORT_VERIFY_KEYS", keys.join(",")))
    };
    let run = follow(&[other.public]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("is refused: manifest.json.minisig is not by the key"), "{}", run.stderr);
    assert_eq!(mirror.sequence(), "");
    let run = follow(&[other.public, key.public]);
    assert_eq!((run.code, run.stderr.contains("starts with export")), (Some(0), true), "{}", run.stderr);
    let unsigned = Mirror::new().await;
    let export = fs::read_dir(origin.exports.path()).unwrap().map(|entry| entry.unwrap().path());
    let export = export.into_iter().find(|path| path.is_dir()).unwrap();
    fs::remove_file(export.join("manifest.json.minisig")).unwrap();
    let run =
        IndexerRun::run(&mut unsigned.command(&base(&upstream), &["--once", "--verify-key", key.public]));
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("is refused: the export has no signature"), "{}", run.stderr);
}

/// The database of the origin is set back, and charts and chartsets change in another way.
#[tokio::test]
async fn lost_changes_start_the_mirror_again() {
    let postgres = PrivatePostgres::start();
    let database = Database(TestDatabase::create_on(postgres.url()));
    database.run(&["migrate"]);
    let origin = Origin::new(database);
    let copy = postgres.stop_and_copy();
    postgres.restart();
    let Origin { database, library, .. } = &origin;
    let chart =
        |number, title: &str, bpm| ChartSpec { title: title.into(), bpm, ..ChartSpec::numbered(number) };
    library.osu("alpha/1 one/a.osu", chart(1, "Later", 150.0));
    library.osu("alpha/6 six/a.osu", chart(6, "Lost", 150.0));
    library.osu("alpha/7 seven/a.osu", chart(7, "Title", 77.0));
    library.osu("alpha/8 eight/a.osu", chart(8, "Title", 150.0));
    database.ingest(library);
    database.run(&["remove", "chart", &ChartSpec::numbered(5).note_hash()]);
    let (from_start, from_export) = (Mirror::new().await, Mirror::new().await);
    // As after a restart of the replica.
    let addresses = ReplicaAddresses::choose();
    let service = origin.serve_at(addresses);
    for mirror in [&from_start, &from_export] {
        mirror.follow(&service);
    }
    assert_same(database, &[&from_start, &from_export]).await;
    drop(service);
    postgres.stop_and_restore(&copy);
    postgres.restart();
    fs::remove_dir_all(library.root().join("alpha/6 six")).unwrap();
    library.osu("alpha/1 one/a.osu", ChartSpec::numbered(1));
    library.osu("alpha/7 seven/a.osu", chart(7, "Title", 99.0));
    // The size and the numbers of the ROX file stay.
    library.osu("alpha/8 eight/a.osu", chart(8, "eltiT", 150.0));
    database.ingest(library);
    let service = origin.serve_at(addresses);
    let printed = from_start.follow(&service);
    assert!(printed.contains("it has lost changes") && printed.contains("no export"), "{printed}");
    origin.export(&["--rox"]);
    let printed = from_export.follow(&service);
    assert!(printed.contains("it has lost changes") && printed.contains("starts with export"), "{printed}");
    drop(service);
    assert_same(database, &[&from_start, &from_export]).await;
}

#[tokio::test]
async fn other_indexes_do_not_become_mirrors() {
    let origin = Origin::new(Database::new().await);
    let own = Mirror { database: origin.database, downloads: tempfile::tempdir().unwrap() };
    let run = own.try_follow("http://127.0.0.1:1");
    assert_eq!(
        (run.code, run.stderr.contains("has chartsets and is no mirror")),
        (Some(1), true),
        "{}",
        run.stderr
    );
    let mirror = Mirror::new().await;
    for (upstream, message) in [
        ("http://127.0.0.1:1/a/", "cannot read http://127.0.0.1:1/a/api/exports/latest"),
        ("http://127.0.0.1:1/b", "the index is a mirror of http://127.0.0.1:1/a:"),
    ] {
        let run = mirror.try_follow(upstream);
        assert_eq!((run.code, run.stderr.contains(message)), (Some(1), true), "{}", run.stderr);
    }
}

#[tokio::test]
async fn running_mirror_has_metrics() {
    let origin = Origin::new(Database::new().await);
    let (mirror, upstream) = (Mirror::new().await, origin.serve());
    let mut running = RunningIndexer::start(&mut mirror.command(&base(&upstream), &["--interval-ms", "50"]));
    let sequence = |database: &Database| database.0.psql("SELECT max(sequence) FROM catalogue_changes");
    let follows = async |goal: &str| {
        let is_reached = async || {
            let sequence = running.metric("chart_index_mirror_sequence").await?;
            (sequence.to_string() == goal && running.metric("chart_index_mirror_lag_seconds").await? == 0.0)
                .then_some(())
        };
        within(TIMEOUT, is_reached).await;
    };
    follows(&sequence(&origin.database)).await;
    origin.library.osu("alpha/6 six/a.osu", ChartSpec::numbered(6));
    origin.database.ingest(&origin.library);
    follows(&sequence(&origin.database)).await;
    let changes = "chart_index_mirror_changes_total{chart_index_outcome=\"applied\"}";
    let entries = origin.database.0.psql("SELECT count(*) FROM catalogue_changes");
    assert_eq!(running.metric(changes).await.map(|count| count.to_string()), Some(entries));
    assert!(running.metric("chart_index_mirror_last_success_seconds").await.is_some_and(|time| time > 1.7e9));
    running.terminate();
    assert_eq!(running.wait(), Some(130));
    assert_same(&origin.database, &[&mirror]).await;
}

#[tokio::test]
async fn hostile_changes_are_refused_and_others_applied() {
    let origin = Origin::new(Database::new().await);
    let (service, ids) = (origin.serve(), origin.database.chartsets());
    let client = service.client();
    let hash = |number| ChartSpec::numbered(number).note_hash();
    let page = client.get("/api/changes?limit=1000").await.json();
    let of = |page: &Value, path: &str| {
        let items = page["items"].as_array().unwrap();
        items.iter().position(|item| item["id"] == ids[path]).unwrap()
    };
    let mut hostile = page.clone();
    let record = |path: &str| (of(&page, path), "chartset");
    let change = |(index, field): (usize, &str), pointer: &str, value: Value, page: &mut Value| {
        *page["items"][index][field].pointer_mut(pointer).unwrap() = value;
    };
    change(record("alpha/1 one"), "/charts/0/notes", json!(99), &mut hostile);
    change(record("alpha/2 two"), "/updatedAtMs", json!(1_u64 << 52), &mut hostile);
    let last = hostile["next"].as_u64().unwrap();
    let mut gone = hostile["items"][of(&page, "alpha/five")].clone();
    gone["sequence"] = json!(last + 1);
    gone["id"] = json!("0".repeat(16));
    gone["chartset"]["id"] = gone["id"].clone();
    gone["chartset"]["charts"][0]["hash"] = json!("0".repeat(64));
    let items = hostile["items"].as_array_mut().unwrap();
    items.extend([gone, json!({"sequence": last + 2, "change": "added"})]);
    hostile["next"] = json!(last + 2);
    let rox = async |number| client.get(&format!("/api/charts/{}/rox", hash(number))).await.body;
    let files =
        [(1, rox(1).await), (2, rox(2).await), (3, rox(3).await), (4, vec![0; 17 << 20]), (5, rox(1).await)];
    let files: BTreeMap<String, Vec<u8>> =
        files.into_iter().map(|(number, file)| (format!("/api/charts/{}/rox", hash(number)), file)).collect();
    let mut current = page;
    current["next"] = json!(last + 2);
    let (current, hostile) = (current.to_string().into_bytes(), hostile.to_string().into_bytes());
    let checks = AtomicU32::new(0);
    let base = http_server::serve(move |request| {
        let path = request.path();
        let is_check =
            path.starts_with("/api/changes?after=") && request.has_header("cache-control: no-cache");
        match path {
            // What has changed since is no longer there when the change has a number.
            _ if is_check && checks.fetch_add(1, Ordering::Relaxed) == 0 => response("200 OK", &hostile),
            _ if is_check => response("200 OK", &current),
            "/api/changes?after=0&limit=1000" => response("200 OK", &hostile),
            _ => {
                files.get(path).map_or_else(|| response("404 Not Found", ""), |file| response("200 OK", file))
            }
        }
    });
    let mirror = Mirror::new().await;
    let run = mirror.try_follow(&base);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let stored = mirror.database.0.psql("SELECT id FROM chartsets ORDER BY id");
    // The time of the first one is in the future, which is the clock of the upstream.
    let mut valid = [&*ids["alpha/2 two"], &ids["alpha/3 three"]];
    valid.sort_unstable();
    assert_eq!(stored, valid.join("\n"), "{}", run.stderr);
    for refused in [
        format!("chartset {}: chart", ids["alpha/1 one"]),
        "does not match its ROX file".to_owned(),
        format!("chartset {}: the ROX file of chart {} has more than", ids["beta/4 four/song"], hash(4)),
        format!("the ROX file of chart {} has the notes of chart {}", hash(5), hash(1)),
        format!("chartset {} has changed since", "0".repeat(16)),
        "after sequence 0: missing field `changedAtMs`".to_owned(),
    ] {
        assert!(run.stderr.contains(&refused), "{refused}: {}", run.stderr);
    }
    assert_eq!(mirror.sequence(), (last + 2).to_string());
}

/// A replica may have the earlier file of a chart that was replaced before the mirror had it. The mirror may
/// end after it has read of that.
#[tokio::test]
async fn earlier_file_of_a_new_chart_is_not_stored() {
    let origin = Origin::new(Database::new().await);
    let hash = ChartSpec::numbered(4).note_hash();
    let path = format!("/api/charts/{hash}/rox");
    let earlier = origin.serve().client().get(&path).await.body;
    // The numbers and the size stay.
    let tags = "a \"b\"".into();
    origin.replace_rox(ChartSpec { title: "eltiT".into(), tags, ..ChartSpec::numbered(4) });
    let service = origin.serve();
    let client = service.client();
    let mut page = client.get("/api/changes?limit=1000").await.json();
    let items = page["items"].as_array_mut().unwrap();
    let mut take = |is_taken: &dyn Fn(&Value) -> bool| {
        let index = items.iter().position(is_taken).unwrap();
        items.remove(index)
    };
    let mut replacement = take(&|item| item["roxBlake3"].is_string());
    let mut chartset = take(&|item| item["kind"] == "chartset" && item.to_string().contains(&hash));
    replacement["sequence"] = 1.into();
    chartset["sequence"] = 2.into();
    let pages = [(replacement, 1), (chartset, 2)].map(|(item, next)| {
        json!({ "items": [item], "next": next, "hasMore": false }).to_string().into_bytes()
    });
    let mut files = BTreeMap::new();
    for number in 1..=5 {
        let path = format!("/api/charts/{}/rox", ChartSpec::numbered(number).note_hash());
        files.insert(path.clone(), client.get(&path).await.body);
    }
    let (replaced, requests) = (files[&path].clone(), AtomicU32::new(0));
    assert_ne!(earlier, replaced);
    assert_eq!(earlier.len(), replaced.len());
    let base = http_server::serve(move |request| {
        let requested = request.path();
        match files.get(requested) {
            Some(_) if requested == path && requests.fetch_add(1, Ordering::Relaxed) == 0 => {
                response("200 OK", &earlier)
            }
            Some(file) => response("200 OK", file),
            None if requested.starts_with("/api/changes?after=0") => response("200 OK", &pages[0]),
            None if requested.starts_with("/api/changes?after=1") => response("200 OK", &pages[1]),
            None => response("404 Not Found", ""),
        }
    });
    let mirror = Mirror::new().await;
    for sequence in ["1", "2"] {
        assert_eq!(mirror.try_follow(&base).code, Some(0));
        assert_eq!(mirror.sequence(), sequence);
    }
    let stored =
        Service::start(mirror.database.0.url()).client().get(&format!("/api/charts/{hash}/rox")).await;
    assert_eq!(stored.body, replaced);
}

#[tokio::test]
async fn refused_requests_are_repeated_after_the_pause() {
    let refusals = AtomicU32::new(0);
    let base = http_server::serve(move |request| {
        let is_first = refusals.fetch_add(1, Ordering::Relaxed) < 2;
        match request.path() {
            _ if is_first => response("429 Too Many Requests\r\nretry-after: 1", ""),
            "/api/exports/latest" => response("404 Not Found", ""),
            _ => response("200 OK", r#"{"items":[],"next":0,"hasMore":false}"#),
        }
    });
    let mirror = Mirror::new().await;
    let started = std::time::Instant::now();
    let run = mirror.try_follow(&base);
    assert_eq!((run.code, run.stderr.matches("continues in 1 s").count()), (Some(0), 2), "{}", run.stderr);
    assert!(started.elapsed() >= Duration::from_secs(2));
    assert_eq!(mirror.sequence(), "0");
}
