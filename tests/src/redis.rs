//! Redis servers of a test's own, for tests that take them away.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A Redis server that may be stopped, killed, frozen and started again. Ended with the value.
#[derive(Debug)]
pub struct PrivateRedis {
    /// Where it listens on the loopback address.
    pub port: u16,
    directory: TempDir,
    arguments: Vec<String>,
    process: Child,
}

impl PrivateRedis {
    /// Starts a server with these arguments besides the usual ones, and waits until it accepts connections.
    pub fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary folder");
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        // Another process may take a port between the look and the start: then the server says so and ends.
        loop {
            let port = free_port();
            if let Some(process) = spawn(port, directory.path(), &arguments) {
                return Self { port, directory, arguments, process };
            }
        }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The id of its process.
    pub fn process_id(&self) -> String {
        self.process.id().to_string()
    }

    /// Where the server keeps its files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Runs a command with `redis-cli` and gives what it prints.
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

    /// How often a command was called since the start, by `INFO commandstats`.
    pub fn calls(&self, command: &str) -> u64 {
        let stats = self.cli(&["INFO", "commandstats"]);
        let prefix = format!("cmdstat_{command}:calls=");
        let calls =
            stats.lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next()?.parse().ok());
        calls.unwrap_or(0)
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts it again on its port, empty.
    pub fn restart(&mut self) {
        self.kill();
        self.process =
            spawn(self.port, self.directory.path(), &self.arguments).expect("the port was its own");
    }

    /// Stops its process where it stands: connections stay open, nothing answers.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill reaches the server");
    }
}

impl Drop for PrivateRedis {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A logical database of its own on the Redis server of the test run (`TEST_REDIS_URL`), empty.
#[derive(Debug)]
pub struct TestRedis {
    url: String,
}

impl TestRedis {
    /// Takes the next database of the server that `make test` started.
    pub fn create() -> Self {
        let server = std::env::var("TEST_REDIS_URL")
            .expect("TEST_REDIS_URL is not set: run the tests with `make test`");
        let next = Command::new("redis-cli").args(["-u", &server, "INCR", "test_databases"]).output();
        let next = String::from_utf8(next.expect("redis-cli is installed").stdout).expect("UTF-8");
        let number: u32 = next.trim().parse().expect("redis counts");
        Self { url: format!("{server}/{number}") }
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// A Redis Cluster of three primaries that share the keys.
#[derive(Debug)]
pub struct PrivateRedisCluster {
    /// Its nodes.
    pub nodes: Vec<PrivateRedis>,
}

impl PrivateRedisCluster {
    /// Starts the nodes, and waits until each of them knows that the cluster is complete.
    pub fn start() -> Self {
        let arguments = ["--cluster-enabled", "yes", "--appendonly", "yes", "--appendfsync", "no"];
        let nodes: Vec<_> = (0..3).map(|_| PrivateRedis::start(&arguments)).collect();
        let created = Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)))
            .args(["--cluster-replicas", "0", "--cluster-yes"])
            .stdout(Stdio::null())
            .status();
        assert!(created.is_ok_and(|status| status.success()), "the cluster is created");
        for node in &nodes {
            while !node.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok") {
                std::thread::yield_now();
            }
        }
        Self { nodes }
    }

    /// The addresses of its nodes, as `REDIS_CLUSTER_URLS` takes them.
    pub fn urls(&self) -> String {
        self.nodes.iter().map(PrivateRedis::url).collect::<Vec<_>>().join(",")
    }
}

/// A port below those that the system gives to outgoing connections, free with the one 10,000 above it, which a
/// cluster node takes for its bus.
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

/// Starts the process and waits for it to say that it is ready. `None` if it ends instead.
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
            // A server whose output nobody reads would stop when the pipe is full.
            std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
            return Some(process);
        }
        line.clear();
    }
    let _ = process.wait();
    None
}
