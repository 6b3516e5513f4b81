//! Repeated ingests: only inputs that changed are decoded.

use std::fs::{File, FileTimes};
use std::time::{Duration, SystemTime};

use super::*;

/// Which recorded digests the next ingest can use.
#[derive(Debug, Clone, Copy)]
enum Known {
    Everything,
    MetadataOnly,
    ContentOnly,
}

/// A library of one folder and one archive.
struct Reingest {
    database: Database,
    library: Library,
}

impl Reingest {
    async fn new() -> Self {
        let (database, library) = (Database::new().await, Library::new());
        library.osu("alpha/1 one/a.osu", ChartSpec::numbered(1));
        library.osu("alpha/1 one/b.osu", ChartSpec::numbered(2));
        library.file("alpha/1 one/bad.osu", "no chart");
        library.osu("alpha/2 two/a.osu", ChartSpec::numbered(3));
        library.pack("alpha/2 two", "alpha/2 two.osz");
        Self { database, library }
    }

    fn ingest(&self) -> String {
        self.database.ingest(&self.library)
    }

    fn psql(&self, statement: &str) -> String {
        self.database.0.psql(statement)
    }

    /// Edits a file so that neither its size nor its modification time changes.
    fn edit_with_same_size_and_time(&self) {
        let path = self.library.root().join("alpha/1 one/a.osu");
        let (old, metadata) = (std::fs::read_to_string(&path).unwrap(), std::fs::metadata(&path).unwrap());
        let edited = old.replace(":Title\n", ":Other\n");
        std::fs::write(&path, &edited).unwrap();
        let times = FileTimes::new().set_modified(metadata.modified().unwrap());
        File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
        assert_eq!(
            (edited.len(), std::fs::metadata(&path).unwrap().modified().unwrap()),
            (old.len(), metadata.modified().unwrap())
        );
    }

    /// Ingests again, and reports whether `alpha/1 one` and `alpha/2 two.osz` were decoded. The recorded number
    /// of charts is changed for this run, so that inputs that are not decoded are reported with the wrong
    /// number.
    fn decoded(&self, known: Known, arguments: &[&str]) -> [bool; 2] {
        let _ = self.psql("CREATE TABLE before AS SELECT * FROM ingest_fingerprints");
        let forget = match known {
            Known::Everything => "",
            Known::MetadataOnly => ", content_digest = decode(repeat('00', 32), 'hex')",
            Known::ContentOnly => ", metadata_digest = NULL",
        };
        let _ = self.psql(&format!(
            "UPDATE ingest_fingerprints SET outcome = regexp_replace(outcome, '\"charts\":\\d+', '\"charts\":77'){forget}"
        ));
        let (summary, report) = self.database.ingest_with_report(&self.library, arguments);
        assert!(summary.contains("; 1 file refused"), "reported even if not decoded: {summary}");
        let _ = self.psql(
            "UPDATE ingest_fingerprints AS now
             SET metadata_digest = before.metadata_digest, content_digest = before.content_digest, outcome = before.outcome
             FROM before WHERE before.input_key = now.input_key AND now.outcome LIKE '%\"charts\":77%'",
        );
        let _ = self.psql("DROP TABLE before");
        ["alpha/1 one", "alpha/2 two"].map(|path| line_about(&report, path)["charts"] != 77)
    }
}

