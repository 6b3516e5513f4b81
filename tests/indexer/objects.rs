//! Files in the object store, here a folder (docs/operations/objects.md).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use chart_index_tests::Service;
use tempfile::TempDir;

use super::exports::hex;
use super::table_locks::{
    block_removals, block_table, release, wait_until_blocked, wait_until_removals_are_blocked,
};
use super::*;

/// The numbers of ROX files with bytes and with an object.
const PLACES: &str = "SELECT count(bytes), count(object) FROM rox_files";

/// A database and a folder of objects.
struct Site {
    database: Database,
    folder: TempDir,
}

impl Site {
    async fn new() -> Self {
        Self { database: Database::new().await, folder: tempfile::tempdir().unwrap() }
    }

    /// With three charts in two chartsets, of which the first has two.
    async fn ingested() -> (Self, Library) {
        let (site, library) = (Self::new().await, library());
        site.ingest(&library);
        (site, library)
    }

    fn url(&self) -> String {
        format!("file://{}", self.folder.path().display())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = indexer_command(self.database.0.url(), arguments);
        command.env("OBJECT_STORE_URL", self.url());
        command
    }

    fn try_run(&self, arguments: &[&str]) -> IndexerRun {
        IndexerRun::run(&mut self.command(arguments))
    }

    fn run(&self, arguments: &[&str]) -> String {
        self.try_run(arguments).succeeded()
    }

    fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn ingest(&self, library: &Library) {
        self.run(&["ingest", &library.argument()]);
    }

    /// The objects by name.
    fn objects(&self) -> BTreeMap<String, PathBuf> {
        let folders = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap());
        files
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.file_name().into_string().unwrap(), entry.path())
            })
            .collect()
    }

    /// The object with the ROX file of a chart.
    fn object_of(&self, hash: &str) -> PathBuf {
        let name = self
            .database
            .0
            .psql(&format!("SELECT encode(object, 'hex') FROM rox_files WHERE hash = '\\x{hash}'"));
        self.objects().remove(&name).unwrap_or_else(|| panic!("no object {name}"))
    }

    /// Numbers of files with bytes, and with objects.
    fn places(&self) -> String {
        self.database.0.psql(PLACES)
    }

    fn verified(&self) {
        let verified = self.run(&["verify"]);
        assert!(verified.contains(", 0 findings"), "{verified}");
    }
}

fn library() -> Library {
    let library = Library::new();
    library.osu("alpha/1 one/a.osu", ChartSpec::numbered(1));
    library.osu("alpha/1 one/b.osu", ChartSpec::numbered(2));
    library.osu("alpha/2 two/a.osu", ChartSpec::numbered(3));
    library
}

/// Runs a command while the deletion of an object fails.
fn while_not_deletable(object: &Path, run: impl FnOnce() -> IndexerRun) -> IndexerRun {
    let content = fs::read(object).unwrap();
    fs::remove_file(object).unwrap();
    fs::create_dir(object).unwrap();
    let result = run();
    fs::remove_dir(object).unwrap();
    fs::write(object, content).unwrap();
    result
}

/// The content of all files, which are in PostgreSQL.
fn contents(database: &Database) -> String {
    database.0.psql("SELECT hash, md5(bytes) FROM rox_files ORDER BY hash")
}

#[tokio::test]
async fn new_files_are_objects() {
    let (site, library) = Site::ingested().await;
    assert_eq!(site.places(), "0|3");
    assert_eq!(site.objects().len(), 3);
    for (name, path) in site.objects() {
        assert_eq!(blake3::hash(&fs::read(path).unwrap()).to_hex().as_str(), name);
    }
    site.verified();
    assert!(site.run(&["ingest", &library.argument()]).contains("0 chartsets added, 2 unchanged"));
    // A program without the setting reads no object, and stores none.
    let verified = site.database.try_run(&["verify"]);
    assert!(verified.stderr.contains("set OBJECT_STORE_URL"), "{}", verified.stderr);
    library.osu("alpha/3 three/a.osu", ChartSpec::numbered(4));
    site.database.ingest(&library);
    assert_eq!(site.places(), "1|3");
    site.verified();
}

