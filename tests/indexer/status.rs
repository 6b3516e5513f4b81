//! `chart-indexer status`: as text and as JSON, before and after an ingest.

use serde_json::{Value, json};

use super::*;

fn status(database: &Database, arguments: &[&str]) -> Value {
    let output = database.run(&[&["status", "--json"], arguments].concat());
    serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"))
}

#[tokio::test]
async fn empty_index_has_nothing() {
    let database = Database::new().await;
    let status = status(&database, &[]);
    for (name, expected) in [
        ("chartsets", json!(0)),
        ("charts", json!(0)),
        ("removals", json!(0)),
        ("lastIngest", Value::Null),
        ("hashFilter", Value::Null),
        ("nodes", json!([])),
        ("mirror", Value::Null),
        ("purged", Value::Null),
        ("export", Value::Null),
    ] {
        assert_eq!(status[name], expected, "{name}");
    }
    let text = database.run(&["status"]);
    assert!(text.contains("\ningest       none\nhash filter  none\n"), "{text}");
}

#[tokio::test]
async fn state_of_everything_is_printed() {
    let database = Database::new().await;
    let library = Library::new();
    library.osu("alpha/1 one/a.osu", ChartSpec::numbered(1));
    let removed = library.osu("alpha/2 two/a.osu", ChartSpec::numbered(2)).note_hash();
    database.ingest(&library);
    let exports = tempfile::tempdir().unwrap();
    let folder = exports.path().to_str().unwrap();
    database.run(&["export", folder]);
    let arguments = ["--exports-dir", folder, "--meilisearch-url", "http://127.0.0.1:1"];
    let before = status(&database, &arguments);
    assert_eq!((&before["chartsets"], &before["charts"]), (&json!(2), &json!(2)));
    assert_eq!(before["hashFilter"]["hashes"], 2);
    assert_eq!(
        (&before["export"]["chartsets"], &before["export"]["isWithdrawn"]),
        (&json!(2), &json!(false))
    );
    assert_eq!(before["export"]["sequence"], before["feed"]["sequence"]);
    let times = &before["lastIngest"];
    assert!(times["completedAtMs"].as_i64() >= times["beganAtMs"].as_i64(), "{times}");
    let node = &before["nodes"][0];
    assert!(node["problem"].is_string() && node["sequence"].is_null(), "{node}");

    database.run(&["remove", "chart", &removed]);
    // One complete two days ago, and another begun since.
    database.0.psql("UPDATE last_ingest SET completed_at_ms = completed_at_ms - 2 * 86400000");
    let after = status(&database, &arguments);
    assert_eq!((&after["charts"], &after["removals"]), (&json!(1), &json!(1)));
    assert_eq!(after["export"]["isWithdrawn"], true);
    let text = database.run(&[&["status"], &arguments[..]].concat());
    for line in [
        "catalogue    1 chartset, 1 chart\n",
        "removals     1\n",
        "not complete; the one before complete 2 days ago\n",
        "hash filter  2 charts, built ",
        "node         http://127.0.0.1:1, ",
        ", 2 chartsets, 2 charts, withdrawn since a removal\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }

    // It was written while the clock was ahead.
    let later = exports.path().join(format!("99990101T000000Z-{}", before["export"]["sequence"]));
    std::fs::rename(before["export"]["path"].as_str().unwrap(), later).unwrap();
    database.run(&["export", folder]);
    let export = &status(&database, &arguments)["export"];
    assert_eq!((&export["chartsets"], &export["isWithdrawn"]), (&json!(1), &json!(false)));
}

#[tokio::test]
async fn mirror_is_part_of_the_state() {
    let database = Database::new().await;
    let run = database.try_run(&["mirror", "http://127.0.0.1:1", "--once"]);
    assert_eq!(run.code, Some(1));
    let expected =
        json!({ "upstream": "http://127.0.0.1:1", "sequence": null, "isStarting": true, "refusals": 0 });
    assert_eq!(status(&database, &[])["mirror"], expected);
}

#[tokio::test]
async fn status_needs_postgresql_and_its_schema() {
    let database = TestDatabase::create().await;
    for (url, expected) in
        [(database.url(), "chart-indexer migrate"), ("postgres://127.0.0.1:1/none", "refused")]
    {
        let run = indexer(url, &["status"]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
}
