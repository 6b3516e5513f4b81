//! `chart-index check` with real servers: what is in order, and what is not.

use std::collections::BTreeMap;

use chart_index_tests::{PrivatePostgres, PrivateRedis};
use serde_json::Value;

use super::*;

/// Runs `check --json` with these variables only. Returns the exit code and the checks by name.
fn check(variables: &[(&str, &str)]) -> (Option<i32>, BTreeMap<String, (String, String)>) {
    let mut command = program_command("chart-index");
    let free_ports = [("LISTEN", "127.0.0.1:0"), ("ADMIN_LISTEN", "127.0.0.1:0")];
    command.args(["check", "--json"]).env_clear().envs(free_ports).envs(variables.iter().copied());
    let run = IndexerRun::run(&mut command);
    assert!(!(run.stdout.clone() + &run.stderr).contains("hunter2"), "{}{}", run.stdout, run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
    let checks = report["checks"].as_array().unwrap().iter().map(|check| {
        let text = |name: &str| check[name].as_str().unwrap().to_owned();
        assert!(text("document").starts_with("docs/"));
        (text("name"), (text("outcome"), text("text")))
    });
    (run.code, checks.collect())
}

/// Asserts the outcome of a check and a part of its text.
#[track_caller]
fn assert_check(
    checks: &BTreeMap<String, (String, String)>,
    name: &str,
    (expected_outcome, expected_text): (&str, &str),
) {
    let (outcome, text) = checks.get(name).unwrap_or_else(|| panic!("{name}: {checks:#?}"));
    assert!(outcome == expected_outcome && text.contains(expected_text), "{name}: {outcome}: {text}");
}

#[tokio::test]
async fn healthy_installation_has_no_problem() {
    let library = Library::new();
    library.osu("alpha/1 one/a.osu", ChartSpec::default());
    let index = Index::new(library).await;
    let redis = PrivateRedis::start(&["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"]);
    let (exports, dumps, objects) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    indexer(index.database.url(), &["export", exports.path().to_str().unwrap()]).succeeded();
    std::fs::write(dumps.path().join("chart_index-1.dump"), "dump").unwrap();
    let objects = format!("file://{}", objects.path().display());
    // The server of the tests does not wait for the disk.
    index.database.psql("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = on', current_database()); END $$");
    let (code, checks) = check(&[
        ("DATABASE_URL", index.database.url()),
        ("REDIS_URL", &redis.url()),
        ("EXPORTS_DIR", exports.path().to_str().unwrap()),
        ("DUMPS_DIR", dumps.path().to_str().unwrap()),
        ("OBJECT_STORE_URL", &objects),
        ("PUBLIC_URL", "https://charts.test"),
        ("CONTACT", "someone@charts.test"),
        ("ALPHA_SOURCE_PAGE", "https://alpha.test/sets"),
        ("BETA_SOURCE_PAGE", "https://beta.test/packs"),
    ]);
    assert_eq!(code, Some(0), "{checks:#?}");
    // Free space and the memory of the machine are those of the test.
    for (name, text) in [
        ("listeners", "are free"),
        ("site", "are set"),
        ("dumps", "ago"),
        ("postgresql", "version 1"),
        ("postgresql clock", " ms"),
        ("postgresql connections", "18 of "),
        ("locale", ""),
        ("schema", ""),
        ("ingest", "complete "),
        ("exports", "seconds ago"),
        ("redis", "maxmemory 64 MiB, allkeys-lru"),
        ("redis clock", " ms"),
        ("object store", "can be read"),
    ] {
        assert_check(&checks, name, ("ok", text));
    }
    assert!(checks.contains_key("free space"), "{checks:#?}");
    assert!(!checks.contains_key("standby") && !checks.contains_key("meilisearch"), "{checks:#?}");
}

/// Each is found, whatever the others are.
#[tokio::test]
async fn everything_wrong_is_found_at_once() {
    let redis = PrivateRedis::start(&["--appendonly", "yes"]);
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (code, checks) = check(&[
        ("DATABASE_URL", "postgres://user:hunter2@127.0.0.1:1/none"),
        ("REDIS_URL", &redis.url()),
        ("MEILISEARCH_URL", "http://127.0.0.1:1"),
        ("OBJECT_STORE_URL", "file:///nonexistent/objects"),
        ("EXPORTS_DIR", "/nonexistent/exports"),
        ("DUMPS_DIR", "/nonexistent/dumps"),
        ("CACHE_BYTES", "18446744073709551615"),
        ("MAX_CONNECTIONS", "4294967295"),
        ("TRUSTED_PROXIES", "0.0.0.0/0"),
        ("LISTEN", &other.local_addr().unwrap().to_string()),
    ]);
    assert_eq!(code, Some(1), "{checks:#?}");
    for (name, expected) in [
        ("listeners", ("warning", "is in use")),
        ("open files", ("warning", "MAX_CONNECTIONS is 4294967295")),
        ("memory", ("problem", "CACHE_BYTES needs")),
        ("proxies", ("warning", "every address")),
        ("site", ("warning", "PUBLIC_URL, CONTACT, ALPHA_SOURCE_PAGE, BETA_SOURCE_PAGE")),
        ("postgresql", ("problem", "Connection refused")),
        ("redis", ("warning", "maxmemory is not set")),
        ("meilisearch", ("problem", "http://127.0.0.1:1: ")),
        ("object store", ("problem", "/nonexistent/objects")),
        ("exports", ("problem", "/nonexistent/exports")),
        ("dumps", ("problem", "/nonexistent/dumps")),
    ] {
        assert_check(&checks, name, expected);
    }
}

#[tokio::test]
async fn missing_schema_and_unreachable_redis_are_problems() {
    let database = TestDatabase::create().await;
    let (code, checks) = check(&[
        ("DATABASE_URL", database.url()),
        ("REDIS_URL", "redis://:hunter2@127.0.0.1:1"),
        ("DATABASE_READ_URL", "postgres://127.0.0.1:1/none"),
        ("DATABASE_MAX_CONNECTIONS", "100000"),
    ]);
    assert_eq!(code, Some(1), "{checks:#?}");
    assert_check(&checks, "postgresql", ("warning", "synchronous_commit is off"));
    assert_check(&checks, "postgresql connections", ("problem", "100002 of "));
    assert_check(&checks, "schema", ("problem", "chart-indexer migrate"));
    assert_check(&checks, "redis", ("problem", "127.0.0.1:1: Connection refused"));
    // The text names the section of the documents.
    let text =
        IndexerRun::run(program_command("chart-index").arg("check").env("DATABASE_URL", database.url()));
    assert_eq!(text.code, Some(1), "{}", text.stderr);
    let schema = text.stdout.lines().find(|line| line.starts_with("problem  schema: ")).unwrap();
    assert!(schema.ends_with("(docs/operations/upgrade.md#migrations)"), "{schema}");
    assert!(text.stdout.trim_end().ends_with(", problems: 1"), "{}", text.stdout);

    indexer(database.url(), &["migrate"]).succeeded();
    // A server that is no standby.
    let read = [("DATABASE_URL", database.url()), ("DATABASE_READ_URL", database.url())];
    let (code, checks) = check(&read);
    assert_eq!(code, Some(1), "{checks:#?}");
    assert_check(&checks, "standby", ("problem", "not a standby"));
    assert_check(&checks, "ingest", ("warning", "none yet"));
}

#[tokio::test]
async fn standby_and_locale_are_checked() {
    let primary = PrivatePostgres::start();
    let standby = primary.start_standby();
    indexer(primary.url(), &["migrate"]).succeeded();
    let urls = [("DATABASE_URL", primary.url()), ("DATABASE_READ_URL", standby.url())];
    // A standby has the schema when it has replayed it.
    let has_schema = async || (check(&urls).1["standby"].0 == "ok").then_some(());
    within(Duration::from_secs(20), has_schema).await;
    assert_check(&check(&urls).1, "standby", ("ok", "bytes of the WAL"));

    let (server, _) = primary.url().rsplit_once('/').unwrap();
    let create = "CREATE DATABASE other TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'";
    TestDatabase::psql_on(primary.url(), create);
    let (_, checks) = check(&[("DATABASE_URL", &format!("{server}/other"))]);
    assert_check(&checks, "locale", ("warning", "C has no letters"));
}

#[tokio::test]
async fn password_of_redis_is_checked() {
    let database = TestDatabase::create().await;
    let redis = PrivateRedis::start(&["--requirepass", "another"]);
    let url = redis.url().replace("redis://", "redis://:hunter2@");
    let (code, checks) = check(&[("DATABASE_URL", database.url()), ("REDIS_URL", &url)]);
    assert_eq!(code, Some(1), "{checks:#?}");
    assert_check(&checks, "redis", ("problem", "authentication failed"));
}
