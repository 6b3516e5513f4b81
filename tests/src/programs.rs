//! The programs `chart-index` and `chart-indexer`, as child processes.

use std::io::{BufRead, BufReader, Lines};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::net::{Shutdown, shutdown};

use crate::{Client, workspace_root};

/// A running `chart-index serve`. Dropping the value kills it.
#[derive(Debug)]
pub struct Service {
    child: Child,
    public: SocketAddr,
    private: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
    /// The log, if it is not read: kept open, so that the pipe fills up.
    _unread: Option<Lines<BufReader<ChildStderr>>>,
}

/// How to start a service.
#[derive(Debug, Default)]
pub struct ServiceOptions<'a> {
    /// Arguments after `serve`.
    pub arguments: &'a [&'a str],
    /// Environment variables in addition to the defaults of the harness.
    pub variables: &'a [(&'a str, &'a str)],
    /// The addresses of the listeners; by default on free ports.
    pub addresses: Option<ReplicaAddresses>,
    /// A command that starts the service, such as `prlimit --nofile=512`.
    pub launcher: &'a [&'a str],
    /// The program, by default the `chart-index` of this build.
    pub program: Option<&'a Path>,
    /// Stops reading the log once the service listens.
    pub leave_log_unread: bool,
}

/// The listeners of a replica, on ports that a restarted replica gets again.
#[derive(Debug, Clone, Copy)]
pub struct ReplicaAddresses {
    /// The public listener.
    pub public: SocketAddr,
    /// The private listener, which has the health endpoints.
    pub private: SocketAddr,
}

impl ReplicaAddresses {
    /// Two free ports.
    pub fn choose() -> Self {
        Self { public: fixed_address(), private: fixed_address() }
    }
}

impl Service {
    /// Starts the service and waits until it listens.
    pub fn start(database_url: &str) -> Self {
        Self::start_with(database_url, &ServiceOptions::default())
    }

    /// Starts the service with these environment variables and waits until it listens.
    pub fn with_variables(database_url: &str, variables: &[(&str, &str)]) -> Self {
        Self::start_with(database_url, &ServiceOptions { variables, ..ServiceOptions::default() })
    }

    /// Starts the service with options and waits until it listens.
    pub fn start_with(database_url: &str, options: &ServiceOptions<'_>) -> Self {
        Self::spawn(&mut serve_command(database_url, options), options.leave_log_unread)
    }

    /// Starts a command that becomes the service (by exec) and logs JSON, and waits until it listens.
    pub fn start_command(command: &mut Command) -> Self {
        Self::spawn(command, false)
    }

    fn spawn(command: &mut Command, leave_log_unread: bool) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("chart-index starts");
        let mut log = BufReader::new(child.stderr.take().expect("the log is piped")).lines();
        let (lines, public, private) = read_until_listening(&mut log);
        let lines = Arc::new(Mutex::new(lines));
        let unread = if leave_log_unread { Some(log) } else { read_log(log, &lines) };
        Self { child, public, private, log: lines, _unread: unread }
    }

    /// The lines logged so far.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().expect("no test panicked").clone()
    }

    /// The process id of the service.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// A client of the public listener.
    pub fn client(&self) -> Client {
        Client::new(self.public)
    }

    /// A client of the private listener, which has the health endpoints.
    pub fn private_client(&self) -> Client {
        Client::new(self.private)
    }

    /// The address of the public listener.
    pub fn address(&self) -> SocketAddr {
        self.public
    }

    /// The address on which `/readyz` and `/metrics` are served.
    pub fn private_address(&self) -> SocketAddr {
        self.private
    }

    /// Sends SIGTERM, as an orchestrator does.
    pub fn terminate(&self) {
        send_signal(self.child.id(), "TERM");
    }

    /// Waits for the end of the service and returns its exit code.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().expect("the service ends").code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve_command(database_url: &str, options: &ServiceOptions<'_>) -> Command {
    let program = options.program.map_or_else(|| program("chart-index"), Path::to_path_buf);
    let mut command = match options.launcher {
        [] => Command::new(program),
        [launcher, arguments @ ..] => {
            let mut command = Command::new(launcher);
            command.args(arguments).arg(program);
            command
        }
    };
    let listen =
        |address: Option<SocketAddr>| address.map_or("127.0.0.1:0".into(), |address| address.to_string());
    let public: String = listen(options.addresses.map(|addresses| addresses.public));
    let private = listen(options.addresses.map(|addresses| addresses.private));
    // The limits are higher than tests need. Tests of the limits set their own.
    let rate_limits = ["LOOKUP", "ROX", "LIST", "DETAIL", "PREVIEW", "BULK", "FEED", "PAGE", "OTHER"]
        .map(|group| format!("RATE_LIMIT_{group}"));
    command
        .arg("serve")
        .args(["--listen", &public, "--admin-listen", &private, "--log-format", "json"])
        .args(options.arguments)
        .env("DATABASE_URL", database_url)
        .env("DRAIN_DELAY_MS", "0")
        .env("MAX_CONNECTIONS_PER_PEER", "100000")
        .envs(rate_limits.map(|variable| (variable, "1000000")))
        .envs(options.variables.iter().copied());
    command
}

