//! `chart-indexer mirror`, of an upstream whose files or exports fail, and of one that was built anew.

use std::fs;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use chart_index_tests::http_server::{self, response};
use chart_index_tests::{ReplicaAddresses, Service, within};

use super::mirror::{Mirror, Origin, assert_same, base};
use super::*;

/// The time within which a removal is in force on a mirror (docs/operations/mirrors.md, "Removals").
const REMOVED_WITHIN: Duration = Duration::from_mins(1);
const TIMEOUT: Duration = Duration::from_mins(1);

/// Returns a response to a path in place of that of the service.
type Respond = Box<dyn Fn(&str) -> Option<Vec<u8>> + Send>;

/// Forwards requests to a service, except those that it responds to itself.
struct Front {
    base: String,
    respond: Arc<Mutex<Respond>>,
    /// Whether requests for ROX files wait, and how many have waited.
    held: Arc<(Mutex<(bool, u32)>, Condvar)>,
}

impl Front {
    fn new(service: &Service) -> Self {
        let respond = Arc::new(Mutex::new(Box::new(|_: &str| None) as Respond));
        let held = Arc::<(Mutex<(bool, u32)>, Condvar)>::default();
        let (responses, gate, service) = (respond.clone(), held.clone(), service.address());
        let base = http_server::serve(move |request| {
            if request.path().ends_with("/rox") {
                wait(&gate);
            }
            let response = responses.lock().unwrap_or_else(PoisonError::into_inner)(request.path());
            response.unwrap_or_else(|| request.forward(service))
        });
        Self { base, respond, held }
    }

    fn respond(&self, respond: impl Fn(&str) -> Option<Vec<u8>> + Send + 'static) {
        *self.respond.lock().unwrap() = Box::new(respond);
    }

    fn hold(&self, is_held: bool) {
        *self.held.0.lock().unwrap() = (is_held, 0);
        self.held.1.notify_all();
    }

    fn waiting(&self) -> u32 {
        self.held.0.lock().unwrap().1
    }
}

fn wait(held: &(Mutex<(bool, u32)>, Condvar)) {
    let mut state = held.0.lock().unwrap();
    state.1 += 1;
    drop(held.1.wait_while(state, |(is_held, _)| *is_held).unwrap());
}

fn rox_path(number: u32) -> String {
    format!("/api/charts/{}/rox", ChartSpec::numbered(number).note_hash())
}

fn chart(number: u32, title: &str) -> ChartSpec {
    ChartSpec { title: title.into(), ..ChartSpec::numbered(number) }
}

async fn until(database: &Database, query: &str, expected: &str, timeout: Duration) {
    within(timeout, async || (database.0.psql(query) == expected).then_some(())).await;
}

/// The mirror has files to fetch which do not arrive.
#[tokio::test]
async fn removals_do_not_wait_for_downloads() {
    let origin = Origin::new(Database::new().await);
    let service = origin.serve();
    let (front, mirror) = (Front::new(&service), Mirror::new().await);
    let Origin { database, library, .. } = &origin;
    let mut running = mirror.command(&front.base, &["--interval-ms", "50"]);
    let mut running = running.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let last = || database.0.psql("SELECT max(sequence) FROM catalogue_changes");
    until(&mirror.database, "SELECT sequence FROM mirror", &last(), TIMEOUT).await;
    front.hold(true);
    library.osu("alpha/1 one/a.osu", chart(1, "New"));
    library.osu("alpha/6 six/a.osu", ChartSpec::numbered(6));
    library.osu("alpha/7 seven/a.osu", ChartSpec::numbered(7));
    library.osu("alpha/7 seven/b.osu", ChartSpec::numbered(8));
    database.ingest(library);
    within(TIMEOUT, async || (front.waiting() >= 3).then_some(())).await;
    let before = mirror.sequence();
    let (stored, new) = (&database.chartsets()["alpha/2 two"], &database.chartsets()["alpha/6 six"]);
    database.run(&["remove", "chartset", stored]);
    // In the page that is being applied.
    database.run(&["remove", "chartset", new]);
    database.run(&["remove", "chart", &ChartSpec::numbered(8).note_hash()]);
    // It ends as added.
    database.run(&["remove", "chart", &ChartSpec::numbered(5).note_hash()]);
    let shown = format!(
        "SELECT count(*) FROM chartsets WHERE shown AND (id = '{stored}' OR id = '{}')",
        database.chartsets()["alpha/five"]
    );
    until(&mirror.database, &shown, "0", REMOVED_WITHIN).await;
    assert_eq!(mirror.sequence(), before, "nothing of the page is stored");
    database.run(&["restore", "chart", &ChartSpec::numbered(5).note_hash()]);
    front.hold(false);
    until(&mirror.database, "SELECT sequence FROM mirror", &last(), TIMEOUT).await;
    running.kill().unwrap();
    running.wait().unwrap();
    assert_same(database, &[&mirror]).await;
    assert!(!mirror.database.chartsets().contains_key("alpha/6 six"));
}