#[tokio::test]
async fn files_are_decoded_again_only_if_they_changed() {
    let library = Reingest::new().await;
    // The metadata of recent files is not used, and the change time of an inode cannot be set.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(library.ingest().contains("2 chartsets added"));
    let written = "SELECT sum(updated_at_ms), (SELECT last_sequence FROM change_feed) FROM chartsets";
    let before = library.psql(written);
    assert_eq!(library.decoded(Known::MetadataOnly, &[]), [false, false]);
    assert_eq!(library.decoded(Known::ContentOnly, &[]), [false, false]);
    assert_eq!(library.decoded(Known::Everything, &["--full"]), [true, true]);
    assert_eq!(library.decoded(Known::Everything, &[]), [false, false]);
    assert_eq!(library.psql(written), before, "unchanged chartsets are not written again");
    let checked = "SELECT count(*) FROM chartset_checks JOIN chartsets ON id = chartset_id \
                   WHERE chartset_checks.checked_at_ms > chartsets.checked_at_ms";
    assert_eq!(library.psql(checked), "2");
    library.edit_with_same_size_and_time();
    assert_eq!(library.decoded(Known::Everything, &[]), [true, false]);
    assert_eq!(library.database.titles(), ["Other", "Title"]);
    // The same content with other times.
    for file in ["alpha/1 one/a.osu", "alpha/2 two.osz"] {
        let file = File::options().write(true).open(library.library.root().join(file)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
    assert_eq!(library.decoded(Known::Everything, &[]), [false, false]);
    assert_eq!(library.decoded(Known::MetadataOnly, &[]), [true, true]);
}

#[tokio::test]
async fn every_kind_of_change_is_detected() {
    let Reingest { database, library } = Reingest::new().await;
    let charts = || {
        database.0.psql(
            "SELECT string_agg(count, ' ') FROM (SELECT count(*)::text FROM \
                                     chartset_charts GROUP BY chartset_id ORDER BY chartset_id) AS counts",
        )
    };
    database.ingest(&library);
    let rename = || {
        std::fs::rename(library.root().join("alpha/1 one/a.osu"), library.root().join("alpha/1 one/c.osu"))
    };
    let edits: [(&str, &dyn Fn(), &str); 5] = [
        (
            "edited",
            &|| drop(library.osu("alpha/1 one/a.osu", ChartSpec::numbered(4))),
            "1 unchanged, 1 updated (3 charts)",
        ),
        ("renamed", &|| rename().unwrap(), "2 unchanged, 0 updated (3 charts)"),
        ("deleted", &|| library.delete("alpha/1 one/b.osu"), "1 unchanged, 1 updated (2 charts)"),
        (
            "added",
            &|| drop(library.osu("alpha/1 one/d.osu", ChartSpec::numbered(5))),
            "1 unchanged, 1 updated (3 charts)",
        ),
        (
            "archive replaced",
            &|| {
                library
                    .osu("alpha/2 two/a.osu", ChartSpec { title: "Other".into(), ..ChartSpec::numbered(3) });
                library.pack("alpha/2 two", "alpha/2 two.osz");
            },
            "1 unchanged, 1 updated (3 charts)",
        ),
    ];
    for (what, edit, expected) in edits {
        edit();
        let summary = database.ingest(&library);
        assert!(summary.contains(expected), "{what}: {summary}");
        assert!(database.ingest(&library).contains("2 unchanged, 0 updated"), "{what}, second run");
    }
    assert_eq!(charts().len(), "1 2".len());
    assert!(database.run(&["verify"]).contains(", 0 findings"));
}

#[tokio::test]
async fn unchanged_removed_entries_stay_removed() {
    let library = Reingest::new().await;
    library.ingest();
    let ids = library.database.chartsets();
    library.database.run(&["remove", "chartset", &ids["alpha/1 one"]]);
    library.database.run(&["remove", "chart", &ChartSpec::numbered(3).note_hash()]);
    assert!(library.ingest().contains("1 chartset still removed"));
    assert_eq!(library.psql("SELECT count(*) FROM chartsets WHERE shown"), "0");
    library.database.run(&["restore", "chart", &ChartSpec::numbered(3).note_hash()]);
    assert_eq!(library.decoded(Known::Everything, &[]), [false, false]);
    assert_eq!(library.psql("SELECT count(*) FROM chartsets WHERE shown"), "1");
    assert!(library.database.run(&["verify"]).contains(", 0 findings"));
}

/// Folders with the same path have the same fingerprint key.
#[tokio::test]
async fn libraries_with_the_same_paths_are_distinguished() {
    let library = Reingest::new().await;
    let other = Library::new();
    other.osu("alpha/1 one/a.osu", ChartSpec { title: "Other".into(), ..ChartSpec::numbered(9) });
    for _ in 0..2 {
        library.ingest();
        assert_eq!(library.database.titles(), ["Title", "Title"]);
        library.database.ingest(&other);
        assert_eq!(library.database.titles(), ["Other", "Title"]);
    }
}

/// As after a partial restore of the database.
#[tokio::test]
async fn chartset_that_differs_from_the_record_is_decoded() {
    let library = Reingest::new().await;
    library.ingest();
    let _ = library.psql("UPDATE chartsets SET content_fingerprint = decode(repeat('00', 32), 'hex') WHERE path = 'alpha/1 one'");
    assert_eq!(library.decoded(Known::Everything, &[]), [true, false]);
    let _ = library.psql("DELETE FROM chartset_charts; DELETE FROM chartsets");
    assert_eq!(library.decoded(Known::Everything, &[]), [true, true]);
    assert!(library.database.run(&["verify"]).contains("2 chartsets verified, 0 findings"));
}

#[tokio::test]
async fn another_build_decodes_everything() {
    let library = Reingest::new().await;
    library.ingest();
    let folder = tempfile::tempdir().unwrap();
    let build = folder.path().join("chart-indexer");
    let arguments = ["ingest", &library.library.argument()];
    let mut content = std::fs::read(indexer_command("", &[]).get_program()).unwrap();
    // Bytes after the sections of an executable are not loaded.
    content.push(0);
    std::fs::copy(indexer_command("", &[]).get_program(), &build).unwrap();
    std::fs::write(&build, content).unwrap();
    let before = library.psql("SELECT content_digest FROM ingest_fingerprints ORDER BY input_key");
    library.ingest();
    assert_eq!(library.psql("SELECT content_digest FROM ingest_fingerprints ORDER BY input_key"), before);
    let mut command = Command::new(build);
    let run = IndexerRun::run(command.args(arguments).env("DATABASE_URL", library.database.0.url()));
    assert!(run.succeeded().contains("2 unchanged"));
    assert_ne!(library.psql("SELECT content_digest FROM ingest_fingerprints ORDER BY input_key"), before);
}
