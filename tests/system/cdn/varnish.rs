//! A Varnish in front of a replica.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use chart_index_system_tests::varnish;
use chart_index_tests::{Client, fixed_address, within};
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
        let folder = tempfile::tempdir().expect("a folder");
        let address = fixed_address();
        let configuration = varnish::configuration("127.0.0.1", replica.port(), "\"127.0.0.1\"");
        let words = varnish::command(&configuration, address, folder.path());
        let mut child = Command::new(&words[0])
            .args(&words[1..])
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
        let mut command = Command::new(varnish::program("varnishstat"));
        let output = command.arg("-n").arg(self.folder.path().join("varnish")).arg("-1").output();
        let text = String::from_utf8(output.expect("varnishstat starts").stdout).expect("UTF-8");
        names.map(|name| {
            let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
            let value = line.and_then(|line| line.split_whitespace().nth(1)).expect("a counter");
            value.parse().expect("a number")
        })
    }
}

impl Drop for Varnish {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}
