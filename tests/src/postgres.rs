//! Private PostgreSQL servers, for tests of outages.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::workspace_root;

/// A PostgreSQL server that a test may kill, freeze and restart. Dropping the value stops it and deletes its
/// data, unless it was started in a folder.
#[derive(Debug)]
pub struct PrivatePostgres {
    folder: DataFolder,
    url: String,
}

/// Where a server has its data.
#[derive(Debug)]
enum DataFolder {
    Temporary(tempfile::TempDir),
    Permanent(PathBuf),
}

/// Options of a server that does not wait for the disk.
const WITHOUT_DURABILITY: &str =
    "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_wal_size=8GB";

impl PrivatePostgres {
    /// Starts an empty server on a free port.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// Starts a server that logs every statement, for [`statements`](Self::statements).
    pub fn start_logging() -> Self {
        Self::start_with("-c log_min_duration_statement=0")
    }

    /// Starts a server that does not wait for the disk, for large data that a test fills in.
    pub fn start_without_durability() -> Self {
        Self::start_with(WITHOUT_DURABILITY)
    }

    /// Starts a streaming standby of this server, which logs every statement.
    #[must_use]
    pub fn start_standby(&self) -> Self {
        let standby_of = ("POSTGRES_STANDBY_OF", self.port());
        let options = ("POSTGRES_OPTIONS", "-c log_min_duration_statement=0");
        Self::start_on(temporary_folder(), &[standby_of, options])
    }

    /// Starts a server on the data in a folder. The folder is created if it does not exist, and stays when the
    /// value is dropped. It does not wait for the disk.
    pub fn start_in(folder: &Path) -> Self {
        let options = ("POSTGRES_OPTIONS", WITHOUT_DURABILITY);
        Self::start_on(DataFolder::Permanent(folder.to_path_buf()), &[options])
    }

    fn start_with(options: &str) -> Self {
        Self::start_on(temporary_folder(), &[("POSTGRES_OPTIONS", options)])
    }

    fn start_on(folder: DataFolder, variables: &[(&str, &str)]) -> Self {
        let mut server = Self { folder, url: String::new() };
        server.run_script_with("up", variables);
        let env =
            std::fs::read_to_string(server.folder.path().join("env")).expect("the script wrote its env");
        let url = env.lines().find_map(|line| line.strip_prefix("DATABASE_URL="));
        url.expect("the env has the address").clone_into(&mut server.url);
        server
    }

    /// The URL of its database `chart_index`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The id of the process that started all others of the server; `None` once it has ended.
    pub fn process_id(&self) -> Option<u32> {
        server_process(&self.folder.path().join("postgres"))?.parse().ok()
    }

    /// The number of statements containing this text that a logging server has run.
    pub fn statements(&self, text: &str) -> usize {
        let log = self.log();
        // An entry starts with the duration of the statement, whose text may span several lines.
        let entries = log.split("LOG:  duration: ").filter(|entry| entry.contains(" execute "));
        entries.filter(|entry| entry.contains(text)).count()
    }

    /// The warnings in its log.
    pub fn warnings(&self) -> Vec<String> {
        self.log().lines().filter(|line| line.contains(" WARNING: ")).map(str::to_owned).collect()
    }

    /// Its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("postgres.log")).expect("a log")
    }

    /// Kills the server with SIGKILL, like a crash, and waits for the end of all its processes: it cannot be
    /// restarted before.
    pub fn kill(&self) {
        // A stopped server starts no process for a client that connects between the listing of its children and
        // the kill.
        if let Some(server) = self.signal_all("STOP").first() {
            while !is_stopped(server) {
                std::thread::yield_now();
            }
        }
        for process in self.signal_all("KILL") {
            while Path::new("/proc").join(&process).exists() {
                std::thread::yield_now();
            }
        }
    }

    /// Pauses all processes of the server (SIGSTOP): connections stay open, and it does not respond.
    pub fn freeze(&self) {
        let _ = self.signal_all("STOP");
    }

    /// Resumes a frozen server.
    pub fn thaw(&self) {
        let _ = self.signal_all("CONT");
    }

    /// Shuts the server down.
    pub fn stop(&self) {
        self.run_script("down");
    }

    /// Shuts the server down and copies its data, like a backup of a stopped machine.
    pub fn stop_and_copy(&self) -> DataCopy {
        self.run_script("down");
        let folder = tempfile::tempdir().expect("a temporary folder");
        copy(&self.folder.path().join("postgres"), &folder.path().join("postgres"));
        DataCopy { folder }
    }

    /// Shuts the server down and replaces its data by a copy.
    pub fn stop_and_restore(&self, copied: &DataCopy) {
        self.run_script("down");
        let data = self.folder.path().join("postgres");
        std::fs::remove_dir_all(&data).expect("the data is deleted");
        copy(&copied.folder.path().join("postgres"), &data);
    }

    /// Restarts the server on its port.
    pub fn restart(&self) {
        self.run_script_with("up", &[("POSTGRES_PORT", self.port())]);
    }

    /// Restarts a stopped server on its port as a recovery from backups does that ends at once: on the next
    /// timeline.
    pub fn restart_on_new_timeline(&self) {
        let data = self.folder.path().join("postgres");
        // Owned by the user of the server, like the file that it is copied from.
        let signal = data.join("recovery.signal");
        copy(&data.join("PG_VERSION"), &signal);
        let recovery = "-c restore_command=false -c recovery_target_timeline=current";
        self.run_script_with("up", &[("POSTGRES_PORT", self.port()), ("POSTGRES_OPTIONS", recovery)]);
        while signal.exists() {
            std::thread::yield_now();
        }
    }

    fn port(&self) -> &str {
        self.url.rsplit_once(':').and_then(|(_, rest)| rest.split_once('/')).expect("a port").0
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

    /// Sends a signal to the server, found by the pid file in its data folder, and to its children; returns
    /// their ids.
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

/// Next to the servers of the test run, which are in memory if there is room.
fn temporary_folder() -> DataFolder {
    let parent = std::env::var_os("TEST_SERVERS").map_or_else(std::env::temp_dir, PathBuf::from);
    DataFolder::Temporary(tempfile::tempdir_in(parent).expect("a temporary folder"))
}

impl DataFolder {
    fn path(&self) -> &Path {
        match self {
            Self::Temporary(folder) => folder.path(),
            Self::Permanent(folder) => folder,
        }
    }
}

/// A copy of the data of a [`PrivatePostgres`]. Dropping the value deletes it.
#[derive(Debug)]
pub struct DataCopy {
    folder: tempfile::TempDir,
}

/// Copies a folder with owners and modes, which PostgreSQL checks.
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

fn is_stopped(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with(['T', 't', 'Z', 'X']))
}

fn children(server: &str) -> Vec<String> {
    let listed =
        std::fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap_or_default();
    listed.split_whitespace().map(str::to_owned).collect()
}