/// Reads the log until it names both listeners. Returns the lines, and the public and the private address.
fn read_until_listening(log: &mut Lines<BufReader<ChildStderr>>) -> (Vec<String>, SocketAddr, SocketAddr) {
    let (mut public, mut private, mut lines) = (None, None, Vec::new());
    loop {
        if let (Some(public), Some(private)) = (public, private) {
            return (lines, public, private);
        }
        let line = log.next().expect("chart-index exited before it listened").expect("a readable log");
        let entry = serde_json::from_str::<serde_json::Value>(&line).unwrap_or_default();
        lines.push(line);
        if entry["fields"]["message"] != "listening" {
            continue;
        }
        let address = entry["fields"]["address"].as_str().and_then(|address| address.parse().ok());
        if entry["fields"]["listener"] == "public" { public = address } else { private = address }
    }
}

/// Reads the rest of a log in a thread, so that the service never waits for the pipe.
fn read_log(
    log: Lines<BufReader<ChildStderr>>,
    lines: &Arc<Mutex<Vec<String>>>,
) -> Option<Lines<BufReader<ChildStderr>>> {
    let lines = Arc::clone(lines);
    std::thread::spawn(move || {
        for line in log.map_while(Result::ok) {
            eprintln!("{line}");
            lines.lock().expect("no test panicked").push(line);
        }
    });
    None
}

/// A running `chart-indexer` command that serves its metrics. Dropping the value kills it.
#[derive(Debug)]
pub struct RunningIndexer {
    child: Child,
    metrics: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
}

impl RunningIndexer {
    /// Starts a command with a metrics listener on a free port, and waits until it listens.
    pub fn start(command: &mut Command) -> Self {
        Self::start_at(command, "127.0.0.1:0")
    }

    /// Starts a command with a metrics listener on this address, and waits until it listens.
    pub fn start_at(command: &mut Command, address: &str) -> Self {
        command.env("METRICS_LISTEN", address).env("LOG_FORMAT", "json");
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("chart-indexer starts");
        let mut log = BufReader::new(child.stderr.take().expect("the log is piped")).lines();
        let metrics = loop {
            let line = log.next().expect("chart-indexer exited before it listened").expect("a readable log");
            let entry = serde_json::from_str::<serde_json::Value>(&line).unwrap_or_default();
            if entry["fields"]["message"] == "listening" {
                let address = entry["fields"]["address"].as_str().and_then(|address| address.parse().ok());
                break address.expect("the address of the listener");
            }
        };
        let lines = Arc::default();
        read_log(log, &lines);
        Self { child, metrics, log: lines }
    }

