//! `chart-indexer export` and `chart-indexer import`.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use chart_index_tests::{Client, Service, Shared, generate_catalogue, within};
use serde_json::{Value, json};

use super::table_locks::{block_table, release, wait_until_blocked};
use super::*;

/// An index with the samples, of which a chart and a chartset are removed, and a folder for its exports.
pub(crate) struct Original {
    pub(crate) database: Database,
    exports: tempfile::TempDir,
}

impl Original {
    pub(crate) async fn new() -> Self {
        let database = Database::with_samples().await;
        let first = |query: &str| database.0.psql(query).lines().next().unwrap().to_owned();
        let shared = first("SELECT encode(chart_hash, 'hex') FROM chartset_charts ORDER BY chartset_id, 1");
        database.run(&["remove", "chart", &shared]);
        database.run(&["remove", "chartset", &first("SELECT id FROM chartsets ORDER BY id DESC")]);
        // As if they had been ingested and checked one after another.
        database.0.psql(
            "UPDATE chartsets SET updated_at_ms = 1700000000000 + ('x' || right(id, 6))::bit(24)::int,
                                  checked_at_ms = 1700000000000 + ('x' || right(id, 4))::bit(16)::int;
             INSERT INTO chartset_checks SELECT id, 1750000000000 FROM chartsets WHERE id < '8'",
        );
        Self { database, exports: tempfile::tempdir().unwrap() }
    }

    fn directory(&self) -> &str {
        self.exports.path().to_str().unwrap()
    }

    /// Exports with the ROX files, and returns the path of the export.
    fn export(&self, arguments: &[&str]) -> PathBuf {
        let printed = self.database.run(&[&["export", self.directory(), "--rox"], arguments].concat());
        let (path, summary) = printed.split_once(": ").unwrap();
        assert!(summary.contains(" chartsets, ") && summary.contains(" charts, "), "{printed}");
        path.into()
    }

    /// What is in the folder of the exports.
    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.exports.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn start_export(&self) -> Child {
        indexer_command(self.database.0.url(), &["export", self.directory(), "--rox"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

/// An index with an export of all files. Tests share it, which only read it.
pub(crate) struct Exported {
    pub(crate) original: Original,
    pub(crate) export: PathBuf,
}

impl Exported {
    pub(crate) async fn shared() -> Arc<Self> {
        static EXPORTED: Shared<Exported> = Shared::empty();
        let start = async || {
            let original = Original::new().await;
            let export = original.export(&["--sqlite", "--parquet"]);
            Self { original, export }
        };
        EXPORTED.get_or_start(start).await
    }
}

/// A copy of an export that `forge` changes.
pub(crate) fn forged(export: &Path, forge: impl FnOnce(&Path)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(export).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    forge(folder.path());
    folder
}

pub(crate) fn manifest(export: &Path) -> Value {
    serde_json::from_slice(&fs::read(export.join("manifest.json")).unwrap()).unwrap()
}

pub(crate) fn chartsets(export: &Path) -> Vec<Value> {
    let mut text = String::new();
    let file = File::open(export.join("chartsets.ndjson.zst")).unwrap();
    zstd::Decoder::new(file).unwrap().read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The ROX files with the names that they have in the archive.
pub(crate) fn rox_files(export: &Path) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(File::open(export.join("rox.tar")).unwrap());
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.path().unwrap().to_str().unwrap().to_owned(), bytes)
    });
    entries.collect()
}

/// Replaces a file, and its description in the manifest.
pub(crate) fn forge(export: &Path, name: &str, content: &[u8]) {
    fs::write(export.join(name), content).unwrap();
    let mut manifest = manifest(export);
    let files = manifest["files"].as_array_mut().unwrap();
    let file = files.iter_mut().find(|file| file["name"] == name).unwrap();
    file["bytes"] = json!(content.len());
    file["blake3"] = json!(blake3::hash(content).to_hex().to_string());
    fs::write(export.join("manifest.json"), manifest.to_string()).unwrap();
}

pub(crate) fn forge_chartsets(export: &Path, lines: &[Value]) {
    let lines: Vec<String> = lines.iter().map(|line| line.to_string() + "\n").collect();
    forge(export, "chartsets.ndjson.zst", &zstd::encode_all(lines.concat().as_bytes(), 1).unwrap());
}

pub(crate) fn forge_rox_files(export: &Path, files: &[(String, Vec<u8>)]) {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, name, &bytes[..]).unwrap();
    }
    forge(export, "rox.tar", &archive.into_inner().unwrap());
}

