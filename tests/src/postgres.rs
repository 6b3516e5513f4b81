//! A PostgreSQL server of a test's own, for tests that take it away.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::workspace_root;

/// A PostgreSQL server that may be stopped, killed and frozen. Stopped with the value, its data deleted.
#[derive(Debug)]
pub struct PrivatePostgres {
    folder: tempfile::TempDir,
    url: String,
}

impl PrivatePostgres {
    /// Starts a new, empty server on a free port.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// Starts one that logs every statement, for [`statements`](Self::statements).
    pub fn start_logging() -> Self {
        Self::start_with("-c log_min_duration_statement=0")
    }

    fn start_with(options: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut server = Self { folder, url: String::new() };
        server.run_script_with("up", &[("POSTGRES_OPTIONS", options)]);
        let env =
            std::fs::read_to_string(server.folder.path().join("env")).expect("the script wrote its env");
        let url = env.lines().find_map(|line| line.strip_prefix("DATABASE_URL="));
        url.expect("the env has the address").clone_into(&mut server.url);
        server
    }

    /// The address of its database `chart_index`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How many statements with this text in them the server has run: of one that logs them.
    pub fn statements(&self, text: &str) -> usize {
        let log = std::fs::read_to_string(self.folder.path().join("postgres.log")).expect("a log");
        // An entry begins with the time that the statement took; its text may go over several lines.
        let entries = log.split("LOG:  duration: ").filter(|entry| entry.contains(" execute "));
        entries.filter(|entry| entry.contains(text)).count()
    }

    /// Ends the server at once, as a crash would, and waits until none of its processes is left: only then can it
    /// be started again.
    pub fn kill(&self) {
        for process in self.signal_all("KILL") {
            while Path::new("/proc").join(&process).exists() {
                std::thread::yield_now();
            }
        }
    }

    /// Stops every process of the server where it stands: connections stay open and nothing answers.
    pub fn freeze(&self) {
        let _ = self.signal_all("STOP");
    }

    /// Lets a frozen server go on.
    pub fn thaw(&self) {
        let _ = self.signal_all("CONT");
    }

    /// Shuts the server down and copies its data, as a backup of a stopped machine does.
    pub fn stop_and_copy(&self) -> DataCopy {
        self.run_script("down");
        let folder = tempfile::tempdir().expect("a temporary folder");
        copy(&self.folder.path().join("postgres"), &folder.path().join("postgres"));
        DataCopy { folder }
    }

    /// Shuts the server down and puts a copy of its data in the place of the data, which is lost.
    pub fn stop_and_restore(&self, copied: &DataCopy) {
        self.run_script("down");
        let data = self.folder.path().join("postgres");
        std::fs::remove_dir_all(&data).expect("the data is deleted");
        copy(&copied.folder.path().join("postgres"), &data);
    }

    /// Starts the server again on the port it had.
    pub fn restart(&self) {
        let port = self.url.rsplit_once(':').and_then(|(_, rest)| rest.split_once('/')).expect("a port").0;
        self.run_script_with("up", &[("POSTGRES_PORT", port)]);
    }

    fn run_script(&self, verb: &str) {
        self.run_script_with(verb, &[]);
    }

    fn run_script_with(&self, verb: &str, variables: &[(&str, &str)]) {
        let output = Command::new(workspace_root().join("scripts/servers"))
            .arg(verb)
            .arg(self.folder.path())
            .env("SERVERS", "postgres")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .output()
            .expect("scripts/servers starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "scripts/servers {verb}: {stderr}");
    }

    /// Signals the server and all its children, found by the process id in its data folder, and gives their ids.
    fn signal_all(&self, signal: &str) -> Vec<String> {
        let data = self.folder.path().join("postgres");
        let Some(server) = server_process(&data) else { return Vec::new() };
        let mut processes = children(&server);
        processes.insert(0, server);
        let status =
            Command::new("kill").arg("-s").arg(signal).args(&processes).stderr(Stdio::null()).status();
        assert!(status.is_ok(), "kill starts");
        processes
    }
}

/// The data of a [`PrivatePostgres`] at some time. Deleted with the value.
#[derive(Debug)]
pub struct DataCopy {
    folder: tempfile::TempDir,
}

/// Copies a folder with the owners and modes that PostgreSQL insists on.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").args([from, to]).status().expect("cp starts");
    assert!(status.success(), "{} is copied", from.display());
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        self.thaw();
        self.run_script("down");
    }
}

fn server_process(data: &Path) -> Option<String> {
    let pid_file = std::fs::read_to_string(data.join("postmaster.pid")).ok()?;
    pid_file.lines().next().map(str::to_owned)
}

fn children(server: &str) -> Vec<String> {
    let listed =
        std::fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap_or_default();
    listed.split_whitespace().map(str::to_owned).collect()
}
