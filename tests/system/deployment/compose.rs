//! Invariants of `docker-compose.yml`.

use std::collections::BTreeSet;

use chart_index_system_tests::read;
use serde_json::{Map, Value, json};

use super::{compose, deployment};

/// The replicas of `chart-index serve`.
pub(super) const REPLICAS: [&str; 2] = ["replica-1", "replica-2"];

/// Services that end, and that `restart` must not start again.
const ONE_SHOT: &[&str] = &["meilisearch-keys", "migrate", "ingest"];

/// The services whose ports are published, each with its port.
const PUBLISHED: &[(&str, &str)] = &[
    ("alertmanager", "127.0.0.1:${ALERTMANAGER_PORT:-9093}:9093"),
    ("grafana", "127.0.0.1:${GRAFANA_PORT:-3000}:3000"),
    ("haproxy", "${LISTEN:-127.0.0.1:8080}:8080"),
    ("prometheus", "127.0.0.1:${PROMETHEUS_PORT:-9090}:9090"),
];

fn services() -> Map<String, Value> {
    let services = compose()["services"].as_object().expect("services").clone();
    assert!(services.len() >= 15, "{services:?}");
    services
}

/// The names of the networks of a service.
pub(super) fn networks(service: &Value) -> BTreeSet<&str> {
    match &service["networks"] {
        Value::Object(networks) => networks.keys().map(String::as_str).collect(),
        networks => networks.as_array().expect("networks").iter().filter_map(Value::as_str).collect(),
    }
}

/// A duration such as `20s` or `2m`, in seconds.
fn seconds(duration: &Value) -> u64 {
    let text = duration.as_str().expect("a duration");
    let (number, unit) = text.split_at(text.len() - 1);
    let number: u64 = number.parse().expect("a number");
    if unit == "m" { 60 * number } else { number }
}

/// Dumps may be in a folder of the machine. What else containers may not do is checked by compose-lint.
#[test]
fn files_of_the_machine_are_read_only() {
    for (name, service) in services() {
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let volume = volume.as_str().expect("the short form");
            let is_writable = volume.starts_with("${BACKUPS:-backups}:");
            let is_mount = volume.starts_with(['.', '$']) && !is_writable;
            assert!(!is_mount || volume.ends_with(":ro"), "{name}: {volume}");
        }
    }
}

#[test]
fn resources_and_logs_are_limited() {
    for (name, service) in services() {
        for limit in ["mem_limit", "pids_limit"] {
            assert!(!service[limit].is_null(), "{name}: {limit}");
        }
        for option in ["max-size", "max-file"] {
            assert!(!service["logging"]["options"][option].is_null(), "{name}: {option}");
        }
    }
}

#[test]
fn services_are_checked_and_start_in_order() {
    let services = services();
    for (name, service) in &services {
        let is_one_shot = ONE_SHOT.contains(&name.as_str());
        assert_eq!(service["restart"] == "no", is_one_shot, "{name}");
        // The image of the collector has no program for a check, and alerts tell the age of copies.
        let is_checked = service["healthcheck"]["test"].is_array();
        let is_checkable = !["otel-collector", "backup-copy"].contains(&name.as_str());
        assert_eq!(is_checked, !is_one_shot && is_checkable, "{name}");
        let dependencies = service["depends_on"].as_object().into_iter().flatten();
        for (dependency, condition) in dependencies {
            let is_one_shot = ONE_SHOT.contains(&dependency.as_str());
            let expected = if is_one_shot { "service_completed_successfully" } else { "service_healthy" };
            assert_eq!(condition["condition"], expected, "{name}: {dependency}");
        }
    }
    for (name, dependencies) in [
        ("meilisearch-keys", ["meilisearch"].as_slice()),
        ("migrate", &["postgres"]),
        ("ingest", &["migrate"]),
        ("sync", &["migrate"]),
        ("replica-1", &["migrate", "redis"]),
        ("replica-2", &["migrate", "redis"]),
        ("haproxy", &REPLICAS),
    ] {
        let actual = services[name]["depends_on"].as_object().expect("dependencies");
        let mut actual: Vec<_> = actual.keys().map(String::as_str).collect();
        actual.sort_unstable();
        assert_eq!(actual, dependencies, "{name}");
    }
}

/// A number in `compose/replica.env`.
fn setting(name: &str) -> u64 {
    let settings = read("compose/replica.env");
    let value = settings.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    value.and_then(|value| value.parse().ok()).expect("a number")
}

/// The formula of docs/operations/capacity.md, "Connections", with `follow` and two other commands.
#[test]
fn postgresql_has_enough_connections() {
    let of_replicas = REPLICAS.len() as u64 * (setting("DATABASE_MAX_CONNECTIONS") + 2);
    let needed = of_replicas + 3 * 16 + 10;
    let services = services();
    let command = services["postgres"]["command"].as_array().expect("arguments");
    let mut maximum =
        command.iter().filter_map(|argument| argument.as_str()?.strip_prefix("-cmax_connections="));
    let maximum = maximum.next().and_then(|maximum| maximum.parse::<u64>().ok());
    assert!(maximum >= Some(needed), "{maximum:?}, {needed} needed");
}

