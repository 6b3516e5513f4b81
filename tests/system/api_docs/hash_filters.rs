//! The readers of hash filters in the packages, over a filter that a service serves.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

use chart_index_client::HashFilter;
use chart_index_tests::{Service, TestDatabase, indexer, workspace_root};

use super::snippets::succeeded;

/// Charts whose hashes are the SHA-256 digests of these numbers. Like note hashes they are uniform.
const KNOWN: u32 = 100_000;
const UNKNOWN: u32 = 100_000;

/// Puts the charts into a chartset of the samples.
fn insert_charts(database: &TestDatabase) {
    database.psql(&format!(
        "INSERT INTO charts (hash, keys, bpm_min, bpm_max, bpm_main, length_ms, notes, lns, density_avg, density_peak,
                             rox_bytes, first_seen_ms)
         SELECT sha256(int4send(number)), 4, 120, 120, 120, 0, 1, 0, 0, 1, 1, 0
         FROM generate_series(1, {KNOWN}) AS number"
    ));
    database.psql(&format!(
        "INSERT INTO chartset_charts (chartset_id, chart_hash, title, artist, creator, difficulty, tags)
         SELECT (SELECT min(id) FROM chartsets), sha256(int4send(number)), '', '', '', '', '{{}}'
         FROM generate_series(1, {KNOWN}) AS number"
    ));
}

/// Runs the reader of the npm package over the filter and the hashes in a folder. The Python package has
/// that of the crate.
fn read_in_javascript(folder: &Path) -> Output {
    let mut node = Command::new(workspace_root().join("scripts/npm-client"));
    node.arg("node").arg(workspace_root().join("tests/system/clients/npm/hash_filter.mjs"));
    let hashes = File::open(folder.join("hashes.txt")).expect("a file");
    node.arg(folder.join("filter.bin")).stdin(hashes).output().expect("the script starts")
}

/// No reader misses a known chart, fewer than 0.5 % of the unknown ones may be known, and all readers agree.
#[tokio::test]
async fn readers_find_known_charts_and_agree() {
    let database = TestDatabase::with_samples().await;
    insert_charts(&database);
    indexer(database.url(), &["filter"]).succeeded();
    let service = Service::start(database.url());
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("http://{}/api/charts/filter", service.address());
    let file = folder.path().join("filter.bin");
    let mut curl = Command::new("curl");
    curl.args(["--fail", "--silent", "--show-error", "-L", "-o"]).arg(&file).arg(url);
    succeeded("curl", &curl.output().expect("curl is installed"));
    let hashes = database.psql(&format!(
        "SELECT encode(sha256(int4send(number)), 'hex') FROM generate_series(1, {KNOWN} + {UNKNOWN}) AS number"
    ));
    fs::write(folder.path().join("hashes.txt"), &hashes).expect("a file");

    let printed = succeeded("hash_filter.mjs", &read_in_javascript(folder.path()));
    let answers: Vec<_> =
        printed.lines().map(|line| line.split_once(' ').expect("a hash and an answer")).collect();
    assert!(answers.iter().map(|(hash, _)| *hash).eq(hashes.lines()));
    let filter = HashFilter::from_bytes(&fs::read(&file).expect("the filter")).expect("a filter");
    for (hash, answer) in &answers {
        assert_eq!(filter.may_contain(hash.parse().expect("a hash")), *answer == "maybe", "{hash}");
    }
    let (known, unknown) = answers.split_at(KNOWN as usize);
    assert!(known.iter().all(|(_, answer)| *answer == "maybe"), "a known chart is missing");
    let maybe = unknown.iter().filter(|(_, answer)| *answer == "maybe").count();
    assert!(maybe < UNKNOWN as usize / 200, "{maybe} false positives");
    let size = fs::metadata(&file).expect("the filter").len();
    assert!(size < u64::from(KNOWN) * 5 / 4, "{size} bytes");
}