    /// The lines logged since it listens.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().expect("no test panicked").clone()
    }

    /// A client of the metrics listener.
    pub fn client(&self) -> Client {
        Client::new(self.metrics)
    }

    /// The samples of the metrics whose names start with the prefix.
    pub async fn samples(&self, prefix: &str) -> Vec<String> {
        let text = self.client().metrics().await;
        text.lines().filter(|line| line.starts_with(prefix)).map(str::to_owned).collect()
    }

    /// The value of a metric with its labels, e.g. `hits_total{kind="a"}`.
    pub async fn metric(&self, metric: &str) -> Option<f64> {
        self.client().metric(metric).await
    }

    /// Sends SIGTERM, as an orchestrator does.
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends a signal, such as `STOP`.
    pub fn signal(&self, signal: &str) {
        send_signal(self.child.id(), signal);
    }

    /// Waits for the end of the command and returns its exit code.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().expect("the command ends").code()
    }
}

impl Drop for RunningIndexer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal, such as `TERM`, to a process.
pub fn send_signal(process_id: u32, signal: &str) {
    let status = Command::new("kill").args(["-s", signal, &process_id.to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "kill reaches the process");
}

/// The output and the exit code of a process of `chart-indexer` or another program.
#[derive(Debug)]
pub struct IndexerRun {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl IndexerRun {
    /// Runs a command and waits for its end.
    pub fn run(command: &mut Command) -> Self {
        let output = command.output().expect("the program starts");
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// Asserts that the run succeeded, and returns its standard output.
    pub fn succeeded(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self.stdout
    }
}

/// Runs `chart-indexer` on a database and waits for its end.
pub fn indexer(database_url: &str, arguments: &[&str]) -> IndexerRun {
    IndexerRun::run(&mut indexer_command(database_url, arguments))
}

/// Runs `generate-catalogue` on a migrated database and waits for its end.
pub fn generate_catalogue(database_url: &str, arguments: &[&str]) -> IndexerRun {
    IndexerRun::run(
        Command::new(program("generate-catalogue")).args(arguments).env("DATABASE_URL", database_url),
    )
}

/// The command of a built program, not started.
pub fn program_command(name: &str) -> Command {
    Command::new(program(name))
}

/// A `chart-indexer` command on a database, not started.
pub fn indexer_command(database_url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program("chart-indexer"));
    command.args(arguments).env("DATABASE_URL", database_url).stdin(Stdio::null());
    command
}

/// A `chart-hash` command, not started.
pub fn hash_command(arguments: &[&str]) -> Command {
    let mut command = program_command("chart-hash");
    command.args(arguments);
    command
}

/// The path of a built program: in the folder `PROGRAMS`, by default in an ancestor folder of the test binary,
/// `target/<profile>/deps/…`, or of a benchmark.
pub fn program(name: &str) -> PathBuf {
    if let Some(folder) = std::env::var_os("PROGRAMS") {
        return PathBuf::from(folder).join(name);
    }
    let test = std::env::current_exe().expect("a path of the test");
    let folder = test.ancestors().skip(1).find(|folder| folder.join(name).is_file());
    let folder = folder
        .unwrap_or_else(|| panic!("{name} is not built: run `make test` in {}", workspace_root().display()));
    folder.join(name)
}

/// A free port of the loopback address, below those that the system gives to connections and to listeners on
/// port 0: it stays free while a server restarts.
pub fn fixed_address() -> SocketAddr {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").expect("Linux");
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok()).expect("a port");
    loop {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, fastrand::u16(10_000..first)));
        if let Ok(listener) = TcpListener::bind(address) {
            close_listener(listener);
            return address;
        }
    }
}

/// Closes a listener, so that its port can be bound again at once. Without `shutdown` it would go on listening
/// in each child process that another thread has forked and that has not yet executed its program.
pub(crate) fn close_listener(listener: impl AsFd) {
    shutdown(&listener, Shutdown::Both).expect("a listener");
    drop(listener);
}
