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
    assert!(names.len() > 12, "{names:?}");
    names
}

/// A file with the URL of the database.
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
    let names = variables("chart-indexer", "ingest").into_iter().chain(variables("chart-indexer", "sync"));
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
            ([("DATABASE_URL", DATABASE), ("REDIS_URL_FILE", unreadable)], "(REDIS_URL_FILE)"),
            ([("DATABASE_URL", DATABASE), ("DATABASE_URL_FILE", malformed)], "--database-url"),
        ] {
            let run = IndexerRun::run(program_command(program).args(command).envs(variables));
            assert_eq!(run.code, Some(2), "{}", run.stderr);
            assert!(run.stderr.contains(expected) && !run.stderr.contains("hunter2"), "{}", run.stderr);
        }
    }
    let without = IndexerRun::run(program_command("chart-index").arg("serve").env_remove("DATABASE_URL"));
    assert_eq!(without.code, Some(2), "{}", without.stderr);
    assert!(without.stderr.contains("--database-url"), "{}", without.stderr);
}
