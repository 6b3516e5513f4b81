//! Removals are a list, which precedes every ingest and import (docs/operations/removals.md, "List").

use std::path::PathBuf;

use super::*;

/// Sets 1 to 3. A chart of set 1 and set 2 were removed from the index.
struct Removed {
    database: Database,
    library: Library,
    chart: String,
    chartset: String,
    /// The list of the removals.
    list: PathBuf,
}

impl Removed {
    async fn new() -> Self {
        let (database, library) = (Database::new().await, Library::new());
        let chart = library.osu("alpha/1 one/a.osu", ChartSpec::numbered(1)).note_hash();
        library.osu("alpha/1 one/b.osu", ChartSpec::numbered(2));
        library.osu("alpha/2 two/a.osu", ChartSpec::numbered(3));
        library.osu("alpha/3 three/a.osu", ChartSpec::numbered(1));
        database.ingest(&library);
        let chartset = database.chartsets()["alpha/2 two"].clone();
        let printed = database.run(&["remove", "chart", &chart, "--reason", "letter of 1 May"]);
        assert!(printed.starts_with(&format!("chart {chart} removed\n")), "{printed}");
        database.run(&["remove", "chartset", &chartset]);
        let list = library.root().join("../removals.jsonl");
        std::fs::write(&list, database.run(&["removals", "export"])).unwrap();
        Self { database, library, chart, chartset, list }
    }

    /// Applies the list. Returns the summary.
    fn apply(&self, database: &Database) -> String {
        let printed = database.run(&["remove", "--from", self.list.to_str().unwrap()]);
        printed.lines().next().unwrap().to_owned()
    }

    /// From now on PostgreSQL refuses each statement that makes visible what is removed, even if a later one of
    /// the same transaction would hide it.
    fn forbid(&self, database: &Database) {
        let Self { chart, chartset, .. } = self;
        let lone_chart = ChartSpec::numbered(3).note_hash();
        database.0.psql(&format!(
            "ALTER TABLE charts ADD CHECK (hash <> '\\x{chart}' OR removed_at_ms IS NOT NULL);
             ALTER TABLE chartsets ADD CHECK (id <> '{chartset}' OR NOT shown);
             ALTER TABLE shown_chartsets ADD CHECK (id <> '{chartset}');
             ALTER TABLE catalogue_changes ADD CHECK (
                 entity NOT IN ('\\x{chart}', '\\x{chartset}', '\\x{lone_chart}') OR change = 'removed')"
        ));
    }

    fn assert_hidden(&self, database: &Database) {
        assert_eq!(database.0.psql("SELECT count(*) FROM chartsets WHERE shown"), "1", "set 1 is shown");
        assert_eq!(database.0.psql("SELECT chart_count FROM chartsets WHERE shown"), "1");
        assert!(database.run(&["verify"]).contains(", 0 findings"));
        let list = std::fs::read_to_string(&self.list).unwrap();
        assert_eq!(database.run(&["removals", "export"]), list);
    }
}

/// Those of an empty index, and of one that was restored (docs/operations/recovery.md, "Restore a dump":
/// removals, then serve, then ingest).
#[tokio::test]
async fn list_precedes_ingests_and_imports() {
    let removed = Removed::new().await;
    let original = Database::new().await;
    original.ingest(&removed.library);
    let exports = tempfile::tempdir().unwrap();
    let printed = original.run(&["export", exports.path().to_str().unwrap(), "--rox"]);
    let import = ["import", printed.split_once(": ").unwrap().0];
    let library = removed.library.argument();
    let ingest = ["ingest", &*library];
    // The state before the removals, and before set 2.
    let earlier = Library::new();
    earlier.osu("alpha/1 one/a.osu", ChartSpec::numbered(1));
    earlier.osu("alpha/1 one/b.osu", ChartSpec::numbered(2));
    let entities = format!("('\\x{}', '\\x{}')", removed.chart, removed.chartset);
    let tombstones = format!("SELECT count(*) FROM catalogue_changes WHERE entity IN {entities}");
    for (restored, command, not_yet) in [(None, ingest, 2), (Some(&earlier), ingest, 1), (None, import, 2)] {
        let database = Database::new().await;
        if let Some(earlier) = restored {
            database.ingest(earlier);
        }
        let summary = removed.apply(&database);
        assert_eq!(summary, format!("2 removed ({not_yet} not in the index yet), 0 already removed"));
        removed.forbid(&database);
        database.run(&command);
        removed.assert_hidden(&database);
        let summary = removed.apply(&database);
        assert_eq!(summary, "0 removed (0 not in the index yet), 2 already removed");
        // What a mirror has seen before the restore, it deletes.
        assert!(restored.is_none() || database.0.psql(&tombstones) == "2");
    }
}

