//! `chart-indexer backfill`, and what `verify` finds of what it computes.

use super::*;

const CLEAR: &str = "UPDATE charts SET density_curve = NULL";
/// As charts of an older version.
const CLEAR_ANALYSIS: &str = "UPDATE charts SET rating = NULL, patterns = NULL, analysis_version = 0";

/// All charts, without what a removal changes.
const STORED: &str = "SELECT to_jsonb(charts) - 'removed_at_ms' FROM charts ORDER BY hash";

/// What is computed of the stored ROX files equals what the ingest stored.
#[tokio::test]
async fn backfill_equals_the_ingest() {
    let database = Database::with_samples().await;
    let ingested = database.0.psql(STORED);
    let charts: u32 = database.0.psql("SELECT count(*) FROM charts").parse().unwrap();
    assert_eq!(database.0.psql("SELECT count(density_curve) FROM charts"), charts.to_string());
    assert!(database.run(&["verify"]).contains(", 0 findings"));
    let summary = database.run(&["backfill"]);
    assert_eq!(summary, format!("0 charts written, {charts} up to date, 0 failed\n"));

    database.0.psql(CLEAR);
    let verified = database.try_run(&["verify"]);
    assert_eq!(verified.code, Some(1));
    let finding = format!("{charts} charts without all computed values: run `chart-indexer backfill`\n");
    assert!(verified.stdout.starts_with(&finding), "{}", verified.stdout);
    assert_eq!(database.run(&["backfill"]), format!("{charts} charts written, 0 up to date, 0 failed\n"));
    assert_eq!(database.0.psql(STORED), ingested);
    assert!(database.run(&["verify"]).contains(", 0 findings"));
}

/// Of two charts, as after an interruption.
#[tokio::test]
async fn backfill_computes_ratings_of_older_versions() {
    let database = Database::with_samples().await;
    let ingested = database.0.psql(STORED);
    let two = "WHERE hash IN (SELECT hash FROM charts ORDER BY hash DESC LIMIT 2)";
    database.0.psql(&format!("{CLEAR_ANALYSIS} {two}"));
    let verified = database.try_run(&["verify"]);
    let finding = "2 charts without all computed values: run `chart-indexer backfill`\n";
    assert!(verified.code == Some(1) && verified.stdout.starts_with(finding), "{}", verified.stdout);
    let last = "SELECT coalesce(max(sequence), 0) FROM catalogue_changes";
    let before = database.0.psql(last);
    assert!(database.run(&["backfill"]).starts_with("2 charts written, "));
    assert_eq!(database.0.psql(STORED), ingested);
    let changed = format!(
        "SELECT encode(entity, 'hex') FROM catalogue_changes WHERE sequence > {before} ORDER BY octet_length(entity) DESC, 1"
    );
    let expected = format!(
        "(SELECT encode(hash, 'hex') FROM charts {two} ORDER BY 1)
         UNION ALL (SELECT DISTINCT chartset_id FROM chartset_charts
                    JOIN (SELECT hash FROM charts {two}) AS two ON two.hash = chart_hash ORDER BY 1)"
    );
    assert_eq!(database.0.psql(&changed), database.0.psql(&expected), "these charts and their chartsets");
    let after = database.0.psql(last);
    assert!(database.run(&["backfill"]).starts_with("0 charts written, "));
    assert_eq!(database.0.psql(last), after);
    assert!(database.run(&["verify"]).contains(", 0 findings"));
}

/// Until then they filter by the earlier one, which new charts do not have.
#[tokio::test]
async fn lists_use_another_version_once_it_is_complete() {
    let database = Database::with_samples().await;
    let listed = "SELECT (SELECT string_agg(chart::text, ' ' ORDER BY chart::text) FROM shown_charts AS chart),
                         (SELECT string_agg(concat(id, rating_min, rating_max), ' ' ORDER BY id) FROM shown_chartsets)";
    let ingested = database.0.psql(listed);
    let earlier = "UPDATE chart_analysis SET listed_version = 0;
                   UPDATE charts SET rating = 100, analysis_version = 0";
    database.0.psql(earlier);
    let before = database.0.psql(listed);
    assert_ne!(before, ingested);
    let compute_one = "UPDATE charts SET rating = 500, analysis_version = 1 WHERE hash = (SELECT hash FROM charts ORDER BY hash LIMIT 1)";
    database.0.psql(compute_one);
    assert_eq!(database.0.psql(listed), before);
    let update = "UPDATE chartsets SET updated_at_ms = updated_at_ms + 1";
    database.0.psql(update);
    assert_ne!(database.0.psql(listed), before);
    assert_eq!(database.0.psql("SELECT count(*) FROM shown_charts WHERE rating = 500"), "0");
    database.0.psql("UPDATE charts SET rating = 100, analysis_version = 0");
    database.run(&["backfill"]);
    assert_eq!(database.0.psql(listed), ingested);
    let changed = "SELECT count(*) FROM catalogue_changes WHERE octet_length(entity) = 8";
    assert_eq!(database.0.psql(changed), database.0.psql("SELECT count(*) FROM chartsets"));
}

