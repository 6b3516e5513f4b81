//! One PostgreSQL database per test.

use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::programs::indexer;
use crate::samples;

/// A database on the server of the test run (`TEST_DATABASE_URL`). Dropping the value drops the
/// database.
#[derive(Debug)]
pub struct TestDatabase {
    name: String,
    url: String,
    admin_url: String,
}

impl TestDatabase {
    /// Creates an empty database on the server that `make test` starts.
    #[expect(clippy::unused_async, reason = "awaited like every other set-up step")]
    pub async fn create() -> Self {
        Self::create_on(&server_url())
    }

    /// Creates a migrated database on the server that `make test` starts. It is a copy of one that the program
    /// that was built last migrates once per process, and that stays on the server.
    #[expect(clippy::unused_async, reason = "awaited like every other set-up step")]
    pub async fn migrated() -> Self {
        static MIGRATED: OnceLock<String> = OnceLock::new();
        Self::copy_of_filled(&MIGRATED, "migrated", &[&["migrate"]])
    }

    /// The same with the sample library, which is ingested once per process.
    #[expect(clippy::unused_async, reason = "awaited like every other set-up step")]
    pub async fn with_samples() -> Self {
        static WITH_SAMPLES: OnceLock<String> = OnceLock::new();
        let samples = samples();
        let ingest = ["ingest", samples.to_str().expect("a readable path")];
        Self::copy_of_filled(&WITH_SAMPLES, "samples", &[&["migrate"], &ingest])
    }

    fn copy_of_filled(filled: &OnceLock<String>, kind: &str, commands: &[&[&str]]) -> Self {
        let admin_url = server_url();
        let filled = filled.get_or_init(|| {
            let name = format!("{kind}_{}", std::process::id());
            psql(&admin_url, &format!("DROP DATABASE IF EXISTS {name}"));
            psql(&admin_url, &format!("CREATE DATABASE {name} TEMPLATE template0"));
            for command in commands {
                indexer(&url_of(&admin_url, &name), command).succeeded();
            }
            name
        });
        Self::copy_of(filled, &admin_url)
    }

    /// Creates an empty database on another server.
    pub fn create_on(admin_url: &str) -> Self {
        Self::copy_of("template0", admin_url)
    }

    fn copy_of(template: &str, admin_url: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        psql(admin_url, &format!("CREATE DATABASE {name} TEMPLATE {template}"));
        Self { url: url_of(admin_url, &name), name, admin_url: admin_url.to_owned() }
    }

    /// The URL that the programs connect to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs a statement with `psql` and returns its output, unaligned and without headers.
    pub fn psql(&self, statement: &str) -> String {
        psql(&self.url, statement)
    }

    /// The number of locks in this database that a condition on `pg_locks` selects. Tables have the same ids in
    /// all copies, so others may be of other tests.
    pub fn locks(&self, condition: &str) -> u32 {
        let count = self.psql(&format!(
            "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database
             WHERE datname = current_database() AND {condition}"
        ));
        count.parse().expect("a number")
    }

    /// Runs a statement on any database and returns its output.
    pub fn psql_on(url: &str, statement: &str) -> String {
        psql(url, statement)
    }

    /// Runs statements one by one, as a script does; the standard error if one of them fails.
    pub fn try_psql(&self, statements: &[&str]) -> Result<(), String> {
        let mut command = psql_command(&self.url, "");
        command.args(statements.iter().flat_map(|statement| ["-c", statement]));
        let output = command.output().expect("psql starts");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(stderr) }
    }

    /// Drops the database with its connections and creates it again, empty.
    pub fn recreate(&self) {
        psql(&self.admin_url, &format!("DROP DATABASE {} WITH (FORCE)", self.name));
        psql(&self.admin_url, &format!("CREATE DATABASE {} TEMPLATE template0", self.name));
    }

    /// Starts `psql` with long-running statements, without waiting for them.
    pub fn start_psql(&self, statements: &str) -> Child {
        let mut command = psql_command(&self.url, statements);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("psql starts")
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // Fails if the test has killed the server, and the database is gone with it.
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let mut command = psql_command(&self.admin_url, &statement);
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// The URL of another database of the server.
fn url_of(admin_url: &str, name: &str) -> String {
    let (server, _) = admin_url.rsplit_once('/').expect("the URL ends in a database name");
    format!("{server}/{name}")
}

fn server_url() -> String {
    std::env::var("TEST_DATABASE_URL").expect("TEST_DATABASE_URL is not set: run the tests with `make test`")
}

fn psql(url: &str, statement: &str) -> String {
    let output = psql_command(url, statement).output().expect("psql starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "psql failed: {stderr}\n{statement}");
    String::from_utf8(output.stdout).expect("psql writes UTF-8").trim_end().to_owned()
}

fn psql_command(url: &str, statement: &str) -> Command {
    let mut command = Command::new("psql");
    command.args(["--no-psqlrc", "--quiet", "-tA", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statement]);
    command.env("PGCONNECT_TIMEOUT", "5").stdin(Stdio::null());
    command
}
