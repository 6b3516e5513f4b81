//! Private HAProxy instances, Debian's package.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use chart_index_tests::{ReplicaAddresses, fixed_address};

use crate::Process;

/// The name of the admin socket, in the folder of the instance.
const ADMIN_SOCKET: &str = "admin.sock";

/// The column of `show stat` with the state of a server.
const STATUS_COLUMN: usize = 17;

/// An HAProxy in front of replicas of the service. Dropping the value kills it.
#[derive(Debug)]
pub struct PrivateHaproxy {
    // Ends before its folder is deleted.
    _process: Process,
    folder: tempfile::TempDir,
    address: SocketAddr,
}

impl PrivateHaproxy {
    /// Starts an instance and waits until it listens, also on its admin socket. It sends each request once
    /// (`retries 0`), keeps connections to the replicas open, and checks `/readyz` with these parameters, such
    /// as `inter 1s fall 2`.
    pub fn start(replicas: &[ReplicaAddresses], checks: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let address = fixed_address();
        let configuration = configuration(folder.path(), address, replicas, checks);
        std::fs::write(folder.path().join("haproxy.cfg"), configuration).expect("a configuration");
        let log = std::fs::File::create(folder.path().join("log")).expect("a log");
        let mut process = Process::start(
            Command::new(haproxy_program())
                .args(["-db", "-f", "haproxy.cfg"])
                .current_dir(folder.path())
                .stdin(Stdio::null())
                .stdout(log.try_clone().expect("a log"))
                .stderr(log),
        );
        let socket = folder.path().join(ADMIN_SOCKET);
        while TcpStream::connect(address).is_err() || UnixStream::connect(&socket).is_err() {
            let log = std::fs::read_to_string(folder.path().join("log"));
            assert!(!process.has_ended(), "haproxy exited: {}", log.unwrap_or_default());
            std::thread::yield_now();
        }
        Self { _process: process, folder, address }
    }

    /// The address to which clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The state of a replica, by its index: `UP`, `DOWN`, or one in between such as `UP 1/2`.
    pub fn status(&self, replica: usize) -> String {
        let mut socket =
            UnixStream::connect(self.folder.path().join(ADMIN_SOCKET)).expect("the admin socket");
        socket.write_all(b"show stat\n").expect("a command is written");
        let mut statistics = String::new();
        socket.read_to_string(&mut statistics).expect("statistics");
        let prefix = format!("replicas,{replica},");
        let line = statistics.lines().find(|line| line.starts_with(&prefix)).expect("a line of the replica");
        line.split(',').nth(STATUS_COLUMN).expect("a state").to_owned()
    }

    /// Changes of the replicas' states, and requests that failed.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).expect("a log")
    }
}

fn configuration(folder: &Path, address: SocketAddr, replicas: &[ReplicaAddresses], checks: &str) -> String {
    let servers = replicas.iter().enumerate().map(|(number, ReplicaAddresses { public, private })| {
        format!("    server {number} {public} check port {} {checks}\n", private.port())
    });
    format!(
        "global
    stats socket {folder}/{ADMIN_SOCKET} mode 600
    log stdout format raw local0

defaults
    mode http
    log global
    option httplog
    option dontlog-normal
    option forwardfor
    retries 0
    timeout connect 2s
    timeout client 60s
    timeout http-keep-alive 60s
    timeout server 20s
    timeout check 2s

frontend clients
    bind {address}
    default_backend replicas

backend replicas
    balance roundrobin
    option httpchk GET /readyz
    http-check expect status 200
{servers}",
        folder = folder.display(),
        servers = servers.collect::<String>(),
    )
}

/// `haproxy` on the PATH, or where Debian has it, which is on the PATH of root only.
pub fn haproxy_program() -> &'static str {
    let debian = "/usr/sbin/haproxy";
    if Path::new(debian).is_file() { debian } else { "haproxy" }
}
