//! The environment variables of `docker-compose.yml` and of `k8s/` are settings of the programs, and none is
//! missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chart_index_tests::{IndexerRun, program_command, workspace_root};
use serde_json::Value;

use super::kubernetes::{Objects, secret_files};
use super::{OVERLAYS, compose, rendered};

/// Variables that libraries of the programs read (docs/operations/configure.md).
const LIBRARY_VARIABLES: &[&str] = &["OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME", "SSL_CERT_FILE"];

/// Settings that need no variable: the setting, the command (empty for all), and why.
const OPTIONAL: &[(&str, &str, &str)] = &[
    ("ALPHA_SOURCE_PAGE", "", "a choice of the operator"),
    ("BETA_SOURCE_PAGE", "", "a choice of the operator"),
    ("CONTACT", "", "a choice of the operator"),
    ("DATA_LICENSE", "", "a choice of the operator"),
    ("CACHE_BYTES", "", "the memory limits are set for the default"),
    ("CDN_MAX_AGE_SECONDS", "", "there is no CDN: docs/operations/cdn.md"),
    ("DATABASE_READ_HOST", "", "there is one server"),
    ("DATABASE_READ_URL", "", "DATABASE_READ_HOST is set where there are standbys"),
    ("EXPORTS_DIR", "", "a choice of the operator: docs/operations/exports.md has the volume"),
    ("EXPORT_SIGN_KEY_FILE", "", "there is no folder of exports"),
    ("HEADER_READ_TIMEOUT_MS", "", "the reverse proxies are configured for the default"),
    ("MAX_CONNECTIONS", "", "the open files that it needs are permitted"),
    ("MAX_CONNECTIONS_PER_PEER", "", "does not apply to trusted proxies"),
    ("MAX_FILLS_IN_FLIGHT", "", "the default is measured: benchmarks/results/2026-11-23-overload.md"),
    ("MAX_LONG_POLLS", "", "a quarter of the connections, unless a proxy allows for fewer"),
    ("MAX_REQUESTS_IN_FLIGHT", "", "the default is measured: benchmarks/results/2026-11-22-overload.md"),
    ("METRICS_LISTEN", "ingest", "ends between two scrapes"),
    ("OBJECTS_PUBLIC_URL", "", "there is no public bucket"),
    ("OBJECT_STORE_URL", "", "a choice of the operator: docs/operations/objects.md"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "", "without a collector nothing is pushed"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "", "a collector in the same network needs no key"),
    ("OTEL_TRACES_SAMPLER_ARG", "", "a choice of the operator"),
    ("PUBLIC_URL", "", "a choice of the operator"),
    ("POSTGRES_MAX_SEARCHES", "", "depends on the processors of PostgreSQL, which an overlay knows"),
    ("PURGE_FORM", "", "there is no CDN"),
    ("PURGE_HEADER", "", "there is no CDN"),
    ("PURGE_URL", "", "there is no CDN"),
    ("RATE_LIMIT_DETAIL", "", "docs/api.md names the default"),
    ("RATE_LIMIT_LIST", "", "docs/api.md names the default"),
    ("RATE_LIMIT_LOOKUP", "", "docs/api.md names the default"),
    ("RATE_LIMIT_OTHER", "", "docs/api.md names the default"),
    ("RATE_LIMIT_BULK", "", "docs/api.md names the default"),
    ("RATE_LIMIT_FEED", "", "docs/api.md names the default"),
    ("RATE_LIMIT_PAGE", "", "docs/api.md names the default"),
    ("RATE_LIMIT_PREVIEW", "", "docs/api.md names the default"),
    ("RATE_LIMIT_ROX", "", "docs/api.md names the default"),
    ("REDIS_CLUSTER_URLS", "", "REDIS_URL is set"),
    ("REQUEST_DEADLINE_MS", "", "the reverse proxies are configured for the default"),
    ("RUST_LOG", "", "the default logs what operators need"),
    ("SERVICES", "", "a replica serves everything"),
    ("SEARCH_MAX_LAG_MS", "", "the default is that of the service level objective"),
    ("TERMS_URL", "", "a choice of the operator"),
    ("WORKER_THREADS", "", "one for each core that the container may use"),
    ("WRITE_TIMEOUT_MS", "", "the reverse proxies read faster"),
];

/// A container that runs one of the programs.
#[derive(Debug)]
struct Container {
    /// Its file and name, for messages.
    name: String,
    program: &'static str,
    arguments: Vec<String>,
    variables: BTreeMap<String, String>,
    secrets: BTreeSet<String>,
}

impl Container {
    /// Whether a setting has a value, itself or in a file.
    fn has(&self, setting: &str) -> bool {
        let has = |name: &str| self.variables.get(name).is_some_and(|value| !value.is_empty());
        let other = setting.strip_suffix("_FILE").map_or(format!("{setting}_FILE"), str::to_owned);
        has(setting) || has(&other)
    }
}

/// Whether a setting needs no variable in a container that runs this command.
fn is_optional(setting: &str, command: &str) -> bool {
    // A file may be the only form of it.
    let names = [setting, setting.strip_suffix("_FILE").unwrap_or(setting)];
    OPTIONAL.iter().any(|(name, of, _)| names.contains(name) && command.ends_with(of))
}

/// The settings in the help of a command.
fn settings(program: &str, command: &str) -> BTreeSet<String> {
    let help = IndexerRun::run(program_command(program).args([command, "--help"]).env_clear()).succeeded();
    let names = help.split("[env: ").skip(1).filter_map(|rest| rest.split_once(['=', ']']));
    let names: BTreeSet<_> = names.map(|(name, _)| name.to_owned()).collect();
    assert!(names.len() > 5, "{program} {command}: {names:?}");
    names
}