#[tokio::test]
async fn files_move_both_ways_unchanged() {
    let site = Site::new().await;
    site.database.ingest(&library());
    let before = contents(&site.database);
    assert_eq!(site.places(), "3|0");
    // Killed before it wrote.
    let lock = block_table(&site.database, "rox_files").await;
    let child = site.start(&["objects", "migrate"]);
    wait_until_blocked(&site.database, "rox_files").await;
    kill(child);
    release(&site.database, lock);
    assert_eq!(site.places(), "3|0");
    assert_eq!(site.run(&["objects", "migrate"]), "3 files moved to the object store\n");
    assert_eq!(site.places(), "0|3");
    site.verified();
    assert_eq!(site.run(&["objects", "migrate"]), "0 files moved to the object store\n");

    let lock = block_table(&site.database, "rox_files").await;
    let child = site.start(&["objects", "migrate", "--to-postgres"]);
    wait_until_blocked(&site.database, "rox_files").await;
    kill(child);
    release(&site.database, lock);
    assert_eq!(site.places(), "0|3");
    assert_eq!(site.run(&["objects", "migrate", "--to-postgres"]), "3 files moved to PostgreSQL\n");
    assert_eq!(site.places(), "3|0");
    assert_eq!(contents(&site.database), before);
    assert_eq!(site.objects().len(), 3, "readers may still read them");
    assert!(site.run(&["objects", "gc", "--grace", "0s"]).ends_with(" bytes deleted\n"));
    assert_eq!(site.objects().len(), 0);
    let run = site.database.try_run(&["objects", "migrate"]);
    assert_eq!((run.code, run.stderr.contains("set OBJECT_STORE_URL")), (Some(2), true), "{}", run.stderr);
}

#[tokio::test]
async fn exports_do_not_depend_on_the_place() {
    let site = Site::new().await;
    site.database.ingest(&library());
    let exports = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let export = |exports: &TempDir| {
        let printed = site.run(&["export", exports.path().to_str().unwrap(), "--rox"]);
        let folder = PathBuf::from(printed.split_once(": ").unwrap().0);
        let files = fs::read(folder.join("rox.tar")).unwrap();
        (folder, files)
    };
    let (_, in_postgresql) = export(&exports[0]);
    site.run(&["objects", "migrate"]);
    let (folder, from_objects) = export(&exports[1]);
    assert_eq!(from_objects, in_postgresql);
    let other = Site::new().await;
    other.run(&["import", folder.to_str().unwrap()]);
    assert_eq!(other.places(), "0|3");
    other.verified();
    assert!(other.objects().keys().eq(site.objects().keys()));
}

#[tokio::test]
async fn mirrors_store_objects() {
    let (site, _library) = Site::ingested().await;
    let url = site.url();
    let variables = [("OBJECT_STORE_URL", &*url)];
    let options = chart_index_tests::ServiceOptions { variables: &variables, ..Default::default() };
    let service = Service::start_with(site.database.0.url(), &options);
    let mirror = Site::new().await;
    mirror.run(&["mirror", &format!("http://{}", service.address()), "--once"]);
    assert_eq!(mirror.places(), "0|3");
    mirror.verified();
    let chart = ChartSpec::numbered(3).note_hash();
    let object = mirror.object_of(&chart);
    site.run(&["remove", "chart", &chart]);
    mirror.run(&["mirror", &format!("http://{}", service.address()), "--once"]);
    assert!(!object.exists(), "removed there, it is deleted here");
    assert_eq!(mirror.places(), "0|2");
    let chart = ChartSpec::numbered(2).note_hash();
    let object = mirror.object_of(&chart);
    site.run(&["remove", "chart", &chart]);
    let run = while_not_deletable(&object, || {
        mirror.try_run(&["mirror", &format!("http://{}", service.address()), "--once"])
    });
    assert_eq!(
        (run.code, run.stderr.contains("stay until the next collection")),
        (Some(0), true),
        "{}",
        run.stderr
    );
    assert_eq!(mirror.places(), "0|1", "a removal does not wait for the object store");
    mirror.run(&["objects", "gc", "--grace", "0s"]);
    assert!(!object.exists());
}