/// Slow requests of one group, such as lists without Meilisearch, must not make lookups wait in HAProxy:
/// replicas divide `MAX_REQUESTS_IN_FLIGHT`, whose default is 1024, between groups.
#[test]
fn haproxy_sends_replicas_all_that_they_may_have_in_flight() {
    let haproxy = read("compose/haproxy/haproxy.cfg");
    let maximum = format!(" maxconn {} ", 1024 + setting("MAX_LONG_POLLS"));
    assert_eq!(haproxy.matches("default-server ").count(), 1);
    assert!(haproxy.contains(&maximum), "{maximum}");
}

#[test]
fn replicas_have_time_to_drain() {
    let (delay, grace) = (setting("DRAIN_DELAY_MS"), setting("SHUTDOWN_GRACE_MS"));
    // docs/operations/install.md, "Rollouts": 2 checks, one each second, and the timeout of the last.
    assert!(delay > 2_500, "{delay}");
    let services = services();
    for name in REPLICAS {
        assert!(1_000 * seconds(&services[name]["stop_grace_period"]) >= delay + grace + 5_000, "{name}");
    }
}

#[test]
fn only_the_reverse_proxy_is_public() {
    let services = services();
    for (name, service) in &services {
        let published = PUBLISHED.iter().find(|(published, _)| published == name).map(|(_, port)| *port);
        let ports = service["ports"].as_array().into_iter().flatten().map(Value::as_str);
        assert_eq!(ports.collect::<Vec<_>>(), published.map(Some).into_iter().collect::<Vec<_>>(), "{name}");
        let has_way_out = networks(service).contains("published");
        let others = ["backup-copy", "blackbox", "otel-collector", "sync"];
        let needs_way_out = published.is_some() || others.contains(&name.as_str());
        assert_eq!(has_way_out, needs_way_out, "{name}");
    }
    let compose = compose();
    for (name, network) in compose["networks"].as_object().expect("networks") {
        assert_eq!(network["internal"] == true, name != "published", "{name}");
    }
}

/// The name of a service has an address on each of its networks. HAProxy must not use that on `monitoring`,
/// whose clients the replicas do not trust.
#[test]
fn haproxy_reaches_replicas_through_edge_alone() {
    let haproxy = read("compose/haproxy/haproxy.cfg");
    let services = services();
    for name in REPLICAS {
        let alias = format!("{name}.edge");
        assert!(haproxy.contains(&format!("server {name} {alias}:8080\n")), "{name}");
        for network in networks(&services[name]) {
            let expected = if network == "edge" { json!([alias]) } else { Value::Null };
            assert_eq!(services[name]["networks"][network]["aliases"], expected, "{name}: {network}");
        }
    }
}

/// The private listeners of the programs and of HAProxy are `ADMIN_LISTEN`, `METRICS_LISTEN` and port 8404.
#[test]
fn prometheus_scrapes_every_service_with_metrics() {
    let configuration = deployment(&["compose", "monitoring/prometheus.yml"]);
    let jobs = configuration["scrape_configs"].as_array().expect("jobs");
    let targets = jobs.iter().flat_map(|job| {
        let file = job["file_sd_configs"][0]["files"][0].as_str().expect("a file");
        // Further files are those of the operator.
        let file = file.strip_prefix("targets/").expect("the folder that is mounted").replace('*', "");
        let entries = deployment(&["compose", &format!("compose/prometheus/{file}")]);
        let entries = entries.as_array().expect("targets").clone();
        entries.into_iter().flat_map(|entry| entry["targets"].as_array().expect("targets").clone())
    });
    let targets: BTreeSet<_> = targets.map(|target| target.as_str().expect("a target").to_owned()).collect();
    let replicas = REPLICAS.map(|name| format!("{name}:9090"));
    let others = ["sync:9091", "haproxy:8404", "alertmanager:9093", "blackbox:9115", "node-exporter:9100"];
    let others = others.into_iter().chain(["127.0.0.1:9090"]).map(str::to_owned);
    assert_eq!(targets, replicas.into_iter().chain(others).collect());
    let services = services();
    for target in &targets {
        let (name, _) = target.split_once(':').expect("a port");
        let name = if name == "127.0.0.1" { "prometheus" } else { name };
        assert!(networks(&services[name]).contains("monitoring"), "{name}");
    }
}

#[test]
fn prometheus_keeps_what_error_budgets_need() {
    let rules = read("monitoring/rules/recording.yml");
    let windows = rules.split('[').filter_map(|rest| rest.split_once("d]")?.0.parse::<u64>().ok());
    let longest = windows.max().expect("a window of days");
    let command = services()["prometheus"]["command"].to_string();
    let days = command.split("retention.time=").nth(1).and_then(|rest| rest.split_once('d'));
    let days: u64 = days.and_then(|(days, _)| days.parse().ok()).expect("days");
    assert!(days > longest, "{days}, {longest}");
}

#[test]
fn secrets_are_files() {
    let compose = compose();
    let secrets = compose["secrets"].as_object().expect("secrets");
    for (name, secret) in secrets {
        assert_eq!(secret["file"], format!("${{SECRETS:-./compose/secrets}}/{name}"));
        let is_used = |service: &Value| {
            service["secrets"].as_array().is_some_and(|secrets| secrets.contains(&json!(name)))
        };
        assert!(services().values().any(is_used), "{name} is not used");
    }
    for (name, service) in services() {
        for variable in service["environment"].as_object().into_iter().flatten().map(|(name, _)| name) {
            let is_secret =
                ["PASSWORD", "SECRET", "TOKEN", "MASTER_KEY"].iter().any(|word| variable.contains(word));
            assert!(!is_secret || variable.ends_with("_FILE"), "{name}: {variable}");
        }
    }
}
