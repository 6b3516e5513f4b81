//! `make run`: its output, its data per library, and concurrent runs.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test panics on failure, and prints the output of the script"
)]

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use chart_index_tests::{ChartSpec, Client, Library, send_signal, workspace_root};

/// A running `scripts/run`, which `make run` calls, with the programs that the tests have built.
struct Run {
    child: Child,
    public: SocketAddr,
    output: Vec<String>,
}

impl Run {
    /// Starts the script and waits until the index is ready.
    fn start(folder: &Path, library: &Path) -> Self {
        let public = free_address();
        let mut child = command(folder, library, public).spawn().expect("scripts/run starts");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut output: Vec<String> = Vec::new();
        while !output.last().is_some_and(|line| line.contains("Stop with Ctrl-C")) {
            let line = lines
                .next()
                .unwrap_or_else(|| panic!("the script exited before the index was ready: {output:#?}"));
            eprintln!("{line}");
            output.push(line);
        }
        Self { child, public, output }
    }

    async fn titles(&self) -> Vec<String> {
        let response = Client::new(self.public).get("/api/chartsets?sort=title").await;
        let items = response.json()["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["title"].as_str().unwrap().to_owned()).collect()
    }

    /// The metrics at the address that the script prints.
    async fn metrics(&self) -> String {
        let mut addresses = self
            .output
            .iter()
            .filter_map(|line| line.split_once("Metrics: http://")?.1.split_once("/metrics"));
        let (address, _) =
            addresses.next_back().unwrap_or_else(|| panic!("no address of metrics: {:#?}", self.output));
        let response = Client::new(address.parse().unwrap()).get("/metrics").await;
        assert_eq!(response.status, 200);
        String::from_utf8(response.body).unwrap()
    }

    /// Stops the script and waits until all its processes have ended. Uses SIGTERM: background jobs of a shell
    /// ignore SIGINT, and a script cannot change that.
    fn stop(mut self) {
        send_signal(self.child.id(), "TERM");
        assert_eq!(self.child.wait().unwrap().code(), Some(143));
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // `try_wait` reports the exit after `stop`, so that no other process with this id is signalled.
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let _ = Command::new("kill").args(["-s", "TERM", &self.child.id().to_string()]).status();
            let _ = self.child.wait();
        }
    }
}

fn command(folder: &Path, library: &Path, public: SocketAddr) -> Command {
    let mut command = Command::new(workspace_root().join("scripts/run"));
    command
        .arg(library)
        .env("RUN_DIR", folder)
        .env("RUN_PROGRAMS", programs())
        .env("LISTEN", public.to_string())
        .env_remove("ADMIN_LISTEN")
        .env_remove("METRICS_LISTEN")
        .env_remove("MEILISEARCH_URL")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// The folder of the built programs, `target/debug`: this test is `target/debug/deps/…`.
fn programs() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_path_buf()
}

/// A free address for `LISTEN`. The private ports that follow from it are free as well.
fn free_address() -> SocketAddr {
    loop {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let is_free = |distance| {
            let port = address.port().checked_add(distance);
            port.is_some_and(|port| TcpListener::bind((address.ip(), port)).is_ok())
        };
        if is_free(1010) && is_free(1011) {
            return address;
        }
    }
}

fn library(title: &str) -> Library {
    let library = Library::new();
    library.osu("alpha/1 One/one.osu", ChartSpec { title: title.to_owned(), ..ChartSpec::default() });
    library
}

#[tokio::test]
async fn run_serves_only_the_given_library() {
    let (folder, other_folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (first, second) = (library("First"), library("Second"));

    let run = Run::start(folder.path(), &first.root());
    assert_eq!(run.titles().await, ["First"]);
    assert!(run.metrics().await.contains("process_start_time_seconds"));
    for step in ["-- Starting private servers", "-- Creating the schema", "-- Reading the charts"] {
        assert!(run.output.iter().any(|line| line.starts_with(step)), "{step}: {:#?}", run.output);
    }

    // A second run needs a folder of its own.
    let refused =
        command(folder.path(), &first.root(), free_address()).stderr(Stdio::piped()).output().unwrap();
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("make run is already running with"), "{stderr}");
    assert!(stderr.contains(&run.child.id().to_string()), "the error names the process: {stderr}");
    let beside = Run::start(other_folder.path(), &second.root());
    assert_eq!(beside.titles().await, ["Second"]);
    assert_eq!(run.titles().await, ["First"], "the first run still has its servers");
    beside.stop();
    run.stop();

    let run = Run::start(folder.path(), &second.root());
    assert_eq!(run.titles().await, ["Second"]);
    run.stop();
}

/// Its server would end after the ingest, and another program answer the health check.
#[test]
fn address_in_use_is_found_before_the_ingest() {
    let folder = tempfile::tempdir().unwrap();
    let library = library("Only");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    for setting in ["LISTEN", "ADMIN_LISTEN", "METRICS_LISTEN"] {
        let mut command = command(folder.path(), &library.root(), free_address());
        let run = command.env(setting, &address).stderr(Stdio::piped()).output().unwrap();
        let [stdout, stderr] =
            [run.stdout, run.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert_eq!((run.status.code(), &*stdout), (Some(1), ""), "{setting}: {stderr}");
        assert!(stderr.starts_with(&format!("{setting}: a program listens on {address}")), "{stderr}");
    }
}

#[test]
fn address_without_a_host_or_with_a_port_that_is_too_high_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let library = library("Only");
    for address in [":8180", "8180", "127.0.0.1:", "127.0.0.1:64525"] {
        let mut command = command(folder.path(), &library.root(), free_address());
        let run = command.env("LISTEN", address).stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{address}: {stderr}");
        assert!(stderr.starts_with(&format!("LISTEN={address}: accepts an address")), "{stderr}");
    }
}