#[tokio::test]
async fn lost_objects_are_found() {
    let (site, _library) = Site::ingested().await;
    let [missing, damaged] = [1, 2].map(|number| ChartSpec::numbered(number).note_hash());
    fs::remove_file(site.object_of(&missing)).unwrap();
    fs::write(site.object_of(&damaged), "x").unwrap();
    let verified = site.try_run(&["verify"]);
    assert_eq!(verified.code, Some(1));
    for hash in [&missing, &damaged] {
        let finding = format!("chart {hash}: its ROX file is lost: object");
        assert!(verified.stdout.contains(&finding), "{}", verified.stdout);
    }
    assert!(verified.stdout.contains(", 2 findings"), "{}", verified.stdout);
    let moved = site.try_run(&["objects", "migrate", "--to-postgres"]);
    assert_eq!(moved.code, Some(1));
    assert!(moved.stdout.ends_with("1 file moved to PostgreSQL\n"), "{}", moved.stdout);
    site.run(&["objects", "migrate"]);
    let files = Library::new();
    for (number, hash) in [(1, &missing), (2, &damaged)] {
        files.osu(&format!("{number}.osu"), ChartSpec::numbered(number));
        let file = files.root().join(format!("{number}.osu"));
        site.run(&["replace-rox", hash, "--from", file.to_str().unwrap()]);
    }
    site.verified();
}

#[tokio::test]
async fn orphans_are_deleted_after_the_grace_period() {
    let (site, library) = Site::ingested().await;
    library.osu("alpha/3 three/a.osu", ChartSpec::numbered(4));
    // Killed between the objects and the commit.
    let lock = block_table(&site.database, "rox_files").await;
    let child = site.start(&["ingest", &library.argument()]);
    wait_until_blocked(&site.database, "rox_files").await;
    kill(child);
    release(&site.database, lock);
    assert_eq!(site.places(), "0|3");
    assert_eq!(site.objects().len(), 4);
    let stranger = site.folder.path().join("00/README");
    fs::create_dir_all(stranger.parent().unwrap()).unwrap();
    fs::write(&stranger, "").unwrap();
    assert!(site.run(&["objects", "gc"]).ends_with(", 0 with 0 bytes deleted\n"));
    let collected = site.run(&["objects", "gc", "--grace", "0s"]);
    assert!(collected.starts_with("4 objects with ") && collected.contains(", 1 with "), "{collected}");
    assert!(stranger.exists());
    site.verified();
    site.ingest(&library);
    assert_eq!(site.places(), "0|4");
    site.verified();
}

/// A collection that has found unneeded objects waits for the ingest that is about to name them.
#[tokio::test]
async fn objects_of_a_running_ingest_stay() {
    let (site, library) = Site::ingested().await;
    library.osu("alpha/3 three/a.osu", ChartSpec::numbered(4));
    // After the charts, before the commit.
    let lock = block_table(&site.database, "chart_aliases").await;
    let mut ingest = site.start(&["ingest", &library.argument()]);
    wait_until_blocked(&site.database, "chart_aliases").await;
    assert_eq!(site.objects().len(), 4);
    let mut collection = site.start(&["objects", "gc", "--grace", "0s"]);
    wait_until_removals_are_blocked(&site.database).await;
    release(&site.database, lock);
    assert!(ingest.wait().unwrap().success());
    assert!(collection.wait().unwrap().success());
    assert_eq!((&*site.places(), site.objects().len()), ("0|4", 4));
    site.verified();
}

/// An operator restores it from a copy of the bucket while a removal is completed.
#[tokio::test]
async fn object_that_is_back_is_copied_before_it_is_deleted() {
    let (site, _library) = Site::ingested().await;
    let chart = ChartSpec::numbered(1).note_hash();
    let object = site.object_of(&chart);
    let content = fs::read(&object).unwrap();
    // By a command that does not know of the objects.
    site.database.run(&["remove", "chart", &chart]);
    fs::remove_file(&object).unwrap();
    let lock = block_removals(&site.database).await;
    let mut collection = site.start(&["objects", "gc", "--grace", "0s"]);
    wait_until_removals_are_blocked(&site.database).await;
    fs::write(&object, content).unwrap();
    release(&site.database, lock);
    assert!(collection.wait().unwrap().success());
    site.run(&["objects", "gc", "--grace", "0s"]);
    assert!(!object.exists());
    site.verified();
}

