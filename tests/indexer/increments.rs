//! Increments: what has changed since an export.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::exports::{forge, rox_files};
use super::mirror::{Mirror, Origin, assert_same};
use super::*;

fn path_of(printed: &str) -> PathBuf {
    printed.split_once(": ").unwrap_or_else(|| panic!("{printed}")).0.into()
}

fn changes(increment: &Path) -> Vec<Value> {
    let mut text = String::new();
    let file = File::open(increment.join("changes.ndjson.zst")).unwrap();
    zstd::Decoder::new(file).unwrap().read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn import(database: &Database, export: &Path) -> String {
    database.run(&["import", export.to_str().unwrap()])
}

#[tokio::test]
async fn increment_has_the_changes_of_the_feed() {
    let origin = Origin::new(Database::new().await);
    let run = origin.database.try_run(&["export", origin.exports.path().to_str().unwrap(), "--increment"]);
    assert_eq!(
        (run.code, run.stderr.contains("write a complete one first")),
        (Some(1), true),
        "{}",
        run.stderr
    );
    let complete = path_of(&origin.export(&["--rox"]));
    let since = complete.to_str().unwrap().rsplit_once('-').unwrap().1.to_owned();
    assert_eq!(
        origin.export(&["--increment"]),
        format!("no change after {since}, no increment was written\n")
    );
    origin.library.osu("alpha/6 six/a.osu", ChartSpec::numbered(6));
    origin.library.osu("alpha/1 one/a.osu", ChartSpec { title: "New".into(), ..ChartSpec::numbered(1) });
    origin.database.ingest(&origin.library);
    origin.database.run(&["remove", "chart", &ChartSpec::numbered(5).note_hash()]);
    let increment = path_of(&origin.export(&["--increment"]));
    let page = origin.serve().client().get(&format!("/api/changes?limit=1000&after={since}")).await.json();
    let lines = changes(&increment);
    assert_eq!(&lines, page["items"].as_array().unwrap());
    let changed = lines.iter().filter(|line| line["change"] != "removed");
    let hashes: BTreeSet<_> =
        changed.filter_map(|line| Some(line["chartHash"].as_str()?.to_owned() + ".rox")).collect();
    let files = rox_files(&increment);
    assert_eq!(files.iter().map(|(name, _)| name.clone()).collect::<BTreeSet<_>>(), hashes);
    let manifest: Value =
        serde_json::from_slice(&fs::read(increment.join("manifest.json")).unwrap()).unwrap();
    assert_eq!((&manifest["since"].to_string(), &manifest["sequence"]), (&since, &page["next"]));
    assert_eq!((&manifest["changes"], &manifest["charts"]), (&lines.len().into(), &files.len().into()));
    let last = page["next"].as_u64().unwrap();
    assert!(increment.to_str().unwrap().ends_with(&format!("Z-{since}-{last}")), "{increment:?}");
    // The next one continues.
    assert_eq!(
        origin.export(&["--increment"]),
        format!("no change after {last}, no increment was written\n")
    );
    let all = changes(&path_of(&origin.export(&["--since", "0"])));
    assert!(all.len() > lines.len() && all.ends_with(&lines), "{all:?}");
    let folder = origin.exports.path().to_str().unwrap();
    let run = origin.database.try_run(&["export", folder, "--since", "9007199254740991"]);
    assert_eq!((run.code, run.stderr.contains("were lost")), (Some(1), true), "{}", run.stderr);
}

#[tokio::test]
async fn imported_increments_give_the_state_of_the_original() {
    let origin = Origin::new(Database::new().await);
    let copy = Mirror::new().await;
    import(&copy.database, &path_of(&origin.export(&["--rox"])));
    let Origin { database, library, .. } = &origin;
    let id = |path: &str| database.chartsets()[path].clone();
    let hash = |number| ChartSpec::numbered(number).note_hash();
    let changes: [(&str, &dyn Fn()); 4] = [
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
        }),
    ];
    for (name, change) in changes {
        println!("{name}");
        change();
        let increment = path_of(&origin.export(&["--increment"]));
        import(&copy.database, &increment);
        assert_same(database, &[&copy]).await;
        let again = import(&copy.database, &increment);
        assert!(again.contains("0 chartsets added") && again.contains("0 updated"), "{again}");
    }
}

