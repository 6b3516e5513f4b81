//! Alerts of Prometheus arrive at the receivers of `compose/alertmanager.yml`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use chart_index_system_tests::{PrivatePrometheus, Process, read};
use chart_index_tests::{fixed_address, http_client_builder, within};
use serde_json::{Value, json};

/// Maximum time until an alert arrives; the route of tickets waits for 30 s.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A notification: the path of the receiver and the names of its alerts.
type Notification = (String, Vec<String>);

#[tokio::test]
async fn alerts_are_delivered_by_severity() {
    let (receiver, notifications) = start_receiver();
    let alertmanager = Alertmanager::start(receiver).await;
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
    /// Starts a server whose receivers are at this address.
    async fn start(receiver: SocketAddr) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let example = read("compose/alertmanager.yml");
        let configuration = example.replace("127.0.0.1:9/", &format!("{receiver}/"));
        assert_eq!(configuration.matches(&receiver.to_string()).count(), 3, "{configuration}");
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

/// Starts a server for webhooks, which ends with the test.
fn start_receiver() -> (SocketAddr, Receiver<Notification>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let (connection, sender) = (connection.expect("a connection"), sender.clone());
            std::thread::spawn(move || respond(connection, &sender));
        }
    });
    (address, receiver)
}

/// Responds to the requests of a connection, and passes each notification on.
fn respond(mut connection: TcpStream, notifications: &Sender<Notification>) {
    let mut reader = BufReader::new(connection.try_clone().expect("a connection"));
    loop {
        let mut lines = reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty());
        let Some(request) = lines.next() else { return };
        let lengths =
            lines.filter_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let length: usize = lengths.last().expect("a body");
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let alerts = body["alerts"].as_array().expect("alerts").iter();
        let names = alerts.map(|alert| alert["labels"]["alertname"].as_str().expect("a name").to_owned());
        let path = request.split(' ').nth(1).expect("a path").to_owned();
        // The test may have ended.
        let _ = notifications.send((path, names.collect()));
        connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").expect("a response is written");
    }
}
