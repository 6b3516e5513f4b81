//! One `redis-server` process.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use chart_index_ratelimit::redis_link::{RedisEndpoint, RedisLinkConfig};
use redis::aio::MultiplexedConnection;
use tempfile::TempDir;

/// A server that ends with this value.
pub(crate) struct RedisServer {
    pub(crate) port: u16,
    directory: TempDir,
    arguments: Vec<String>,
    process: Child,
}

impl RedisServer {
    /// Starts a server with these arguments besides the usual ones, and waits until it accepts connections.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        // Another process may take a port between the look and the start: then the server says so and ends.
        loop {
            let port = free_port();
            if let Some(process) = spawn(port, directory.path(), &arguments) {
                return Self { port, directory, arguments, process };
            }
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The link of a replica, with its ordinary time-outs.
    pub(crate) fn link(&self) -> RedisLinkConfig {
        RedisLinkConfig::new(RedisEndpoint::Single(self.url().parse().unwrap()))
    }

    /// A connection for the test itself.
    pub(crate) async fn connection(&self) -> MultiplexedConnection {
        redis::Client::open(self.url()).unwrap().get_multiplexed_async_connection().await.unwrap()
    }

    /// Ends it at once, as a crash does.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts it again on its port, empty.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.process =
            spawn(self.port, self.directory.path(), &self.arguments).expect("the port was its own");
    }

    /// Stops its process where it stands: connections stay open, nothing answers.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.process.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
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
fn spawn(port: u16, directory: &std::path::Path, arguments: &[String]) -> Option<Child> {
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
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    while output.read_line(&mut line).unwrap() > 0 {
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