/// The settings of all commands of a program that containers run.
fn all_settings(program: &str) -> BTreeSet<String> {
    let commands: &[&str] = match program {
        "chart-index" => &["serve"],
        _ => &["migrate", "ingest", "follow", "sync", "rebuild", "verify"],
    };
    commands.iter().flat_map(|command| settings(program, command)).collect()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().map(|values| values.iter().map(text).collect()).unwrap_or_default()
}

/// The containers of `docker-compose.yml` that run one of the programs.
fn compose_containers() -> Vec<Container> {
    let compose = compose();
    let services = compose["services"].as_object().expect("services");
    let containers: Vec<_> = services
        .iter()
        .filter(|(_, service)| text(&service["image"]).contains("chart-index"))
        .map(|(name, service)| compose_container(name, service))
        .collect();
    assert!(containers.len() >= 5, "{containers:#?}");
    containers
}

fn compose_container(name: &str, service: &Value) -> Container {
    let mut variables = BTreeMap::new();
    for path in texts(&service["env_file"]) {
        // The file of the operator.
        if path != "compose/local.env" {
            variables.extend(variables_of(&workspace_root().join(path)));
        }
    }
    let environment = service["environment"].as_object().expect("variables");
    variables.extend(environment.iter().map(|(name, value)| (name.clone(), text(value))));
    let entrypoint = texts(&service["entrypoint"]);
    let program = if entrypoint.is_empty() { "chart-index" } else { "chart-indexer" };
    assert!(entrypoint.is_empty() || entrypoint == ["/usr/local/bin/chart-indexer"], "{entrypoint:?}");
    Container {
        name: format!("docker-compose.yml: {name}"),
        program,
        arguments: arguments(&service["command"]),
        variables,
        secrets: texts(&service["secrets"]).iter().map(|name| format!("/run/secrets/{name}")).collect(),
    }
}

/// The variables of a file, which has a line for each.
fn variables_of(file: &Path) -> Vec<(String, String)> {
    let content = std::fs::read_to_string(file).expect("a file with settings");
    let lines = content.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let variable = |line: &str| {
        let (name, value) = line.split_once('=').expect("NAME=value");
        (name.to_owned(), value.to_owned())
    };
    lines.map(variable).collect()
}

/// The containers of an overlay that run one of the programs.
fn kubernetes_containers(overlay: &str) -> Vec<Container> {
    let rendered = rendered(overlay);
    let objects = Objects::new(overlay, &rendered);
    let mut containers = Vec::new();
    for workload in objects.programs() {
        for container in workload.containers() {
            let variables = objects.variables(container).into_iter();
            let is_indexer = texts(&container["command"]) == ["/usr/local/bin/chart-indexer"];
            containers.push(Container {
                name: format!("{overlay}: {}", workload.title()),
                program: if is_indexer { "chart-indexer" } else { "chart-index" },
                arguments: arguments(&container["args"]),
                variables: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
                secrets: secret_files(&workload, container),
            });
        }
    }
    assert!(containers.len() >= 5, "{overlay}: {containers:#?}");
    containers
}

/// The arguments of a container, by default those of the image.
fn arguments(given: &Value) -> Vec<String> {
    Some(texts(given)).filter(|arguments| !arguments.is_empty()).unwrap_or_else(|| vec!["serve".to_owned()])
}

fn containers() -> Vec<Container> {
    let kubernetes = OVERLAYS.iter().flat_map(|overlay| kubernetes_containers(overlay));
    compose_containers().into_iter().chain(kubernetes).collect()
}

#[test]
fn every_variable_is_a_setting_of_its_program() {
    let settings = BTreeMap::from(["chart-index", "chart-indexer"].map(|name| (name, all_settings(name))));
    for container in containers() {
        for name in container.variables.keys() {
            let is_known =
                settings[container.program].contains(name) || LIBRARY_VARIABLES.contains(&name.as_str());
            assert!(is_known, "{}: {} has no setting {name}", container.name, container.program);
        }
    }
}

#[test]
fn no_setting_is_missing() {
    let mut needless: BTreeSet<_> = OPTIONAL.iter().collect();
    for container in containers() {
        let command = &container.arguments[0];
        for setting in settings(container.program, command) {
            if !container.has(&setting) {
                assert!(is_optional(&setting, command), "{}: {setting} is missing", container.name);
                needless.retain(|(name, of, _)| *name != setting || !command.ends_with(of));
            }
        }
    }
    assert!(needless.is_empty(), "set in all containers, or not settings: {needless:#?}");
}

#[test]
fn files_of_settings_are_mounted() {
    for container in containers() {
        let files = container.variables.iter().filter(|(name, _)| name.ends_with("_FILE"));
        let files: Vec<_> = files.filter(|(name, _)| *name != "SSL_CERT_FILE").collect();
        assert!(!files.is_empty(), "{} has no secrets", container.name);
        for (name, path) in files {
            assert!(container.secrets.contains(path), "{}: {name}: {:?}", container.name, container.secrets);
        }
    }
}

#[test]
fn only_haproxy_and_replicas_are_trusted() {
    let compose = compose();
    let subnet = &compose["networks"]["edge"]["ipam"]["config"][0]["subnet"];
    let services = compose["services"].as_object().expect("services");
    for (name, service) in services {
        let is_on_edge = compose::networks(service).contains("edge");
        let is_replica = compose::REPLICAS.contains(&name.as_str());
        assert_eq!(is_on_edge, is_replica || name == "haproxy", "{name}");
        if is_replica {
            let variables = compose_container(name, service).variables;
            assert_eq!(variables["TRUSTED_PROXIES"], text(subnet), "{name}");
        }
    }
}
