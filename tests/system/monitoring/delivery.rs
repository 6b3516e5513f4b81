//! Alerts of Prometheus arrive at the receivers of `compose/alertmanager.yml`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use chart_index_system_tests::{PrivatePrometheus, Process, read};
use chart_index_tests::http_server::{response, serve};
use chart_index_tests::{fixed_address, http_client_builder, within};
use serde_json::{Value, json};

/// Maximum time until an alert arrives.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A notification: the path of the receiver and the names of its alerts.
type Notification = (String, Vec<String>);

#[tokio::test]
async fn alerts_are_delivered_by_severity() {
    let (receiver, notifications) = start_receiver();
    let alertmanager = Alertmanager::start(&receiver).await;
    // The rules of the repository: only the watchdog fires before its time.
    let prometheus = PrivatePrometheus::start(&[("alertmanager", alertmanager.address)]).await;
    let alerts = [("ChartIndexDown", "page"), ("ChartIndexMemory", "ticket")];
    alertmanager.receive(&alerts).await;
    let mut missing =
        vec![("watchdog", "ChartIndexWatchdog"), ("page", alerts[0].0), ("ticket", alerts[1].0)];
    let start = Instant::now();
    while !missing.is_empty() {
        let timeout = TIMEOUT.saturating_sub(start.elapsed());
        let (path, names) = notifications.recv_timeout(timeout).unwrap_or_else(|_| panic!("{missing:?}"));
        assert_eq!(names.len(), 1, "{path}: {names:?}");
        missing.retain(|(receiver, alert)| !(path == format!("/{receiver}") && names[0] == *alert));
    }
    drop(prometheus);
}

/// A private Alertmanager with the example of the repository. Killed when dropped.
struct Alertmanager {
    // Ends before its folder is deleted.
    _process: Process,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Alertmanager {
    /// Starts a server whose receivers are at this base address. Routes of pages and tickets wait for a second.
    async fn start(receiver: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let example = read("compose/alertmanager.yml");
        let mut configuration = example.replace("http://127.0.0.1:9", receiver);
        assert_eq!(configuration.matches(receiver).count(), 3, "{configuration}");
        for wait in ["group_wait: 10s", "group_wait: 30s"] {
            assert_eq!(configuration.matches(wait).count(), 1, "{configuration}");
            configuration = configuration.replace(wait, "group_wait: 1s");
        }
        std::fs::write(folder.path().join("alertmanager.yml"), configuration).expect("a configuration");
        let address = fixed_address();
        let process = start(folder.path(), address);
        let http = http_client_builder().build().expect("an HTTP client");
        within(TIMEOUT, async || {
            let response = http.get(format!("http://{address}/-/ready")).send().await.ok()?;
            (response.status() == 200).then_some(())
        })
        .await;
        Self { _process: process, address, _folder: folder }
    }

    /// Sends alerts, each with its severity, as Prometheus does.
    async fn receive(&self, alerts: &[(&str, &str)]) {
        let alerts: Value = alerts
            .iter()
            .map(|(name, severity)| json!({"labels": {"alertname": name, "severity": severity}}))
            .collect();
        let http = http_client_builder().build().expect("an HTTP client");
        let request = http.post(format!("http://{}/api/v2/alerts", self.address));
        let request = request.header("content-type", "application/json").body(alerts.to_string());
        let response = request.send().await.expect("Alertmanager responds");
        assert_eq!(response.status(), 200);
    }
}

fn start(folder: &Path, address: SocketAddr) -> Process {
    Process::start(
        Command::new("prometheus-alertmanager")
            .current_dir(folder)
            .args(["--config.file=alertmanager.yml", "--storage.path=data", "--cluster.listen-address="])
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    )
}

/// Starts a server for webhooks, and returns its base address.
fn start_receiver() -> (String, Receiver<Notification>) {
    let (sender, receiver) = mpsc::channel();
    let base = serve(move |request| {
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        let alerts = body["alerts"].as_array().expect("alerts").iter();
        let names = alerts.map(|alert| alert["labels"]["alertname"].as_str().expect("a name").to_owned());
        // The test may have ended.
        let _ = sender.send((request.path().to_owned(), names.collect()));
        response("200 OK", "")
    });
    (base, receiver)
}