/// Those of removed charts as well: they may be restored.
#[tokio::test]
async fn backfill_writes_what_is_missing() {
    let database = Database::with_samples().await;
    let ingested = database.0.psql(STORED);
    let hashes = database.0.psql("SELECT encode(hash, 'hex') FROM charts ORDER BY hash");
    let hashes: Vec<&str> = hashes.lines().collect();
    database.run(&["remove", "chart", hashes[2]]);
    database.0.psql(&format!(
        "UPDATE charts SET density_curve = NULL WHERE hash IN ('\\x{}', '\\x{}')",
        hashes[0], hashes[2],
    ));
    assert!(database.run(&["backfill"]).starts_with("2 charts written, "));
    assert_eq!(database.0.psql(STORED), ingested);
}

#[tokio::test]
async fn wrong_values_are_found_and_replaced() {
    let database = Database::with_samples().await;
    let ingested = database.0.psql(STORED);
    for (damage, finding) in [
        (
            "density_curve = decode(repeat('01', 48), 'hex')",
            ": its density curve differs from that of its ROX file\n",
        ),
        ("rating = coalesce(1500 - rating, 0)", ": its rating and patterns are "),
        ("patterns = decode(repeat('01', 15), 'hex')", ": its rating and patterns are "),
    ] {
        database.0.psql(&format!(
            "UPDATE charts SET {damage} WHERE hash IN (SELECT hash FROM charts ORDER BY hash LIMIT 1)"
        ));
        let verified = database.try_run(&["verify"]);
        assert_eq!(verified.code, Some(1));
        assert!(verified.stdout.contains(finding), "{}", verified.stdout);
        assert!(database.run(&["backfill"]).starts_with("0 charts written"), "they are not missing");
        assert!(database.run(&["backfill", "--full"]).starts_with("1 chart written"));
        assert_eq!(database.0.psql(STORED), ingested);
    }
}

/// The others are computed, and the exit code is 1.
#[tokio::test]
async fn charts_without_their_rox_file_are_reported() {
    let database = Database::with_samples().await;
    database.0.psql(CLEAR);
    let hashes = database.0.psql("SELECT encode(hash, 'hex') FROM charts ORDER BY hash LIMIT 3");
    let [missing, damaged, swapped] = hashes.lines().collect::<Vec<_>>().try_into().unwrap();
    database.0.psql(&format!(
        "DELETE FROM rox_files WHERE hash = '\\x{missing}';
         UPDATE rox_files SET bytes = 'x' WHERE hash = '\\x{damaged}';
         UPDATE rox_files SET bytes = (SELECT bytes FROM rox_files ORDER BY hash DESC LIMIT 1) WHERE hash = '\\x{swapped}'"
    ));
    let run = database.try_run(&["backfill"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.contains(&format!("chart {missing}: its ROX file is missing\n")), "{}", run.stdout);
    assert!(run.stdout.contains(&format!("chart {damaged}: invalid ROX file: ")), "{}", run.stdout);
    assert!(
        run.stdout.contains(&format!("chart {swapped}: its ROX file has the note hash ")),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains(" up to date, 3 failed\n"), "{}", run.stdout);
    assert!(run.stderr.contains("3 charts failed: "), "{}", run.stderr);
    assert_eq!(database.0.psql("SELECT count(*) FROM charts WHERE density_curve IS NULL"), "3");
}

/// A chart that an older version stored gets its density curve from its ROX file, not from a file that is
/// ingested again.
#[tokio::test]
async fn an_ingest_writes_curves_of_new_charts_only() {
    let database = Database::with_samples().await;
    database.0.psql(CLEAR);
    let library = Library::new();
    library.osu("alpha/1 one/a.osu", ChartSpec::numbered(1));
    database.ingest(&library);
    database.run(&["ingest", "--full", samples().to_str().unwrap()]);
    assert_eq!(database.0.psql("SELECT count(density_curve) FROM charts"), "1");
}
