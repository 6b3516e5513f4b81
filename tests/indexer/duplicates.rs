//! Folders and archives with the same chartset id.

use super::*;

/// `123 x/`, `123 x.osz` and `123 y/` are the same set of the first game, `7 pack/song/` and the `song/` in
/// `7 pack.zip` the same song of the second.
fn library() -> Library {
    let library = Library::new();
    library.osu("alpha/123 x/a.osu", ChartSpec { title: "Archive".into(), ..ChartSpec::numbered(1) });
    library.pack("alpha/123 x", "alpha/123 x.osz");
    library.osu("alpha/123 x/a.osu", ChartSpec { title: "Folder".into(), ..ChartSpec::numbered(2) });
    library.osu("alpha/123 y/a.osu", ChartSpec { title: "Later".into(), ..ChartSpec::numbered(3) });
    library.osu("beta/7 pack/song/a.osu", ChartSpec { title: "Packed".into(), ..ChartSpec::numbered(4) });
    library.pack("beta/7 pack", "beta/7 pack.zip");
    library.osu("beta/7 pack/song/a.osu", ChartSpec { title: "Loose".into(), ..ChartSpec::numbered(5) });
    library
}

const DUPLICATES: [(&str, &str); 3] = [
    ("alpha/123 x.osz", "alpha/123 x"),
    ("alpha/123 y", "alpha/123 x"),
    ("beta/7 pack.zip/song", "beta/7 pack/song"),
];

#[tokio::test]
async fn every_run_chooses_the_same_duplicate() {
    let database = Database::new().await;
    let library = library();
    for run in 0..3 {
        let (summary, report) = database.ingest_with_report(&library, &[]);
        assert!(summary.contains("3 duplicates ignored"), "run {run}: {summary}");
        for (path, chosen) in DUPLICATES {
            let line = line_about(&report, path);
            assert_eq!(
                (&line["outcome"], &line["chosen"]),
                (&"duplicate".into(), &chosen.into()),
                "run {run}"
            );
            assert!(summary.contains(&format!("duplicate: {path}: ")), "{summary}");
        }
        assert_eq!(database.titles(), ["Folder", "Loose"], "run {run}");
    }
    let changes = database.0.psql("SELECT last_sequence FROM change_feed");
    assert_eq!(changes, "4", "two charts and two chartsets; unchanged ones are not written again");
}

#[tokio::test]
async fn archive_is_used_when_the_folder_is_deleted() {
    let database = Database::new().await;
    let library = library();
    database.ingest(&library);
    library.delete("alpha/123 x");
    library.delete("alpha/123 y");
    assert!(database.ingest(&library).contains("1 updated"));
    assert_eq!(database.titles(), ["Archive", "Loose"]);
    library.osu("alpha/123 x/a.osu", ChartSpec { title: "Folder".into(), ..ChartSpec::numbered(2) });
    assert!(database.ingest(&library).contains("1 updated"));
    assert_eq!(database.titles(), ["Folder", "Loose"]);
}