/// Also the charts of a chartset that was erased.
#[tokio::test]
async fn erased_entries_of_an_increment_are_not_stored() {
    let origin = Origin::new(Database::new().await);
    let increment = path_of(&origin.export(&["--since", "0"]));
    let index = Database::new().await;
    index.run(&["remove", "chartset", &origin.database.chartsets()["alpha/2 two"], "--erase"]);
    index.run(&["remove", "chart", &ChartSpec::numbered(5).note_hash(), "--erase"]);
    import(&index, &increment);
    for number in [3, 5] {
        let stored = format!(
            "SELECT count(*) FROM charts WHERE hash = '\\x{}'",
            ChartSpec::numbered(number).note_hash()
        );
        assert_eq!(index.0.psql(&stored), "0", "{number}");
    }
    assert_eq!(index.0.psql("SELECT count(*) FROM charts"), "3");
    assert!(index.run(&["verify"]).contains(", 0 findings"));
}

#[tokio::test]
async fn damaged_increments_are_refused() {
    let origin = Origin::new(Database::new().await);
    let increment = path_of(&origin.export(&["--since", "0"]));
    let lines = changes(&increment);
    let index = Database::new().await;
    let record = lines.iter().position(|line| line["chartset"].is_object()).unwrap();
    let with = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut lines = lines.clone();
        change(&mut lines);
        lines
    };
    for (lines, message) in [
        (with(&|lines| drop(lines.pop())), "in the manifest"),
        (with(&|lines| lines.swap(0, 1)), "not in the order of the sequences"),
        (with(&|lines| lines[0] = "x".into()), "line 1 of changes.ndjson.zst is not a change"),
        (with(&|lines| lines[record]["id"] = "0".repeat(16).into()), "its record is that of chartset"),
        (
            with(&|lines| lines[record]["chartset"]["charts"][0]["notes"] = 1.into()),
            "does not match its ROX file",
        ),
    ] {
        let lines: Vec<String> = lines.iter().map(|line| line.to_string() + "\n").collect();
        forge(&increment, "changes.ndjson.zst", &zstd::encode_all(lines.concat().as_bytes(), 1).unwrap());
        let run = index.try_run(&["import", increment.to_str().unwrap()]);
        assert_eq!((run.code, run.stderr.contains(message)), (Some(1), true), "{message}: {}", run.stderr);
    }
}

/// More changes than a page of the feed has.
#[tokio::test]
async fn mirror_that_is_far_behind_applies_increments() {
    let origin = Origin::new(Database::new().await);
    for number in 10..=510 {
        origin.library.osu(&format!("alpha/{number} x/a.osu"), ChartSpec::numbered(number));
    }
    origin.database.ingest(&origin.library);
    let increment = path_of(&origin.export(&["--since", "0"]));
    origin.library.osu("alpha/6 six/a.osu", ChartSpec::numbered(6));
    origin.database.ingest(&origin.library);
    let upstream = origin.serve();
    let name = increment.file_name().unwrap().to_str().unwrap().to_owned();
    let (mirror, other) = (Mirror::new().await, Mirror::new().await);
    let printed = mirror.follow(&upstream);
    assert!(printed.contains(&format!("applies increment {name}")), "{printed}");
    let requests = async |route: &str| {
        let metrics = String::from_utf8(upstream.private_client().get("/metrics").await.body).unwrap();
        let lines =
            metrics.lines().filter(|line| line.starts_with("http_server_request_duration_seconds_count"));
        let counts = lines.filter(|line| line.contains(&format!("\"{route}\"")));
        counts.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum::<u64>()
    };
    assert_eq!(requests("/api/charts/{hash}/rox").await, 1, "that of the later chart");
    // Without it the feed has everything.
    fs::write(increment.join("changes.ndjson.zst"), "x").unwrap();
    let printed = other.follow(&upstream);
    assert!(printed.contains(&format!("increment {name} is not applied: ")), "{printed}");
    let state = "SELECT id, updated_at_ms, title, chart_count FROM chartsets WHERE shown ORDER BY id";
    for mirror in [&mirror, &other] {
        assert_eq!(mirror.database.0.psql(state), origin.database.0.psql(state));
        assert!(mirror.database.run(&["verify"]).contains(", 0 findings"));
    }
}
