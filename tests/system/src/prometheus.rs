//! Private Prometheus servers with the configuration and the rules of the repository.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use chart_index_tests::{fixed_address, http_client_builder, within, workspace_root};
use reqwest::Url;
use serde_json::Value;
use tempfile::TempDir;

use crate::Process;

/// What alerts link to.
pub const RUNBOOK_URL: &str = "https://runbook.test/runbook.md";

/// Maximum time until a server is ready.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// A Prometheus server with `monitoring/prometheus.yml`, in which every interval is one second, so that tests
/// wait for seconds. Killed when dropped, with its data.
#[derive(Debug)]
pub struct PrivatePrometheus {
    // Ends before its folder is deleted.
    process: Process,
    folder: TempDir,
    address: SocketAddr,
    http: reqwest::Client,
}

/// A rule, as the server has parsed it.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The name of an alert or of a recorded series.
    pub name: String,
    /// False for a recording rule.
    pub is_alert: bool,
    /// The expression in the format of Prometheus, on one line, with spaces around operators.
    pub expression: String,
    /// The labels that the rule adds.
    pub labels: BTreeMap<String, String>,
    /// Empty for a recording rule.
    pub annotations: BTreeMap<String, String>,
    /// `ok`, `err`, or `unknown` before the first evaluation.
    pub health: String,
}

impl PrivatePrometheus {
    /// Starts a server that scrapes these addresses, each with the name of its job, which is that of a file in
    /// `monitoring/targets`, and itself as `prometheus`.
    pub async fn start(targets: &[(&str, SocketAddr)]) -> Self {
        let http = http_client_builder().build().expect("an HTTP client");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut targets = targets.to_vec();
        let address = fixed_address();
        targets.push(("prometheus", address));
        write_configuration(folder.path(), &targets);
        let mut server = Self { process: start(folder.path(), address), folder, address, http };
        server.wait_until_ready().await;
        server
    }

    /// Its URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Evaluates an expression now. Returns the `result` of the response, an array of series for a vector.
    pub async fn query(&self, expression: &str) -> Value {
        let response = self.get("query", &[("query", expression)]).await;
        response.unwrap_or_else(|error| panic!("{expression}: {error}"))["result"].take()
    }

    /// Evaluates an expression over a range, in Unix seconds. Returns the `result`, an array of series.
    pub async fn query_range(&self, expression: &str, range: (f64, f64), step: f64) -> Result<Value, String> {
        let [start, end, step] = [range.0, range.1, step].map(|number| number.to_string());
        let parameters = [("query", expression), ("start", &start), ("end", &end), ("step", &step)];
        Ok(self.get("query_range", &parameters).await?["result"].take())
    }

    /// The rules, in the order of their files and groups.
    pub async fn rules(&self) -> Vec<Rule> {
        let response = self.get("rules", &[]).await.expect("a list of rules");
        let groups = response["groups"].as_array().expect("groups");
        groups.iter().flat_map(|group| group["rules"].as_array().expect("rules")).map(rule).collect()
    }

    /// The annotations of the alerts with this name that are pending or fire, once there is one.
    pub async fn annotations(&self, alert: &str) -> Value {
        let found = async || {
            let response = self.get("alerts", &[]).await.expect("a list of alerts");
            let alerts = response["alerts"].as_array().expect("alerts");
            alerts
                .iter()
                .find(|one| one["labels"]["alertname"] == alert)
                .map(|one| one["annotations"].clone())
        };
        within(START_TIMEOUT, found).await.0
    }

    /// Waits until every rule was evaluated.
    pub async fn wait_for_evaluations(&self) {
        within(START_TIMEOUT, async || {
            let rules = self.rules().await;
            let is_done = !rules.is_empty() && rules.iter().all(|rule| rule.health != "unknown");
            is_done.then_some(())
        })
        .await;
    }

    /// The `data` of a response of the HTTP API, or its error.
    async fn get(&self, endpoint: &str, parameters: &[(&str, &str)]) -> Result<Value, String> {
        let url = format!("{}/api/v1/{endpoint}", self.url());
        let url = Url::parse_with_params(&url, parameters).expect("a valid URL");
        let response = self.http.get(url).send().await.expect("Prometheus responds");
        let body = response.bytes().await.expect("a complete response");
        let mut body: Value = serde_json::from_slice(&body).expect("JSON");
        match body["status"].as_str() {
            Some("success") => Ok(body["data"].take()),
            _ => Err(body["error"].to_string()),
        }
    }

    async fn wait_until_ready(&mut self) {
        let ready = format!("{}/-/ready", self.url());
        let start = std::time::Instant::now();
        while !self.http.get(&ready).send().await.is_ok_and(|response| response.status() == 200) {
            let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            let is_starting = !self.process.has_ended() && start.elapsed() < START_TIMEOUT;
            assert!(is_starting, "Prometheus does not start: {}", log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn start(folder: &Path, address: SocketAddr) -> Process {
    let log = std::fs::File::create(folder.join("log")).expect("a log");
    Process::start(
        Command::new("prometheus")
            .current_dir(folder)
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=warn"])
            .arg("--enable-feature=expand-external-labels")
            .env("RUNBOOK_URL", RUNBOOK_URL)
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log),
    )
}

/// Copies the configuration and the rules, with intervals of one second, and writes the files of targets.
fn write_configuration(folder: &Path, targets: &[(&str, SocketAddr)]) {
    let source = workspace_root().join("monitoring");
    for subfolder in ["rules", "targets"] {
        std::fs::create_dir(folder.join(subfolder)).expect("a folder");
    }
    copy_with_short_intervals(&source.join("prometheus.yml"), &folder.join("prometheus.yml"));
    for entry in std::fs::read_dir(source.join("rules")).expect("the rules") {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name");
        copy_with_short_intervals(&path, &folder.join("rules").join(name));
    }
    for entry in std::fs::read_dir(source.join("targets")).expect("the targets") {
        let name = entry.expect("a file").file_name().into_string().expect("UTF-8");
        let job = name.trim_end_matches(".yml");
        let addresses =
            targets.iter().filter(|(name, _)| *name == job).map(|(_, address)| address.to_string());
        let addresses: Vec<String> = addresses.collect();
        let entries =
            if addresses.is_empty() { Vec::new() } else { vec![serde_json::json!({ "targets": addresses })] };
        let file = folder.join("targets").join(name);
        // JSON is YAML.
        std::fs::write(file, Value::from(entries).to_string()).expect("a file of targets");
    }
}

/// Copies a file. Every line `interval: …`, `scrape_interval: …` or `evaluation_interval: …` becomes one of
/// 1 s.
fn copy_with_short_intervals(from: &Path, to: &Path) {
    let text = std::fs::read_to_string(from).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    let lines = text.lines().map(|line| match line.split_once("interval: ") {
        Some((key, _)) => format!("{key}interval: 1s\n"),
        None => format!("{line}\n"),
    });
    std::fs::write(to, lines.collect::<String>()).expect("a copy");
}

fn rule(rule: &Value) -> Rule {
    let text = |field: &str| rule[field].as_str().unwrap_or_default().to_owned();
    let map = |field: &str| {
        let entries = rule[field].as_object().into_iter().flatten();
        entries.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
    };
    Rule {
        name: text("name"),
        is_alert: rule["type"] == "alerting",
        expression: text("query"),
        labels: map("labels"),
        annotations: map("annotations"),
        health: text("health"),
    }
}