/// Paths of everything that the API says of the charts and chartsets, removed ones included.
pub(crate) fn paths(database: &Database) -> Vec<String> {
    let hashes = database.0.psql("SELECT encode(hash, 'hex') FROM charts ORDER BY 1");
    let charts = hashes.lines().flat_map(|hash| {
        ["", "/rox", "/preview", "?include=rating,patterns"]
            .map(|part| format!("/api/charts/{hash}{part}"))
            .into_iter()
    });
    let ids = database.0.psql("SELECT id FROM chartsets ORDER BY 1");
    let sets = ids.lines().flat_map(|id| {
        [format!("/api/chartsets/{id}"), format!("/go/chartset/{id}"), format!("/chartsets/{id}")]
    });
    let sorts = ["updated", "title", "artist", "bpm", "length", "density"];
    let lists = sorts.iter().flat_map(|sort| {
        [1, 2].map(|page| format!("/api/chartsets?sort={sort}&perPage=7&page={page}")).into_iter()
    });
    let searches = ["/api/chartsets?q=a", "/api/chartsets?keys=4&source=alphaSet", "/feed.atom"];
    charts.chain(sets).chain(lists).chain(searches.map(str::to_owned)).collect()
}

/// Status, tag, caching and body of a response; what follows from the request is left out.
async fn response(client: &Client, path: &str) -> (u16, [String; 4], Vec<u8>) {
    let response = client.get(path).await;
    let header = |name: &str| response.header(name).to_owned();
    let headers = [header("etag"), header("cache-control"), header("content-type"), header("location")];
    (response.status.as_u16(), headers, response.body)
}

#[tokio::test]
async fn imported_index_answers_like_the_original() {
    let exported = Exported::shared().await;
    let Exported { original, export } = &*exported;
    let restored = Database::new().await;
    let summary = restored.run(&["import", export.to_str().unwrap()]);
    let shown = original.database.0.psql("SELECT count(*) FROM chartsets WHERE shown");
    assert_eq!(summary, format!("{shown} chartsets added, 0 unchanged, 0 updated\n"));
    assert!(restored.run(&["verify"]).contains(", 0 findings"));

    let first = Service::start(original.database.0.url());
    let second = Service::start(restored.0.url());
    let (mut compared, mut found) = (0, 0);
    for path in paths(&original.database) {
        let expected = response(&first.client(), &path).await;
        assert_eq!(response(&second.client(), &path).await, expected, "{path}");
        compared += 1;
        found += usize::from(expected.0 == 200);
    }
    assert!(
        found > 100 && found < compared,
        "{found} of {compared} are 200, those of removed entries are not"
    );
}

/// Also those of later versions.
#[tokio::test]
async fn files_that_an_import_does_not_read_are_ignored() {
    let exported = Exported::shared().await;
    let folder = forged(&exported.export, |export| {
        forge(export, "catalogue.parquet", b"anything");
        fs::remove_file(export.join("catalogue.sqlite.zst")).unwrap();
        let mut manifest = manifest(export);
        manifest["files"].as_array_mut().unwrap().push(json!({"name": "later", "bytes": 1, "blake3": ""}));
        fs::write(export.join("manifest.json"), manifest.to_string()).unwrap();
    });
    let restored = Database::new().await;
    assert!(restored.run(&["import", folder.path().to_str().unwrap()]).contains(" chartsets added"));
}

