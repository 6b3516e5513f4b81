//! Redis servers and clusters for single tests, which may stop them.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::programs::send_signal;

/// A Redis server that a test may kill, freeze and restart. Killed when dropped.
#[derive(Debug)]
pub struct PrivateRedis {
    /// The port on the loopback address.
    pub port: u16,
    directory: TempDir,
    arguments: Vec<String>,
    process: Child,
}

impl PrivateRedis {
    /// Starts a server with these arguments added to the usual ones, and waits until it accepts connections.
    pub fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary folder");
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        // Another process may take the port before the server starts: then the server exits.
        loop {
            let port = free_port();
            if let Some(process) = spawn(port, directory.path(), &arguments) {
                return Self { port, directory, arguments, process };
            }
        }
    }

    /// The URL of the server, for `REDIS_URL`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The process id of the server.
    pub fn process_id(&self) -> String {
        self.process.id().to_string()
    }

    /// The folder with the files of the server.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Runs a command with `redis-cli`, and returns its output.
    pub fn cli(&self, command: &[&str]) -> String {
        let output = Command::new("redis-cli")
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(command)
            .stdin(Stdio::null())
            .output()
            .expect("redis-cli is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// The number of calls of a command since the start, by `INFO commandstats`.
    pub fn calls(&self, command: &str) -> u64 {
        let stats = self.cli(&["INFO", "commandstats"]);
        let prefix = format!("cmdstat_{command}:calls=");
        let calls =
            stats.lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next()?.parse().ok());
        calls.unwrap_or(0)
    }

    /// Kills the server, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Restarts the server on its port, without data.
    pub fn restart(&mut self) {
        self.kill();
        self.process =
            spawn(self.port, self.directory.path(), &self.arguments).expect("the port was its own");
    }

    /// Stops the process: connections stay open, but the server does not reply.
    pub fn freeze(&self) {
        send_signal(self.process.id(), "STOP");
    }

    /// Continues a frozen process.
    pub fn thaw(&self) {
        send_signal(self.process.id(), "CONT");
    }
}

impl Drop for PrivateRedis {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An empty logical database on the Redis server of the test run (`TEST_REDIS_URL`).
#[derive(Debug)]
pub struct TestRedis {
    url: String,
}

impl TestRedis {
    /// Selects the next unused database.
    pub fn create() -> Self {
        let server = std::env::var("TEST_REDIS_URL")
            .expect("TEST_REDIS_URL is not set: run the tests with `make test`");
        let next = Command::new("redis-cli").args(["-u", &server, "INCR", "test_databases"]).output();
        let next = String::from_utf8(next.expect("redis-cli is installed").stdout).expect("UTF-8");
        let number: u32 = next.trim().parse().expect("redis counts");
        Self { url: format!("{server}/{number}") }
    }

    /// The URL of the database, for `REDIS_URL`.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// A Redis Cluster of three primaries, and possibly a replica of each.
#[derive(Debug)]
pub struct PrivateRedisCluster {
    /// The three primaries, each with a third of the slots in this order, then the replicas.
    pub nodes: Vec<PrivateRedis>,
}

impl PrivateRedisCluster {
    /// Starts three primaries, and waits until each of them reports that the cluster is complete.
    pub fn start() -> Self {
        Self::start_with(0, &[])
    }

    /// Starts nodes with these arguments added to the usual ones, with this number of replicas for each
    /// primary, and waits until each of them reports that the cluster is complete.
    pub fn start_with(replicas: usize, arguments: &[&str]) -> Self {
        // While one primary is down, the others go on.
        let cluster = ["--cluster-enabled", "yes", "--cluster-require-full-coverage", "no"];
        let arguments = [&cluster[..], &["--appendonly", "yes", "--appendfsync", "no"], arguments].concat();
        let nodes: Vec<_> = (0..3 + 3 * replicas).map(|_| PrivateRedis::start(&arguments)).collect();
        let created = Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)))
            .args(["--cluster-replicas", &replicas.to_string(), "--cluster-yes"])
            .stdout(Stdio::null())
            .status();
        assert!(created.is_ok_and(|status| status.success()), "the cluster is created");
        let is_complete = |node: &PrivateRedis| {
            let info = node.cli(&["CLUSTER", "INFO"]);
            ["cluster_state:ok", "cluster_slots_ok:16384"].iter().all(|expected| info.contains(expected))
        };
        for (number, node) in nodes.iter().enumerate() {
            let expected = if number < 3 { "role:master" } else { "master_link_status:up" };
            while !is_complete(node) || !node.cli(&["INFO", "replication"]).contains(expected) {}
        }
        Self { nodes }
    }

    /// The URLs of the nodes, as in `REDIS_CLUSTER_URLS`.
    pub fn urls(&self) -> String {
        self.nodes.iter().map(PrivateRedis::url).collect::<Vec<_>>().join(",")
    }
}

/// A free port below the ephemeral ports, for which the port 10,000 above is free as well: that is the bus of a
/// cluster node.
fn free_port() -> u16 {
    loop {
        let port = fastrand::u16(10_000..22_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok()
            && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok()
        {
            return port;
        }
    }
}

/// Starts the process, and waits until it reports that it is ready. `None` if it exits instead.
fn spawn(port: u16, directory: &Path, arguments: &[String]) -> Option<Child> {
    let tls = arguments.iter().any(|argument| argument == "--tls-cert-file");
    let ports = if tls { ["--port", "0", "--tls-port"] } else { ["--save", "", "--port"] };
    let mut process = Command::new("redis-server")
        .args(ports)
        .arg(port.to_string())
        .args(["--bind", "127.0.0.1", "--dir"])
        .arg(directory)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("redis-server is installed");
    let mut output = BufReader::new(process.stdout.take().expect("the output is piped"));
    let mut line = String::new();
    while output.read_line(&mut line).expect("a readable output") > 0 {
        if line.contains("Ready to accept connections") {
            // The server would block when the pipe of its output is full.
            std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
            return Some(process);
        }
        line.clear();
    }
    let _ = process.wait();
    None
}