#[tokio::test]
async fn file_that_cannot_be_read_refuses_its_chartset_only() {
    let origin = Origin::new(Database::new().await);
    let service = origin.serve();
    let (front, mirror) = (Front::new(&service), Mirror::new().await);
    let lost = rox_path(4);
    front.respond(move |path| (path == lost).then(|| response("500 Internal Server Error", "")));
    let run = mirror.try_follow(&front.base);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let set = &origin.database.chartsets()["beta/4 four/song"];
    let refused = format!("refused: chartset {set}: the ROX file of chart");
    assert!(run.stderr.contains(&refused) && run.stderr.contains(": 500 Internal"), "{}", run.stderr);
    let counts =
        "SELECT (SELECT count(*) FROM chartsets WHERE shown), (SELECT count(*) FROM mirror_refusals)";
    assert_eq!(mirror.database.0.psql(counts), "4|1");
    // Later changes are applied, and what is refused is tried again at the start, or when it is due.
    origin.library.osu("alpha/1 one/a.osu", chart(1, "New"));
    origin.database.ingest(&origin.library);
    let run = mirror.try_follow(&front.base);
    assert!(run.stderr.contains(&refused), "{}", run.stderr);
    assert_eq!(mirror.database.0.psql(counts), "4|1");
    // Nor is it forgotten while its page is shorter.
    let page = service.client().get("/api/changes?limit=1").await.body;
    front.respond(move |path| path.starts_with("/api/changes?after=0&").then(|| response("200 OK", &page)));
    mirror.try_follow(&front.base);
    assert_eq!(mirror.database.0.psql(counts), "4|1");
    front.respond(|_| None);
    mirror.try_follow(&front.base);
    assert_eq!(mirror.database.0.psql(counts), "5|0");
    assert_same(&origin.database, &[&mirror]).await;
}

/// Replaced files, and a chartset that has changed before it is tried again.
#[tokio::test]
async fn refused_changes_are_tried_again_as_they_are_now() {
    let origin = Origin::new(Database::new().await);
    let service = origin.serve();
    let (front, mirror) = (Front::new(&service), Mirror::new().await);
    mirror.try_follow(&front.base);
    let requests = Arc::new(AtomicU32::new(0));
    let refuse = |status: &'static str| {
        let (requests, replaced) = (Arc::clone(&requests), [1, 2, 3, 4].map(rox_path));
        front.respond(move |path| {
            requests.fetch_add(u32::from(replaced.iter().any(|file| file == path)), Ordering::Relaxed);
            path.ends_with("/rox").then(|| response(status, ""))
        });
    };
    // No replica is late if the file is elsewhere.
    refuse("302 Found\r\nlocation: http://127.0.0.1:1/rox");
    // The numbers and the size stay.
    origin.replace_rox(ChartSpec { tags: "a \"b\"".into(), ..chart(4, "eltiT") });
    origin.replace_rox(chart(3, "eltiT"));
    origin.library.osu("alpha/6 six/a.osu", ChartSpec::numbered(6));
    origin.library.osu("alpha/7 seven/a.osu", ChartSpec::numbered(7));
    origin.database.ingest(&origin.library);
    let run = mirror.try_follow(&front.base);
    let hash = ChartSpec::numbered(4).note_hash();
    assert!(run.stderr.contains(&format!("refused: chart {hash}: ")), "{}", run.stderr);
    let refused = "SELECT count(*) FROM mirror_refusals";
    assert_eq!(mirror.database.0.psql(refused), "4");
    assert_eq!(requests.load(Ordering::Relaxed), 2);
    // The mirror waits once for those of a page, and not for those that it tries again.
    refuse("502 Bad Gateway");
    origin.replace_rox(chart(1, "eltiT"));
    origin.replace_rox(chart(2, "eltiT"));
    mirror.try_follow(&front.base);
    assert_eq!(mirror.database.0.psql(refused), "6");
    assert!(requests.load(Ordering::Relaxed) <= 2 + 2 + 3 + 1, "{requests:?}");
    front.respond(|_| None);
    origin.database.run(&["remove", "chartset", &origin.database.chartsets()["alpha/6 six"]]);
    // Those of a page at each end of the feed.
    for left in ["2", "0"] {
        mirror.try_follow(&front.base);
        assert_eq!(mirror.database.0.psql(refused), left);
    }
    assert_same(&origin.database, &[&mirror]).await;
}