/// Those of the ROX files apply.
#[tokio::test]
async fn ratings_of_an_export_are_ignored() {
    let exported = Exported::shared().await;
    let mut lines = chartsets(&exported.export);
    let sets = lines.iter_mut().filter_map(|line| line.get_mut("charts")?.as_array_mut());
    for chart in sets.flatten() {
        assert!(chart["patterns"]["version"].is_u64(), "{chart}");
        chart["rating"] = json!({"algorithm": "other", "version": 2, "value": [1]});
        chart["patterns"] = json!(7);
    }
    let folder = forged(&exported.export, |export| forge_chartsets(export, &lines));
    let restored = Database::new().await;
    restored.run(&["import", folder.path().to_str().unwrap()]);
    assert!(restored.run(&["verify"]).contains(", 0 findings"));
}

#[tokio::test]
async fn second_import_changes_nothing() {
    let exported = Exported::shared().await;
    let Exported { original, export } = &*exported;
    let restored = Database::new().await;
    restored.run(&["import", export.to_str().unwrap()]);
    let rows = "SELECT c.xmin, m.xmin, r.xmin, s.xmin FROM charts c JOIN rox_files r USING (hash)
                JOIN chartset_charts m ON chart_hash = hash
                JOIN chartsets s ON s.id = chartset_id ORDER BY chartset_id, hash";
    let before = restored.0.psql(rows);
    let summary = restored.run(&["import", export.to_str().unwrap()]);
    let shown = original.database.0.psql("SELECT count(*) FROM chartsets WHERE shown");
    assert_eq!(summary, format!("0 chartsets added, {shown} unchanged, 0 updated\n"));
    assert_eq!(restored.0.psql(rows), before, "no row was written");
    assert_eq!(restored.0.psql("SELECT count(*) FROM chartset_checks"), "0");
}

