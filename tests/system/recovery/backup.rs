//! Dumps of a database, as docs/operations/recovery.md makes and restores them.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use chart_index_system_tests::run;

/// A dump in the custom format of `pg_dump`. Dropping the value deletes it.
pub(crate) struct Dump {
    folder: tempfile::TempDir,
}

impl Dump {
    /// Dumps a database. Returns the time it took as well.
    pub(crate) fn of(database_url: &str) -> (Self, Duration) {
        let dump = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        let mut command = Command::new("pg_dump");
        command
            .args(["--format=custom", "--compress=1", "--dbname", database_url, "--file"])
            .arg(dump.file());
        let duration = timed(&mut command);
        (dump, duration)
    }

    /// Restores the dump into an empty database with this number of jobs, and stops at the first error. Returns
    /// the time it took.
    pub(crate) fn restore(&self, database_url: &str, jobs: u32) -> Duration {
        let mut command = Command::new("pg_restore");
        command.args(["--exit-on-error", "--jobs", &jobs.to_string(), "--dbname", database_url]);
        timed(command.arg(self.file()))
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.file().metadata().expect("a dump").len()
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("chart_index.dump")
    }
}

/// Runs a command that has to succeed. Returns the time it took.
fn timed(command: &mut Command) -> Duration {
    let start = Instant::now();
    run(command);
    start.elapsed()
}