#[tokio::test]
async fn redirects_are_followed_to_named_addresses_only() {
    let origin = Origin::new(Database::new().await);
    let service = origin.serve();
    let (front, mirror) = (Front::new(&service), Mirror::new().await);
    let (client, mut files) = (service.client(), BTreeMap::new());
    for number in 1..=5 {
        let path = rox_path(number);
        files.insert(format!("/objects{path}"), client.get(&path).await.body);
    }
    let requests = Arc::new(AtomicU32::new(0));
    let bucket = http_server::serve({
        let requests = Arc::clone(&requests);
        move |request| {
            requests.fetch_add(1, Ordering::Relaxed);
            response("200 OK", &files[request.path()])
        }
    });
    front.respond({
        let bucket = bucket.clone();
        move |path| {
            let found = format!("302 Found\r\nlocation: {bucket}/objects{path}");
            path.ends_with("/rox").then(|| response(&found, ""))
        }
    });
    let follow = |objects: &str| {
        let mut command = mirror.command(&front.base, &["--once"]);
        IndexerRun::run(command.env("MIRROR_OBJECTS_URL", objects))
    };
    for other in ["http://127.0.0.1:1/objects".to_owned(), format!("http://127.0.0.1:1,{bucket}/obj")] {
        let run = follow(&other);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stderr.contains("is not below an address of MIRROR_OBJECTS_URL"), "{}", run.stderr);
        assert_eq!(requests.load(Ordering::Relaxed), 0);
        assert_eq!(mirror.database.0.psql("SELECT count(*) FROM mirror_refusals"), "5");
    }
    follow(&format!("http://127.0.0.1:1,{bucket}/objects/"));
    assert_eq!(requests.load(Ordering::Relaxed), 5);
    assert_same(&origin.database, &[&mirror]).await;
}

/// Its changes are later than now, by a day.
#[tokio::test]
async fn clock_that_is_ahead_is_no_refusal() {
    let origin = Origin::new(Database::new().await);
    origin.database.0.psql("UPDATE chartsets SET updated_at_ms = updated_at_ms + 86400000");
    origin.database.run(&["verify"]);
    origin.export(&["--rox"]);
    let service = origin.serve();
    let (from_export, from_start) = (Mirror::new().await, Mirror::new().await);
    let printed = from_export.follow(&service);
    assert!(printed.contains("starts with export"), "{printed}");
    let front = Front::new(&service);
    front.respond(|path| (path.starts_with("/api/exports/")).then(|| response("404 Not Found", "")));
    from_start.try_follow(&front.base);
    for mirror in [from_export, from_start] {
        let later = "SELECT count(*), count(*) FILTER (WHERE updated_at_ms > extract(epoch FROM now()) * 1000 + 60000)
                     FROM chartsets WHERE shown";
        assert_eq!(mirror.database.0.psql(later), "5|0");
    }
}

#[tokio::test]
async fn mirror_follows_the_feed_while_exports_are_unavailable() {
    let origin = Origin::new(Database::new().await);
    origin.export(&["--rox"]);
    let service = origin.serve();
    let (front, mirror) = (Front::new(&service), Mirror::new().await);
    front
        .respond(|path| (path.starts_with("/api/exports/")).then(|| response("503 Service Unavailable", "")));
    let run = mirror.try_follow(&front.base);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("503 Service Unavailable; the mirror starts with"), "{}", run.stderr);
    assert_same(&origin.database, &[&mirror]).await;
    // Without one of its files for good.
    let other = Mirror::new().await;
    front.respond(|path| (path.ends_with("rox.tar")).then(|| response("500 Error", "")));
    let run = other.try_follow(&front.base);
    assert_eq!((run.code, other.sequence().as_str()), (Some(1), ""), "{}", run.stderr);
    let mut running = other.command(&front.base, &["--interval-ms", "50"]);
    let mut running = running.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let last = origin.database.0.psql("SELECT max(sequence) FROM catalogue_changes");
    until(&other.database, "SELECT sequence FROM mirror WHERE NOT is_starting", &last, TIMEOUT).await;
    running.kill().unwrap();
    running.wait().unwrap();
    assert_same(&origin.database, &[&other]).await;
}