#[tokio::test]
async fn export_is_what_the_manifest_says() {
    let exported = Exported::shared().await;
    let Exported { original, export } = &*exported;
    let manifest = manifest(export);
    let database = &original.database.0;
    let count = |query: &str| database.psql(query).parse::<u64>().unwrap();
    assert_eq!(manifest["formatVersion"], 1);
    assert_eq!(manifest["sequence"], count("SELECT last_sequence FROM change_feed"));
    assert_eq!(manifest["chartsets"], count("SELECT count(*) FROM chartsets WHERE shown"));
    let lines = chartsets(export);
    assert_eq!(manifest["chartsets"], lines.len());
    let ids: Vec<&str> = lines.iter().map(|line| line["chartset"]["id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted());
    let files = rox_files(export);
    assert_eq!(manifest["charts"], files.len());
    for (name, bytes) in &files {
        let hash = name.strip_suffix(".rox").unwrap();
        let stored = format!(
            "SELECT md5(bytes) = md5('\\x{}'::bytea) FROM rox_files WHERE hash = '\\x{hash}'",
            hex(bytes)
        );
        assert_eq!(database.psql(&stored), "t", "{name}");
    }
    for file in manifest["files"].as_array().unwrap() {
        let content = fs::read(export.join(file["name"].as_str().unwrap())).unwrap();
        assert_eq!(file["bytes"], content.len());
        assert_eq!(file["blake3"], blake3::hash(&content).to_hex().to_string());
    }
    let name = export.file_name().unwrap().to_str().unwrap();
    assert!(name.ends_with(&format!("Z-{}", manifest["sequence"])), "{name}");
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

#[tokio::test]
async fn killed_export_leaves_no_export() {
    let original = Original::new().await;
    for signal in ["KILL", "TERM"] {
        let lock = block_table(&original.database, "rox_files").await;
        let export = original.start_export();
        wait_until_blocked(&original.database, "rox_files").await;
        assert!(original.exports.path().join(".partial/rox.tar").exists());
        let other = original.database.try_run(&["export", original.directory()]);
        assert_eq!((other.code, other.stderr.contains("is running")), (Some(1), true), "{}", other.stderr);
        send_signal(export.id(), signal);
        let output = export.wait_with_output().unwrap();
        let left: &[&str] = if signal == "KILL" { &[".lock", ".partial"] } else { &[".lock"] };
        assert_eq!(original.entries(), left, "{signal}");
        assert_eq!(output.status.code(), (signal == "TERM").then_some(130));
        release(&original.database, lock);
    }
    let export = original.export(&[]);
    let name = export.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(original.entries(), [".lock".to_owned(), name]);
}

/// The removal is not in the snapshot, so the export contains what was removed.
#[tokio::test]
async fn export_during_a_removal_is_not_published() {
    let original = Original::new().await;
    let id = original.database.0.psql("SELECT id FROM chartsets WHERE shown ORDER BY id LIMIT 1");
    let lock = block_table(&original.database, "rox_files").await;
    let export = original.start_export();
    wait_until_blocked(&original.database, "rox_files").await;
    original.database.run(&["remove", "chartset", &id]);
    release(&original.database, lock);
    let output = export.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("an entry was removed while the export was written"), "{error}");
    assert_eq!(original.entries(), [".lock"]);
    let lines = chartsets(&original.export(&[]));
    assert!(lines.iter().all(|line| line["chartset"]["id"] != id));
}

#[tokio::test]
async fn damaged_export_is_refused_before_anything_is_written() {
    let exported = Exported::shared().await;
    let Exported { original, export } = &*exported;
    let plain = tempfile::tempdir().unwrap();
    let without_rox = original.database.run(&["export", plain.path().to_str().unwrap()]);
    let without_rox = PathBuf::from(without_rox.split_once(": ").unwrap().0);
    let restored = Database::new().await;
    let damaged = |damage: &dyn Fn(&Path)| forged(export, damage);
    let flip = |name: &'static str| {
        move |folder: &Path| {
            let mut content = fs::read(folder.join(name)).unwrap();
            let middle = content.len() / 2;
            content[middle] ^= 1;
            fs::write(folder.join(name), content).unwrap();
        }
    };
    let truncate = |folder: &Path| {
        let file = File::options().append(true).open(folder.join("rox.tar")).unwrap();
        file.set_len(file.metadata().unwrap().len() - 512).unwrap();
    };
    let version = |folder: &Path| {
        let mut manifest = manifest(folder);
        manifest["formatVersion"] = json!(2);
        fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    };
    for (folder, message) in [
        (damaged(&flip("chartsets.ndjson.zst")), "chartsets.ndjson.zst is damaged"),
        (damaged(&flip("rox.tar")), "rox.tar is damaged"),
        (damaged(&truncate), "in the manifest"),
        (damaged(&|folder| fs::remove_file(folder.join("rox.tar")).unwrap()), "cannot read"),
        (damaged(&|folder| fs::remove_file(folder.join("manifest.json")).unwrap()), "cannot read"),
        (damaged(&|folder| fs::write(folder.join("manifest.json"), "{").unwrap()), "is not a manifest"),
        (damaged(&version), "format version 2"),
    ] {
        let run = restored.try_run(&["import", folder.path().to_str().unwrap()]);
        assert_eq!((run.code, run.stderr.contains(message)), (Some(1), true), "{message}: {}", run.stderr);
    }
    let run = restored.try_run(&["import", without_rox.to_str().unwrap()]);
    assert_eq!((run.code, run.stderr.contains("--rox")), (Some(1), true), "{}", run.stderr);
    assert_eq!(
        restored.0.psql("SELECT (SELECT count(*) FROM charts) + (SELECT count(*) FROM chartsets)"),
        "0"
    );
    assert!(restored.run(&["import", export.to_str().unwrap()]).contains("added"));
}

/// The digests match the files, but their content is inconsistent.
#[tokio::test]
async fn inconsistent_export_shows_nothing() {
    let exported = Exported::shared().await;
    let export = &exported.export;
    let (files, lines) = (rox_files(export), chartsets(export));
    let restored = Database::new().await;
    let swapped = || {
        let mut files = files.clone();
        (files[0].1, files[1].1) = (files[1].1.clone(), files[0].1.clone());
        files
    };
    let damaged = || {
        let mut files = files.clone();
        files[0].1.truncate(20);
        files
    };
    let named = |name: &str| {
        let mut files = files.clone();
        name.clone_into(&mut files[0].0);
        files
    };
    let changed = |change: fn(&mut Value)| {
        let mut lines = lines.clone();
        change(&mut lines[0]);
        lines
    };
    let check = |forge: &dyn Fn(&Path), message: &str| {
        let folder = forged(export, forge);
        let run = restored.try_run(&["import", folder.path().to_str().unwrap()]);
        assert_eq!((run.code, run.stderr.contains(message)), (Some(1), true), "{message}: {}", run.stderr);
        assert_eq!(restored.0.psql("SELECT count(*) FROM chartsets"), "0", "{message}");
    };
    check(&|folder| forge_rox_files(folder, &swapped()), "has the notes of chart");
    check(&|folder| forge_rox_files(folder, &damaged()), "is invalid");
    check(&|folder| forge_rox_files(folder, &files[1..]), "ROX files, but");
    check(&|folder| forge_rox_files(folder, &named("x.rox")), "has a file x.rox");
    for (change, message) in [
        (changed(|line| line["chartset"]["charts"][0]["notes"] = json!(1)), "does not match its ROX file"),
        (changed(|line| line["chartset"]["charts"][0]["bpmMain"] = json!(1)), "does not match its ROX file"),
        (changed(|line| line["chartset"]["charts"] = json!([])), "no charts"),
        (
            changed(|line| {
                line["chartset"]["exactSource"] = json!({"kind": "alphaSet", "ref": "2147483647"});
            }),
            "but its exactSource has",
        ),
        (
            changed(|line| {
                line["chartset"]["id"] = json!("ffffffffffffffff");
                line["chartset"].as_object_mut().unwrap().remove("exactSource");
            }),
            "order of the ids",
        ),
        (changed(|line| line["checkedAtMs"] = json!(-1)), "line 1 of chartsets.ndjson.zst: chartset"),
        (changed(|line| line["chartset"]["updatedAtMs"] = json!(-1)), "updatedAtMs is -1, before 1970"),
        (
            changed(|line| line["chartset"]["id"] = json!("../etc")),
            "line 1 of chartsets.ndjson.zst: is not a chartset",
        ),
        (changed(|line| line["chartset"]["charts"][0]["noteHashVersion"] = json!(2)), "version 2"),
        (lines[..0].to_vec(), "0 chartsets, but"),
    ] {
        check(&|folder| forge_chartsets(folder, &change), message);
    }
}

#[tokio::test]
async fn import_into_an_index_keeps_what_is_newer() {
    let exported = Exported::shared().await;
    let export = &exported.export;
    let index = Database::new().await;
    let library = Library::new();
    library.osu("alpha/999999 own/a.osu", ChartSpec::numbered(999));
    index.ingest(&library);
    index.run(&["import", export.to_str().unwrap()]);
    let ids = index.0.psql("SELECT id FROM chartsets WHERE path = '' ORDER BY id");
    let ids: Vec<&str> = ids.lines().collect();
    assert_eq!(ids.len(), chartsets(export).len(), "the chartset of this index stays");
    index.run(&["remove", "chartset", ids[0]]);
    index.0.psql(&format!(
        "UPDATE chartsets SET title = 'newer', updated_at_ms = updated_at_ms + 1 WHERE id = '{}';
         UPDATE chartsets SET title = 'older', updated_at_ms = updated_at_ms - 1, path = 'a' WHERE id = '{}'",
        ids[1], ids[2]
    ));
    let summary = index.run(&["import", export.to_str().unwrap()]);
    let unchanged = ids.len() - 3;
    assert_eq!(
        summary,
        format!("0 chartsets added, {unchanged} unchanged, 1 updated; 2 changed later here, not replaced\n")
    );
    let titles = index.0.psql("SELECT title FROM chartsets WHERE title IN ('newer', 'older')");
    assert_eq!(titles, "newer");
    assert_eq!(index.0.psql("SELECT count(*) FROM chartsets WHERE removed_at_ms IS NOT NULL"), "1");
    assert_eq!(index.0.psql("SELECT count(*) FROM chartsets WHERE path = 'a'"), "1", "the path stays");
}

/// A chart keeps the ROX file that was stored first, whose bytes clients have.
#[tokio::test]
async fn stored_rox_files_stay() {
    let exporting = Database::new().await;
    let library = Library::new();
    let chart = library.osu("alpha/1 one/a.osu", ChartSpec { bpm: 120.0, ..ChartSpec::numbered(1) });
    exporting.ingest(&library);
    let exports = tempfile::tempdir().unwrap();
    let printed = exporting.run(&["export", exports.path().to_str().unwrap(), "--rox"]);
    let export = printed.split_once(": ").unwrap().0;
    let index = Database::new().await;
    let library = Library::new();
    library.osu("alpha/2 two/a.osu", ChartSpec { bpm: 240.0, ..ChartSpec::numbered(1) });
    index.ingest(&library);
    let stored = format!("SELECT bpm_main, rox_bytes FROM charts WHERE hash = '\\x{}'", chart.note_hash());
    let before = index.0.psql(&stored);
    let summary = index.run(&["import", export]);
    assert!(summary.starts_with("1 chartset added"), "{summary}");
    assert!(summary.contains("1 chart stored before with another ROX file, which stays"), "{summary}");
    assert_eq!(index.0.psql(&stored), before);
    assert!(index.run(&["verify"]).contains(", 0 findings"));
}

#[tokio::test]
async fn interrupted_import_continues() {
    let exported = Exported::shared().await;
    let Exported { original, export } = &*exported;
    let restored = Database::new().await;
    let lock = block_table(&restored, "rox_files").await;
    let mut import = indexer_command(restored.0.url(), &["import", export.to_str().unwrap()]);
    let import = import.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until_blocked(&restored, "rox_files").await;
    send_signal(import.id(), "KILL");
    let output = import.wait_with_output().unwrap();
    assert_eq!(output.status.code(), None);
    release(&restored, lock);
    restored.run(&["import", export.to_str().unwrap()]);
    let state = "SELECT id, updated_at_ms, title, chart_count FROM chartsets WHERE shown ORDER BY id";
    assert_eq!(restored.0.psql(state), original.database.0.psql(state));
    assert!(restored.run(&["verify"]).contains(", 0 findings"));
}

#[tokio::test]
async fn empty_index_is_exported_and_imported() {
    let empty = Database::new().await;
    let exports = tempfile::tempdir().unwrap();
    let printed = empty.run(&["export", exports.path().to_str().unwrap(), "--rox"]);
    let export = printed.split_once(": ").unwrap().0;
    assert_eq!(empty.run(&["import", export]), "0 chartsets added, 0 unchanged, 0 updated\n");
    File::create(exports.path().join("file")).unwrap();
    let run = empty.try_run(&["export", exports.path().join("file").to_str().unwrap()]);
    assert_eq!((run.code, run.stderr.contains("cannot create")), (Some(1), true), "{}", run.stderr);
}

/// Rows are read and written in pages.
#[tokio::test]
#[ignore = "long: a minute"]
async fn long_memory_of_an_export_does_not_depend_on_the_size() {
    let (mut peaks, exports) = (Vec::new(), tempfile::tempdir().unwrap());
    for (chartsets, charts) in [("500", "2000"), ("20000", "80000")] {
        let database = Database::new().await;
        generate_catalogue(database.0.url(), &["--chartsets", chartsets, "--charts", charts]).succeeded();
        let directory = exports.path().join(chartsets);
        let arguments = ["export", directory.to_str().unwrap(), "--rox"];
        let mut export = indexer_command(database.0.url(), &arguments);
        let export = export.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (status, peak) = peak_memory(export).await;
        assert!(status.success());
        peaks.push(peak);
        assert_eq!(fs::read_dir(directory).unwrap().count(), 2, "the export and the lock");
    }
    let [small, large] = peaks[..] else { panic!("two exports") };
    assert!(small > 0 && large < small + 16 * 1024, "{small} KiB, {large} KiB");
}

/// How a process ended, and its highest resident memory until then, in KiB.
pub(crate) async fn peak_memory(mut child: Child) -> (ExitStatus, u64) {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let ended = async || {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(peak);
        child.try_wait().unwrap()
    };
    let (status, _) = within(Duration::from_mins(5), ended).await;
    (status, peak)
}
