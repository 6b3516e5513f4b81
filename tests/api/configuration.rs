//! Settings from empty variables and from files (docs/operations/configure.md).

use std::collections::BTreeSet;

use super::*;

/// A database that refuses connections.
const DATABASE: &str = "postgres://user:hunter2@127.0.0.1:1/charts";

/// The variables in the help of a command.
fn variables(program: &str, command: &str) -> BTreeSet<String> {
    let output = IndexerRun::run(program_command(program).args([command, "--help"]).env_clear()).succeeded();
    let names = output.split("[env: ").skip(1);
    let names: BTreeSet<_> =
        names.filter_map(|rest| Some(rest.split_once(['=', ']'])?.0.to_owned())).collect();
    assert!(names.len() > 9, "{names:?}");
    names
}

fn database_url_file(url: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{url}\n")).unwrap();
    file
}

#[tokio::test]
async fn server_ignores_empty_variables_and_reads_files() {
    let index = Index::new(Library::new()).await;
    let file = database_url_file(index.database.url());
    let file = file.path().to_str().unwrap();
    let names = variables("chart-index", "serve");
    let mut settings: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
    settings.push(("DATABASE_URL_FILE", file));
    let options = ServiceOptions { variables: &settings, ..ServiceOptions::default() };
    let service = Service::start_with("", &options);
    assert_eq!(service.client().get("/api/chartsets").await.status, 200);
}

#[tokio::test]
async fn indexer_ignores_empty_variables_and_reads_files() {
    let database = TestDatabase::create().await;
    let file = database_url_file(database.url());
    let names = variables("chart-indexer", "ingest").into_iter().chain(variables("chart-indexer", "follow"));
    let empty: Vec<_> = names.map(|name| (name, "")).collect();
    let command = |arguments: &[&str]| {
        let mut command = program_command("chart-indexer");
        command.args(arguments).envs(empty.iter().cloned());
        command
    };
    let run = IndexerRun::run(command(&["migrate"]).env("DATABASE_URL_FILE", file.path()));
    run.succeeded();
    let library = Library::new();
    let ingest = ["ingest", &library.argument()];
    IndexerRun::run(command(&ingest).env("DATABASE_URL_FILE", file.path())).succeeded();
    let without = IndexerRun::run(&mut command(&ingest));
    assert!(without.code != Some(0) && without.stderr.contains("DATABASE_URL_FILE"), "{}", without.stderr);
}

#[test]
fn unusable_configuration_ends_the_program_with_2() {
    let malformed = database_url_file("mysql://user:hunter2@db/charts");
    let malformed = malformed.path().to_str().unwrap();
    let unreadable = "/nonexistent/database-url";
    let server = ("chart-index", ["serve"].as_slice());
    let indexer = ("chart-indexer", ["migrate"].as_slice());
    for (program, command) in [server, indexer] {
        for (variables, expected) in [
            ([("DATABASE_URL", ""), ("DATABASE_URL_FILE", malformed)], malformed),
            ([("DATABASE_URL", ""), ("DATABASE_URL_FILE", unreadable)], unreadable),
            ([("DATABASE_URL", DATABASE), ("DATABASE_URL_FILE", malformed)], "--database-url"),
        ] {
            let run = IndexerRun::run(program_command(program).args(command).envs(variables));
            assert_eq!(run.code, Some(2), "{}", run.stderr);
            assert!(run.stderr.contains(expected) && !run.stderr.contains("hunter2"), "{}", run.stderr);
        }
    }
}

#[test]
fn contradictory_settings_end_the_program_with_2() {
    const KEY: &str = "MEILISEARCH_API_KEY";
    const CLUSTER: &str = "REDIS_CLUSTER_URLS";
    for (nodes, name, value, expected) in [
        ("http://a:1,http://a:1/", KEY, "hunter2", "MEILISEARCH_URL contains http://a:1 twice"),
        ("http://a:1", KEY, "hunter2,hunter2", "MEILISEARCH_API_KEY has 2 keys for 1 nodes"),
        ("http://a:1", KEY, "hunter2\u{1}", "(MEILISEARCH_API_KEY)"),
        ("http://a:1", CLUSTER, "redis://:hunter2@a:1,redis://:hunter22@b:1", CLUSTER),
        ("http://a:1", CLUSTER, "redis+unix:///a,redis+unix:///b", CLUSTER),
    ] {
        let variables = [("DATABASE_URL", DATABASE), ("MEILISEARCH_URL", nodes), (name, value)];
        assert_invalid("chart-index serve", &variables, expected);
        let nodes_only: &[&str] = &["follow", "sync", "rebuild", "verify", "verify --search"];
        for command in if name == KEY { nodes_only } else { &[] } {
            assert_invalid(&format!("chart-indexer {command}"), &variables, expected);
        }
    }
}

#[test]
fn more_threads_than_cores_of_any_machine_end_the_program_with_2() {
    let variables = [("DATABASE_URL", DATABASE), ("WORKER_THREADS", "100000")];
    assert_invalid("chart-index serve", &variables, "1..=1024");
}

/// The program starts: it may be there later, and most requests do not need it.
#[tokio::test]
async fn what_cannot_be_read_is_in_the_log_at_the_start() {
    let database = TestDatabase::migrated().await;
    // A bucket at an address at which nothing listens.
    let variables = [
        ("EXPORTS_DIR", "/nonexistent/exports"),
        ("OBJECT_STORE_URL", "s3://bucket"),
        ("AWS_ENDPOINT", "http://127.0.0.1:1"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "hunter2"),
    ];
    let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
    let service = Service::start_with(database.url(), &options);
    for setting in ["EXPORTS_DIR", "OBJECT_STORE_URL"] {
        let is_named = |line: &String| line.contains("cannot be read") && line.contains(setting);
        let found = || service.log().into_iter().find(is_named);
        let (line, _) = within(Duration::from_secs(20), async || found()).await;
        assert!(!line.contains("hunter2"), "{line}");
    }
    assert_eq!(service.client().get("/api/chartsets").await.status, 200);
}

#[test]
fn missing_settings_end_the_program_with_2() {
    assert_invalid("chart-index serve", &[], "--database-url");
    for command in [
        "migrate",
        "ingest samples",
        "follow",
        "sync",
        "rebuild",
        "verify",
        "restore chartset 0123456789abcdef",
    ] {
        assert_invalid(
            &format!("chart-indexer {command}"),
            &[("MEILISEARCH_URL", "http://a")],
            "DATABASE_URL",
        );
    }
    for command in ["sync", "rebuild", "verify --search"] {
        assert_invalid(&format!("chart-indexer {command}"), &[("DATABASE_URL", DATABASE)], "MEILISEARCH_URL");
    }
}

/// Asserts that a command ends with 2 and prints what is expected, and no password.
fn assert_invalid(command: &str, variables: &[(&str, &str)], expected: &str) {
    let (program, arguments) = command.split_once(' ').unwrap();
    let mut command_line = program_command(program);
    let run =
        IndexerRun::run(command_line.args(arguments.split(' ')).env_clear().envs(variables.iter().copied()));
    assert_eq!(run.code, Some(2), "{command}: {}", run.stderr);
    assert!(run.stderr.contains(expected) && !run.stderr.contains("hunter2"), "{command}: {}", run.stderr);
}