#[tokio::test]
async fn export_that_is_too_large_is_not_downloaded() {
    let origin = Origin::new(Database::new().await);
    origin.export(&["--rox"]);
    let service = origin.serve();
    let mirror = Mirror::new().await;
    let mut command = mirror.command(&base(&service), &["--once"]);
    let run = IndexerRun::run(command.env("DOWNLOADS_MAX_BYTES", "1000"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("above DOWNLOADS_MAX_BYTES, which is 1000"), "{}", run.stderr);
    assert_same(&origin.database, &[&mirror]).await;
}

/// An export has the others, and a mirror gets the lost one when it is there again.
#[tokio::test]
async fn export_leaves_out_a_chart_whose_file_is_lost() {
    let origin = Origin::new(Database::new().await);
    let lost = ChartSpec::numbered(2).note_hash();
    let (take, put) = (
        format!(
            "CREATE TABLE lost AS SELECT * FROM rox_files WHERE hash = '\\x{lost}';
             DELETE FROM rox_files WHERE hash = '\\x{lost}'"
        ),
        "INSERT INTO rox_files SELECT * FROM lost; DROP TABLE lost",
    );
    origin.database.0.psql(&take);
    let exports = origin.exports.path().to_str().unwrap();
    let run = origin.database.try_run(&["export", exports, "--rox", "--sqlite"]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains(&format!("chart {lost} was left out")), "{}", run.stderr);
    let export = run.stdout.split_once(": ").unwrap().0;
    let manifest = fs::read(format!("{export}/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!((&manifest["charts"], &manifest["lostCharts"]), (&4.into(), &1.into()), "{manifest}");
    let imported = Database::new().await;
    imported.run(&["import", export]);
    let counts = "SELECT (SELECT count(*) FROM chartsets WHERE shown), (SELECT count(*) FROM charts)";
    assert_eq!(imported.0.psql(counts), "5|4");
    let (mirror, addresses) = (Mirror::new().await, ReplicaAddresses::choose());
    let printed = mirror.follow(&origin.serve_at(addresses));
    assert!(printed.contains(&format!("there is no ROX file of chart {lost}")), "{printed}");
    assert_eq!(mirror.database.0.psql(counts), "5|4");
    origin.database.0.psql(put);
    // The replica had cached that there is none.
    mirror.follow(&origin.serve_at(addresses));
    assert_same(&origin.database, &[&mirror]).await;
}

/// The upstream has it, and its feed does not repeat it.
#[tokio::test]
async fn restored_entry_that_was_erased_comes_back() {
    let origin = Origin::new(Database::new().await);
    let (mirror, service) = (Mirror::new().await, origin.serve());
    mirror.follow(&service);
    let set = &origin.database.chartsets()["alpha/2 two"];
    let hash = ChartSpec::numbered(1).note_hash();
    for entry in [["chartset", set], ["chart", &hash]] {
        mirror.database.run(&[&["remove"][..], &entry, &["--erase"]].concat());
        mirror.follow(&service);
        mirror.database.run(&[&["restore"][..], &entry].concat());
        mirror.follow(&service);
        assert_same(&origin.database, &[&mirror]).await;
    }
}

/// Its new database has more changes than the mirror has seen.
#[tokio::test]
async fn upstream_that_was_built_anew_starts_the_mirror_again() {
    let origin = Origin::new(Database::new().await);
    let (mirror, addresses) = (Mirror::new().await, ReplicaAddresses::choose());
    mirror.follow(&origin.serve_at(addresses));
    let rebuilt = Database::new().await;
    fs::remove_dir_all(origin.library.root().join("alpha/2 two")).unwrap();
    for number in 10..=20 {
        origin.library.osu(&format!("alpha/{number} x/a.osu"), ChartSpec::numbered(number));
    }
    rebuilt.ingest(&origin.library);
    let rebuilt = Origin { database: rebuilt, ..origin };
    let service = rebuilt.serve_at(addresses);
    let printed = mirror.follow(&service);
    assert!(printed.contains("the mirror starts again"), "{printed}");
    assert_eq!(mirror.database.0.psql("SELECT restarts FROM mirror"), "1");
    drop(service);
    assert_same(&rebuilt.database, &[&mirror]).await;
}

/// It keeps what it has.
#[tokio::test]
async fn mirror_moves_to_another_mirror_of_the_same_index() {
    let origin = Origin::new(Database::new().await);
    let (first, second) = (Mirror::new().await, Mirror::new().await);
    let upstream = origin.serve();
    first.follow(&upstream);
    second.follow(&upstream);
    let stored = second.database.0.psql("SELECT hash, first_seen_ms FROM charts ORDER BY hash");
    origin.library.osu("alpha/6 six/a.osu", ChartSpec::numbered(6));
    origin.database.ingest(&origin.library);
    origin.database.run(&["remove", "chartset", &origin.database.chartsets()["alpha/2 two"]]);
    first.follow(&upstream);
    let other = Service::start(first.database.0.url());
    second.database.0.psql(&format!("UPDATE mirror SET upstream = '{}'", base(&other)));
    second.follow(&other);
    assert_eq!(second.database.0.psql("SELECT restarts FROM mirror"), "1");
    let kept = second.database.0.psql("SELECT hash, first_seen_ms FROM charts ORDER BY hash");
    let is_kept = |line: &&str| kept.lines().any(|kept| kept == *line);
    assert_eq!(stored.lines().filter(is_kept).count(), 4, "all but that of the removed chartset");
    drop(other);
    assert_same(&origin.database, &[&second]).await;
}