#[tokio::test]
async fn removed_charts_have_no_objects() {
    let (site, library) = Site::ingested().await;
    let [removed, other, of_set] = [1, 2, 3].map(|number| ChartSpec::numbered(number).note_hash());
    let object = site.object_of(&removed);
    site.run(&["remove", "chart", &removed]);
    assert!(!object.exists());
    assert_eq!((&*site.places(), site.objects().len()), ("1|2", 2));
    let chartset = site.database.chartsets()["alpha/2 two"].clone();
    let object = site.object_of(&of_set);
    site.run(&["remove", "chartset", &chartset]);
    assert!(!object.exists());
    assert_eq!((&*site.places(), site.objects().len()), ("2|1", 1));
    // Neither a move nor an ingest nor a replacement makes it an object again.
    site.run(&["objects", "migrate"]);
    site.ingest(&library);
    let file = library.root().join("alpha/1 one/a.osu");
    site.run(&["replace-rox", &removed, "--from", file.to_str().unwrap()]);
    assert_eq!((&*site.places(), site.objects().len()), ("2|1", 1));
    library.osu("alpha/2 two/b.osu", ChartSpec::numbered(4));
    site.ingest(&library);
    assert_eq!((&*site.places(), site.objects().len()), ("3|1", 1));
    site.verified();
    site.run(&["restore", "chart", &removed]);
    site.run(&["objects", "migrate"]);
    assert_eq!((&*site.places(), site.objects().len()), ("2|2", 2));
    site.run(&["remove", "chart", &other, "--erase"]);
    assert_eq!((&*site.places(), site.objects().len()), ("2|1", 1));
    site.run(&["remove", "chartset", &chartset, "--erase"]);
    assert_eq!((&*site.places(), site.objects().len()), ("0|1", 1));
    site.verified();
}

/// A removal is in force before its objects are deleted: a later command deletes them.
#[tokio::test]
async fn interrupted_removals_are_completed() {
    for command in [&["remove", "chart", ""][..], &["objects", "gc"]] {
        let (site, library) = Site::ingested().await;
        let [chart, other] = [1, 2].map(|number| ChartSpec::numbered(number).note_hash());
        // By a command that does not know of the objects.
        site.database.run(&["remove", "chart", &chart]);
        assert_eq!((&*site.places(), site.objects().len()), ("0|3", 3));
        // Killed after the bytes were stored, before the objects were deleted.
        let object = site.object_of(&chart);
        let content = fs::read(&object).unwrap();
        let bytes = hex(&content);
        site.database.0.psql(&format!("UPDATE rox_files SET bytes = '\\x{bytes}' WHERE hash = '\\x{chart}'"));
        // An ingest cannot delete a folder in place of the object. Its charts are in the hash filter.
        fs::remove_file(&object).unwrap();
        fs::create_dir(&object).unwrap();
        library.osu("alpha/3 three/a.osu", ChartSpec::numbered(4));
        let run = site.try_run(&["ingest", &library.argument()]);
        assert_eq!((run.code, run.stderr.contains("object store")), (Some(1), true), "{}", run.stderr);
        let filter = site.database.run(&["filter"]);
        assert_eq!(filter, "no chart has changed since the last hash filter\n");
        fs::remove_dir(&object).unwrap();
        fs::write(&object, content).unwrap();
        let arguments: Vec<&str> =
            command.iter().map(|argument| if argument.is_empty() { &*chart } else { argument }).collect();
        site.run(&arguments);
        assert_eq!((&*site.places(), site.objects().len()), ("1|3", 3));
        assert!(site.object_of(&other).exists());
        site.verified();
    }
}

#[tokio::test]
async fn replaced_files_are_deleted() {
    let (site, library) = Site::ingested().await;
    let chart = ChartSpec::numbered(1).note_hash();
    let earlier = site.object_of(&chart);
    library
        .osu("alpha/1 one/a.osu", ChartSpec { title: "Another".into(), bpm: 99.0, ..ChartSpec::numbered(1) });
    let file = library.root().join("alpha/1 one/a.osu");
    let replace = ["replace-rox", &chart, "--from", file.to_str().unwrap()];
    let run = while_not_deletable(&earlier, || site.try_run(&replace));
    let error = "delete the object of the replaced ROX file";
    assert_eq!((run.code, run.stderr.contains(error)), (Some(1), true), "{}", run.stderr);
    assert_ne!(site.object_of(&chart), earlier, "the replacement is in force");
    site.run(&["objects", "gc", "--grace", "0s"]);
    assert!(!earlier.exists());
    assert_eq!((&*site.places(), site.objects().len()), ("0|3", 3));
    site.verified();
}
