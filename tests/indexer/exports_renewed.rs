//! Exports that `chart-indexer follow` writes after removals.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use chart_index_tests::{RunningIndexer, within};

use super::exports::{chartsets, manifest};
use super::signed_exports::KEYS;
use super::*;

/// A timeout that no passing test reaches.
const TIMEOUT: Duration = Duration::from_mins(1);

/// What the operator says about the use of the catalogue: the variable, and the field of the manifest.
const OPERATOR: [(&str, &str, &str); 3] = [
    ("CONTACT", "contact", "charts@operator.example"),
    ("DATA_LICENSE", "license", "CC0-1.0"),
    ("TERMS_URL", "terms", "https://operator.example/terms"),
];

/// An index with three chartsets of one chart each, and an export.
struct Exported {
    database: Database,
    exports: tempfile::TempDir,
    hashes: Vec<String>,
}

impl Exported {
    async fn new(arguments: &[&str]) -> Self {
        let (database, library) = (Database::new().await, Library::new());
        let write = |number| library.osu(&format!("alpha/{number} set/a.osu"), ChartSpec::numbered(number));
        let hashes = (1..=3).map(|number| write(number).note_hash()).collect();
        database.ingest(&library);
        let exports = tempfile::tempdir().unwrap();
        database.run(&[&["export", exports.path().to_str().unwrap(), "--rox"], arguments].concat());
        Self { database, exports, hashes }
    }

    fn follow(&self) -> Command {
        let mut command = indexer_command(self.database.0.url(), &["follow"]);
        command.env("EXPORTS_DIR", self.exports.path()).env_remove("MEILISEARCH_URL");
        command
    }

    /// The exports, the newest one last.
    fn list(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.exports.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut exports: Vec<_> = entries.filter(|path| path.join("manifest.json").exists()).collect();
        exports.retain(|path| path.file_name().is_some_and(|name| name != ".partial"));
        exports.sort();
        exports
    }

    /// Waits for an export that is newer than this one.
    async fn wait_for_export_after(&self, export: &Path) -> PathBuf {
        within(TIMEOUT, async || self.list().pop().filter(|newest| newest != export)).await.0
    }
}

#[tokio::test]
async fn withdrawn_export_is_replaced_without_rox_files() {
    let exported = Exported::new(&["--sqlite"]).await;
    let original = exported.list().pop().unwrap();
    let _follow = RunningIndexer::start(&mut exported.follow());
    let mut last = original.clone();
    for (hash, left) in [(&exported.hashes[0], 2), (&exported.hashes[1], 1)] {
        exported.database.run(&["remove", "chart", hash]);
        let newest = exported.wait_for_export_after(&last).await;
        let manifest = manifest(&newest);
        let files: Vec<_> = manifest["files"].as_array().unwrap().iter().map(|file| &file["name"]).collect();
        assert_eq!(files, ["chartsets.ndjson.zst", "catalogue.sqlite.zst"]);
        assert_eq!(manifest["charts"], left);
        let charts = chartsets(&newest);
        assert!(!charts.iter().any(|line| line.to_string().contains(hash.as_str())), "{charts:?}");
        last = newest;
    }
    // Only what `follow` has written itself is deleted.
    within(TIMEOUT, async || (exported.list() == [&*original, &*last]).then_some(())).await;
}

/// The new one has the words of the operator.
#[tokio::test]
async fn signed_export_is_replaced_by_a_signed_one_only() {
    let key = tempfile::tempdir().unwrap();
    let key = KEYS[0].secret_in(key.path());
    let exported = Exported::new(&["--sign-key", &key]).await;
    let original = exported.list().pop().unwrap();
    exported.database.run(&["remove", "chart", &exported.hashes[0]]);
    let mut without_key = exported.follow().stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(without_key.stderr.take().unwrap()).lines().map_while(Result::ok);
    let refusal = log.find(|line| line.contains("set EXPORT_SIGN_KEY_FILE"));
    kill(without_key);
    assert!(refusal.is_some());
    assert_eq!(exported.list(), [&*original]);
    let mut follow = exported.follow();
    follow.env("EXPORT_SIGN_KEY_FILE", &key);
    for (variable, field, value) in OPERATOR {
        assert_eq!(manifest(&original).get(field), None);
        follow.env(variable, value);
    }
    let _follow = RunningIndexer::start(&mut follow);
    let newest = exported.wait_for_export_after(&original).await;
    assert!(newest.join("manifest.json.minisig").exists());
    let manifest = manifest(&newest);
    for (_, field, value) in OPERATOR {
        assert_eq!(manifest[field], value);
    }
}
