//! A Varnish with the configuration of docs/operations/cdn.md.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use chart_index_tests::{Client, fixed_address, within, workspace_root};
use reqwest::Method;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Killed when dropped.
pub(crate) struct Varnish {
    child: Child,
    pub(crate) address: SocketAddr,
    folder: tempfile::TempDir,
}

impl Varnish {
    /// Starts Varnish in front of a replica.
    pub(crate) async fn start(replica: SocketAddr) -> Self {
        let page = std::fs::read_to_string(workspace_root().join("docs/operations/cdn.md")).expect("a page");
        let example =
            page.split("```vcl\n").nth(1).and_then(|rest| rest.split_once("```")).expect("an example").0;
        let port = "    .port = \"8080\";";
        assert!(example.contains(port), "{example}");
        let configuration = example.replace(port, &format!("    .port = \"{}\";", replica.port()));
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("cdn.vcl"), configuration).expect("a configuration");
        let address = fixed_address();
        let mut child = Command::new("varnishd")
            .args(["-F", "-j", "none", "-s", "malloc,1g", "-p", "nuke_limit=1000"])
            .arg("-a")
            .arg(address.to_string())
            .arg("-f")
            .arg(folder.path().join("cdn.vcl"))
            .arg("-n")
            .arg(folder.path().join("varnish"))
            .env("PATH", program_path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("varnishd is installed: `scripts/servers install varnish`");
        let client = Client::new(address);
        within(TIMEOUT, async || {
            assert!(child.try_wait().expect("a process").is_none(), "varnishd ended");
            client.try_request(Method::GET, "/api/charts/0", &[]).await.ok()
        })
        .await;
        Self { child, address, folder }
    }

    /// The values of these counters, such as `MAIN.cache_hit`.
    pub(crate) fn counters<const COUNT: usize>(&self, names: [&str; COUNT]) -> [u64; COUNT] {
        let output = Command::new("varnishstat")
            .arg("-n")
            .arg(self.folder.path().join("varnish"))
            .arg("-1")
            .env("PATH", program_path())
            .output()
            .expect("varnishstat starts");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        names.map(|name| {
            let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
            let value = line.and_then(|line| line.split_whitespace().nth(1)).expect("a counter");
            value.parse().expect("a number")
        })
    }
}

/// Servers are on the PATH of root only.
fn program_path() -> String {
    format!("{}:/usr/sbin", std::env::var("PATH").expect("a PATH"))
}

impl Drop for Varnish {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}
