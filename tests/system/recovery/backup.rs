//! Dumps of a database, as docs/operations/recovery.md makes and restores them.

use std::path::PathBuf;
use std::process::Command;

use chart_index_system_tests::run;

/// A dump in the custom format of `pg_dump`. Dropping the value deletes it.
pub(crate) struct Dump {
    folder: tempfile::TempDir,
}

impl Dump {
    /// Dumps a database.
    pub(crate) fn of(database_url: &str) -> Self {
        let dump = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        let mut command = Command::new("pg_dump");
        command
            .args(["--format=custom", "--compress=1", "--dbname", database_url, "--file"])
            .arg(dump.file());
        run(&mut command);
        dump
    }

    /// Restores the dump into an empty database with this number of jobs, and stops at the first error.
    pub(crate) fn restore(&self, database_url: &str, jobs: u32) {
        let mut command = Command::new("pg_restore");
        command.args(["--exit-on-error", "--jobs", &jobs.to_string(), "--dbname", database_url]);
        run(command.arg(self.file()));
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("chart_index.dump")
    }
}