#[tokio::test]
async fn reasons_and_times_are_in_the_list() {
    let removed = Removed::new().await;
    let list = std::fs::read_to_string(&removed.list).unwrap();
    let lines: Vec<serde_json::Value> =
        list.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let time = |line: &serde_json::Value| line["removedAtMs"].as_u64().unwrap();
    assert!(time(&lines[0]) <= time(&lines[1]) && time(&lines[0]) > 1_700_000_000_000, "{list}");
    let expected = [
        serde_json::json!({
            "kind": "chart", "chartHash": removed.chart, "removedAtMs": time(&lines[0]), "reason": "letter of 1 May"
        }),
        serde_json::json!({"kind": "chartset", "id": removed.chartset, "removedAtMs": time(&lines[1])}),
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn restored_entries_leave_the_list() {
    let removed = Removed::new().await;
    removed.database.run(&["restore", "chart", &removed.chart]);
    let list = removed.database.run(&["removals", "export"]);
    assert_eq!(list.lines().count(), 1);
    assert!(list.contains(&removed.chartset));
    let unknown = "0".repeat(64);
    assert_eq!(
        removed.database.run(&["restore", "chart", &unknown]),
        format!("chart {unknown} was not removed\n")
    );
    for outcome in ["removed, and is not in the index yet", "was already removed"] {
        let printed = removed.database.run(&["remove", "chart", &unknown]);
        assert!(printed.starts_with(&format!("chart {unknown} {outcome}\n")), "{printed}");
    }
    assert_eq!(removed.database.run(&["restore", "chart", &unknown]), format!("chart {unknown} restored\n"));
}

/// A list by hand has no times. Nothing of one with a mistake is applied.
#[tokio::test]
async fn list_is_checked_before_it_is_applied() {
    let (database, folder) = (Database::new().await, tempfile::tempdir().unwrap());
    let list = folder.path().join("list.jsonl");
    let path = list.to_str().unwrap();
    let chart = ChartSpec::numbered(1).note_hash();
    let good = format!("{{\"kind\":\"chart\",\"chartHash\":\"{chart}\"}}\n");
    for (bad, reason) in [
        (good.replace("chart", "chartset"), "unknown field `chartsetHash`"),
        (good.replace('}', ",\"erase\":true}"), "unknown field `erase`"),
        (good.replace("chartHash", "id"), "unknown field `id`"),
        (good.replace(&chart, "0"), "a chart hash is exactly 64"),
    ] {
        std::fs::write(&list, format!("{good}\n{bad}")).unwrap();
        let run = database.try_run(&["remove", "--from", path]);
        assert_eq!(run.code, Some(1));
        assert!(
            run.stderr.contains(&format!("line 3 of {path} is not a removal: {reason}")),
            "{}",
            run.stderr
        );
        assert_eq!(database.run(&["removals", "export"]), "");
    }
    std::fs::write(&list, good).unwrap();
    database.run(&["remove", "--from", path]);
    assert!(database.run(&["removals", "export"]).contains(&chart));
}

#[tokio::test]
async fn verify_compares_the_list_with_the_rows() {
    let removed = Removed::new().await;
    let Removed { database, chart, chartset, .. } = &removed;
    database.0.psql(&format!(
        "SET session_replication_role = replica;
         UPDATE charts SET removed_at_ms = NULL WHERE hash = '\\x{chart}';
         DELETE FROM removals WHERE entity = '\\x{chartset}'"
    ));
    let run = database.try_run(&["verify"]);
    assert_eq!(run.code, Some(1));
    for finding in [
        format!("chart {chart}: its row and the list of removals differ"),
        format!("chartset {chartset}: its row and the list of removals differ"),
    ] {
        assert!(run.stdout.contains(&finding), "{finding}\n{}", run.stdout);
    }
}

#[tokio::test]
async fn erased_entries_leave_nothing_but_the_list() {
    let removed = Removed::new().await;
    let Removed { database, library, chart, chartset, .. } = &removed;
    let exports = tempfile::tempdir().unwrap();
    let original = Database::new().await;
    original.ingest(library);
    let export = original.run(&["export", exports.path().to_str().unwrap(), "--rox"]);
    let export = export.split_once(": ").unwrap().0;
    for (kind, name) in [("chart", chart), ("chartset", chartset)] {
        let printed = database.run(&["remove", kind, name, "--erase"]);
        assert!(printed.starts_with(&format!("{kind} {name} removed and erased\n")), "{printed}");
    }
    let lone_chart = ChartSpec::numbered(3).note_hash();
    let left = |database: &Database| {
        database.0.psql(&format!(
            "SELECT (SELECT count(*) FROM charts WHERE hash IN ('\\x{chart}', '\\x{lone_chart}')),
                    (SELECT count(*) FROM rox_files),
                    (SELECT count(*) FROM chartset_charts), (SELECT count(*) FROM chartsets WHERE id = '{chartset}'),
                    (SELECT count(*) FROM ingest_fingerprints WHERE outcome LIKE '%alpha/2 two%')"
        ))
    };
    assert_eq!(left(database), "0|1|1|0|0");
    let list = database.run(&["removals", "export"]);
    assert_eq!(list.matches("\"erased\":true").count(), 2, "{list}");
    library.delete("alpha/2 two");
    database.ingest(library);
    assert_eq!(left(database), "0|1|1|0|0");
    let printed = database.run(&["import", export]);
    assert!(printed.contains("1 removed here, not shown"), "{printed}");
    assert_eq!(database.0.psql("SELECT count(*) FROM chartsets WHERE shown"), "1");
    assert_eq!(left(database), "0|1|1|0|0", "nor the charts of the erased chartset");
    assert!(database.run(&["verify"]).contains(", 0 findings"));

    let other = Database::new().await;
    std::fs::write(&removed.list, list).unwrap();
    removed.apply(&other);
    other.ingest(library);
    assert_eq!(left(&other), "0|1|1|0|0");
}

/// docs/operations/removals.md, "Erase": the data comes back with the next ingest of its files.
#[tokio::test]
async fn restored_files_are_ingested_again() {
    let removed = Removed::new().await;
    let Removed { database, library, chart, chartset, .. } = &removed;
    let entries = [("chart", chart), ("chartset", chartset)];
    for (kind, name) in entries {
        database.run(&["remove", kind, name, "--erase"]);
    }
    // The second one finds the folders unchanged.
    database.ingest(library);
    database.ingest(library);
    for (kind, name) in entries {
        database.run(&["restore", kind, name]);
    }
    database.ingest(library);
    let stored =
        "SELECT (SELECT count(*) FROM chartsets WHERE shown), (SELECT count(*) FROM chartset_charts),
                         (SELECT count(*) FROM rox_files)";
    assert_eq!(database.0.psql(stored), "3|4|3");
    assert!(database.run(&["verify"]).contains(", 0 findings"));
}

/// The lines of a report about removed charts that no file has any more, as hash and path.
fn unmatched(report: &[serde_json::Value]) -> Vec<(&str, &str)> {
    let lines = report.iter().filter(|line| line["outcome"] == "unmatchedRemoval");
    lines.map(|line| (line["chartHash"].as_str().unwrap(), line["path"].as_str().unwrap())).collect()
}

/// As after an upgrade: a chart is read in another way, and its removal names the earlier hash.
#[tokio::test]
async fn removed_charts_that_no_file_has_are_reported() {
    let removed = Removed::new().await;
    let Removed { database, library, chart, .. } = &removed;
    let id = database.chartsets()["alpha/3 three"].clone();
    library.osu("alpha/1 one/a.osu", ChartSpec::numbered(11));
    let (_, report) = database.ingest_with_report(library, &[]);
    assert_eq!(unmatched(&report), [], "set 3 has the chart");
    library.osu("alpha/3 three/a.osu", ChartSpec::numbered(12));
    let (summary, report) = database.ingest_with_report(library, &[]);
    assert_eq!(unmatched(&report), [(&**chart, "alpha/3 three")]);
    let expected =
        format!("removed chart {chart}: no file has it any more; it was in alpha/3 three (chartset {id})\n");
    assert!(summary.contains(&expected) && summary.contains("1 removal without a file\n"), "{summary}");
    for arguments in [&[][..], &["--full"]] {
        let (_, report) = database.ingest_with_report(library, arguments);
        assert_eq!(unmatched(&report), [], "reported once");
    }
    // Nor is one that the index never had.
    database.run(&["remove", "chart", &"0".repeat(64)]);
    let (_, report) = database.ingest_with_report(library, &["--full"]);
    assert_eq!(unmatched(&report), []);
}

/// Nothing in the index tells which files had an erased chart but the recorded outcome of an ingest after it.
#[tokio::test]
async fn erased_charts_that_no_file_has_are_reported() {
    let removed = Removed::new().await;
    let Removed { database, library, chart, .. } = &removed;
    database.run(&["remove", "chart", chart, "--erase"]);
    for arguments in [&[][..], &[], &["--full"]] {
        let (_, report) = database.ingest_with_report(library, arguments);
        assert_eq!(unmatched(&report), []);
    }
    library.osu("alpha/1 one/a.osu", ChartSpec::numbered(11));
    let (_, report) = database.ingest_with_report(library, &[]);
    assert_eq!(unmatched(&report), [], "set 3, which is unchanged, has the chart");
    library.osu("alpha/3 three/a.osu", ChartSpec::numbered(12));
    let (_, report) = database.ingest_with_report(library, &["--full"]);
    assert_eq!(unmatched(&report), [(&**chart, "alpha/3 three")]);
    let (_, report) = database.ingest_with_report(library, &["--full"]);
    assert_eq!(unmatched(&report), []);
}
