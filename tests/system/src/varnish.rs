//! Varnish with the configuration of docs/operations/cdn.md.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use chart_index_tests::{Client, within};
use reqwest::Method;

use crate::{code_blocks, read};

/// Maximum time until Varnish responds.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A Varnish, which is killed when the value is dropped.
#[derive(Debug)]
pub struct PrivateVarnish {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl PrivateVarnish {
    /// Starts Varnish on this address, and waits until it responds. The others are as for [`configuration`].
    pub async fn start(address: SocketAddr, origin: SocketAddr, purgers: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = configuration(&origin.ip().to_string(), origin.port(), purgers);
        let words = command(&configuration, address, folder.path());
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("varnishd is installed: `scripts/servers install varnish`");
        let client = Client::new(address);
        within(START_TIMEOUT, async || {
            assert!(child.try_wait().expect("a process").is_none(), "varnishd ended");
            client.try_request(Method::GET, "/api/charts/0", &[]).await.ok()
        })
        .await;
        Self { child, address, _folder: folder }
    }

    /// The address to which clients connect.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for PrivateVarnish {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

/// The configuration for this origin, with the network of what purges, such as `"10.0.0.1"` or `"10.0.0.0"/8`.
pub fn configuration(host: &str, port: u16, purgers: &str) -> String {
    let page = read("docs/operations/cdn.md");
    let example = code_blocks(&page, "vcl")[0];
    let replaced = [
        ("    .host = \"127.0.0.1\";", format!("    .host = \"{host}\";")),
        ("    .port = \"8080\";", format!("    .port = \"{port}\";")),
        ("\n    \"127.0.0.1\";", format!("\n    {purgers};")),
    ];
    replaced.iter().fold(example.to_owned(), |configuration, (original, replacement)| {
        assert_eq!(configuration.matches(original).count(), 1, "{original}: {configuration}");
        configuration.replace(original, replacement)
    })
}

/// The command that runs Varnish with this configuration in the foreground. It has its files in the folder.
pub fn command(configuration: &str, address: SocketAddr, folder: &Path) -> Vec<String> {
    let file = folder.join("cdn.vcl");
    std::fs::write(&file, configuration).expect("a file");
    let [file, files] = [file, folder.join("varnish")].map(|path| path.display().to_string());
    let (program, address) = (program("varnishd"), address.to_string());
    // Idle connections of clients stay open for longer than clients reuse them.
    let parameters = ["-p", "timeout_idle=100", "-p", "nuke_limit=1000"];
    let words = [&*program, "-F", "-j", "none", "-s", "malloc,1g", "-a", &address, "-f", &file, "-n", &files];
    words.into_iter().chain(parameters).map(str::to_owned).collect()
}

/// A program of Varnish: on the PATH, or where Debian has servers, which is on the PATH of root only.
fn program(name: &str) -> String {
    let debian = format!("/usr/sbin/{name}");
    if Path::new(&debian).is_file() { debian } else { name.to_owned() }
}
