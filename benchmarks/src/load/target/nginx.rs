//! nginx: files with `limit_req`.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chart_index_tests::{Response, fixed_address};
use hyper::header::HeaderName;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{Role, Target};
use crate::cpu::Cores;

/// Maximum time until nginx listens.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Headers that nginx writes itself, or that concern the connection.
const HEADERS_OF_NGINX: &[&str] = &[
    "accept-ranges",
    "connection",
    "content-length",
    "content-type",
    "date",
    "etag",
    "last-modified",
    "server",
];

/// The configuration without the server: one worker per core of the servers, no access log, connections that
/// stay open, and the limit of the service, 240 requests a minute for each client, as nginx counts them.
const COMMON: &str = r"daemon off;
pid nginx.pid;
error_log error.log error;
worker_rlimit_nofile 65536;
events { worker_connections 8192; multi_accept on; }
http {
    access_log off;
    server_tokens off;
    sendfile on;
    tcp_nodelay on;
    keepalive_timeout 1h;
    keepalive_requests 1000000000;
    open_file_cache max=200000 inactive=1h;
    open_file_cache_valid 1h;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    real_ip_header X-Forwarded-For;
    set_real_ip_from 127.0.0.0/8;
    limit_req_zone $binary_remote_addr zone=clients:256m rate=240r/m;
    limit_req zone=clients burst=239 nodelay;
    limit_req_status 429;
    types {}
";

/// A response that nginx serves from a file.
#[derive(Debug, Clone)]
pub(crate) struct CachedFile {
    /// The path of the request, without a query string.
    pub(crate) path: String,
    /// The response of the service.
    pub(crate) response: Response,
}

/// A running nginx with its files. Dropping the value ends it.
#[derive(Debug)]
struct Nginx {
    folder: TempDir,
    process: Child,
}

/// nginx that serves the bodies of these responses as files, with the headers of the first one.
pub(crate) fn files(files: &[CachedFile], cores: &Cores) -> Result<Target> {
    let folder = tempfile::tempdir()?;
    for file in files {
        let path = folder.path().join("files").join(file.path.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().context("a file has a folder")?)?;
        std::fs::write(&path, &file.response.body)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let first = files.first().context("no files to serve")?;
    // Without the headers that the service does not have.
    let plain = "root files;\nmax_ranges 0;\nadd_header Last-Modified '';";
    let location = format!("{plain}\n{}", header_directives(&first.response));
    let address = fixed_address();
    let nginx = Nginx::start(folder, cores, address, &format!("server {{ listen {address}; {location} }}"))?;
    let processes = vec![(Role::Server, nginx.process.id())];
    Ok(Target { has_own_tags: true, ..Target::new("nginx", address, processes, Box::new(nginx)) })
}

/// Directives that add the headers of the service, so that responses have about the same size.
fn header_directives(response: &Response) -> String {
    let mut directives = format!("default_type '{}';\n", response.header("content-type"));
    for name in response.headers.keys().map(HeaderName::as_str) {
        if !HEADERS_OF_NGINX.contains(&name) {
            let value = response.header(name).replace('\'', "\\'");
            let _ = writeln!(directives, "add_header {name} '{value}';");
        }
    }
    directives
}

impl Nginx {
    fn start(folder: TempDir, cores: &Cores, address: SocketAddr, server: &str) -> Result<Self> {
        let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
        let workers = cores.servers().len();
        let configuration = format!("{user}worker_processes {workers};\n{COMMON}\n{server}\n}}\n");
        std::fs::write(folder.path().join("nginx.conf"), configuration)?;
        let _pinned = cores.on_servers()?;
        let process = Command::new(program())
            .arg("-p")
            .arg(folder.path())
            .args(["-c", "nginx.conf", "-e", "error.log"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("nginx is not installed: scripts/servers install nginx")?;
        let mut nginx = Self { folder, process };
        nginx.wait_until_it_listens(address)?;
        Ok(nginx)
    }

    fn wait_until_it_listens(&mut self, address: SocketAddr) -> Result<()> {
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if self.process.try_wait()?.is_some() || start.elapsed() > START_TIMEOUT {
                let log = std::fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default();
                bail!("nginx did not start: {log}");
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // SIGKILL would leave its workers behind.
        let process = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        if let Some(process) = process {
            let _ = kill_process(process, Signal::TERM);
        }
        let _ = self.process.wait();
    }
}

/// On Debian it is on the PATH of root only.
fn program() -> &'static str {
    if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" }
}
