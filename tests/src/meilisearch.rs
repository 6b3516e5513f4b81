//! Private Meilisearch servers. No package registry has Meilisearch, so tests use the one on the PATH, if any.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::programs::{fixed_address, send_signal};

/// Maximum time until a server listens.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// A Meilisearch server that a test may kill, freeze and restart. Dropping the value ends it and deletes its
/// data.
#[derive(Debug)]
pub struct PrivateMeilisearch {
    folder: tempfile::TempDir,
    program: PathBuf,
    address: SocketAddr,
    arguments: Vec<String>,
    child: Mutex<Child>,
}

impl PrivateMeilisearch {
    /// Starts an empty server on a free loopback port. Tests that call this are `#[ignore]`d, because it panics
    /// if there is no `meilisearch` on the PATH.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with additional arguments.
    pub fn start_with(arguments: &[&str]) -> Self {
        let program = Self::program().expect("a meilisearch on the PATH");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let address = fixed_address();
        let arguments = arguments.iter().map(ToString::to_string).collect();
        let child = spawn(&program, folder.path(), address, &arguments);
        let server = Self { folder, program, address, arguments, child: Mutex::new(child) };
        server.wait_until_it_listens();
        server
    }

    /// The `meilisearch` on the PATH.
    pub fn program() -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .map(|folder| folder.join("meilisearch"))
            .find(|candidate| candidate.is_file())
    }

    /// The base URL of the server.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The output of `meilisearch --version`.
    pub fn version(&self) -> String {
        let output = Command::new(&self.program).arg("--version").output().expect("meilisearch starts");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Kills the server with SIGKILL, like a crash, and waits for its end.
    pub fn kill(&self) {
        let mut child = self.child.lock().expect("no test panicked");
        child.kill().expect("the server is killed");
        child.wait().expect("the server has ended");
    }

    /// Pauses the server (SIGSTOP): connections stay open, and it does not respond.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Resumes a frozen server.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    /// Restarts a killed server, with its data and on its port.
    pub fn restart(&self) {
        let child = spawn(&self.program, self.folder.path(), self.address, &self.arguments);
        *self.child.lock().expect("no test panicked") = child;
        self.wait_until_it_listens();
    }

    fn signal(&self, signal: &str) {
        send_signal(self.child.lock().expect("no test panicked").id(), signal);
    }

    fn wait_until_it_listens(&self) {
        let start = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            let log = self.folder.path().join("log");
            assert!(
                start.elapsed() < START_TIMEOUT,
                "meilisearch does not listen: {:?}",
                std::fs::read_to_string(log)
            );
            std::thread::yield_now();
        }
    }
}

impl Drop for PrivateMeilisearch {
    fn drop(&mut self) {
        if let Ok(child) = self.child.get_mut() {
            // SIGKILL ends a frozen server, too.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(program: &Path, folder: &Path, address: SocketAddr, arguments: &Vec<String>) -> Child {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("log"));
    let log = log.expect("a log");
    Command::new(program)
        .current_dir(folder)
        .args(["--db-path", "data", "--http-addr", &address.to_string(), "--no-analytics"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a log"))
        .stderr(log)
        .spawn()
        .expect("meilisearch starts")
}
