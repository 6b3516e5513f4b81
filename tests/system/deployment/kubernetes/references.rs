//! Invariants of names that refer to other objects.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::objects::{Objects, Workload, array, name, text};

/// Secrets that operators or the component `postgres` create: docs/operations/kubernetes.md.
const SECRETS: &[&str] = &["meilisearch", "postgres-app", "redis"];

/// The files that each workload of the programs reads secrets from: jobs the first, and only replicas the last.
const SECRET_SETTINGS: &[&str] = &["DATABASE_URL_FILE", "MEILISEARCH_API_KEY_FILE", "REDIS_URL_FILE"];

pub(super) fn services_select_pods(objects: &Objects) -> Vec<String> {
    let mut violations = Vec::new();
    for service in objects.of_kind("Service") {
        let selector = json!({"matchLabels": service["spec"]["selector"]});
        let selected: Vec<_> =
            objects.workloads().into_iter().filter(|workload| workload.is_selected_by(&selector)).collect();
        let ports = array(&service["spec"]["ports"]);
        let reaches = |port: &Value| selected.iter().all(|workload| has_port(workload, &port["targetPort"]));
        if selected.len() != 1 || ports.is_empty() || !ports.iter().all(reaches) {
            violations.push(name(service).to_owned());
        }
    }
    for workload in objects.workloads().into_iter().filter(Workload::is_permanent) {
        if !workload.is_selected_by(&workload.object["spec"]["selector"]) {
            violations.push(workload.title());
        }
    }
    violations
}

fn has_port(workload: &Workload, wanted: &Value) -> bool {
    let ports = workload.containers().into_iter().flat_map(|container| array(&container["ports"]));
    ports.into_iter().any(|port| port["name"] == *wanted && port["containerPort"].is_u64())
}

/// Everything leads to the replicas, without headers by which clients would choose what is traced. Requests for
/// changes may wait, and downloads have no timeout.
pub(super) fn routes_lead_to_services(objects: &Objects) -> Vec<String> {
    let Some(route) = objects.find("HTTPRoute", "chart-index") else { return vec!["no route".to_owned()] };
    let mut violations = Vec::new();
    let wanted = [
        route_rule(&["/"], "10s", "chart-index"),
        route_rule(&["/api/changes"], "70s", "chart-index"),
        route_rule(&["/api/charts/filter", "/api/exports"], "0s", "chart-index"),
    ];
    if array(&route["spec"]["rules"]) != wanted {
        violations.push("rules".to_owned());
    }
    if text(&route["spec"]["parentRefs"][0]["name"]).is_empty() {
        violations.push("no gateway".to_owned());
    }
    let ports = objects.find("Service", "chart-index").map(|service| &service["spec"]["ports"][0]["port"]);
    if ports != Some(&json!(8080)) {
        violations.push("no service".to_owned());
    }
    violations
}

/// A rule of the route, for requests with one of these beginnings of a path.
pub(super) fn route_rule(paths: &[&str], timeout: &str, service: &str) -> Value {
    let matches: Vec<_> =
        paths.iter().map(|path| json!({"path": {"type": "PathPrefix", "value": path}})).collect();
    json!({
        "matches": matches,
        "timeouts": {"request": timeout},
        "filters": [{
            "type": "RequestHeaderModifier",
            "requestHeaderModifier": {"remove": ["traceparent", "tracestate", "X-Request-Id"]},
        }],
        "backendRefs": [{"name": service, "port": 8080}],
    })
}

/// No variable has a secret, and each setting that names a file names one that is mounted.
pub(super) fn secrets_are_files(objects: &Objects) -> Vec<String> {
    let mut violations = Vec::new();
    for workload in objects.workloads() {
        for container in workload.containers() {
            let from = array(&container["env"]).iter().filter(|variable| variable.get("valueFrom").is_some());
            violations.extend(from.map(|variable| format!("{}: {variable}", workload.title())));
            let from = array(&container["envFrom"]).iter().filter(|source| source.get("secretRef").is_some());
            violations.extend(from.map(|source| format!("{}: {source}", workload.title())));
            let files = secret_files(&workload, container);
            for (variable, path) in objects.variables(container) {
                if variable.ends_with("_FILE") && !files.contains(path) {
                    violations.push(format!("{}: {variable}: {path}", workload.title()));
                }
            }
        }
    }
    violations.extend(objects.programs().iter().flat_map(|workload| missing_settings(objects, workload)));
    violations.extend(objects.of_kind("Secret").map(|secret| format!("Secret {}", name(secret))));
    violations
}

fn missing_settings(objects: &Objects, workload: &Workload) -> Vec<String> {
    let is_replica = objects.replicas().iter().any(|replica| replica.title() == workload.title());
    let wanted = match &workload.object["kind"] {
        kind if kind == "Job" => &SECRET_SETTINGS[..1],
        _ if is_replica => SECRET_SETTINGS,
        _ => &SECRET_SETTINGS[..2],
    };
    let mut missing = Vec::new();
    for container in workload.containers() {
        let variables = objects.variables(container);
        let absent = wanted.iter().filter(|setting| !variables.contains_key(**setting));
        missing.extend(absent.map(|setting| format!("{} without {setting}", workload.title())));
    }
    missing
}

/// The files with secrets of a container.
pub(crate) fn secret_files(workload: &Workload, container: &Value) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for mount in array(&container["volumeMounts"]) {
        let volumes = array(&workload.pod()["volumes"]);
        let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).unwrap_or(&Value::Null);
        let projected = array(&volume["projected"]["sources"]).iter().map(|source| &source["secret"]);
        for item in projected.chain([&volume["secret"]]).flat_map(|secret| array(&secret["items"])) {
            files.insert(format!("{}/{}", text(&mount["mountPath"]), text(&item["path"])));
        }
    }
    files
}

/// Configurations, accounts and volumes exist, and secrets are those that the operator creates.
pub(super) fn references_exist(objects: &Objects) -> Vec<String> {
    let mut violations = Vec::new();
    for workload in objects.workloads() {
        let pod = workload.pod();
        let volumes = array(&pod["volumes"]);
        let templates = array(&workload.object["spec"]["volumeClaimTemplates"]);
        let mut exists = |kind: &str, name: &str| {
            if objects.find(kind, name).is_none() {
                violations.push(format!("{}: {kind} {name:?}", workload.title()));
            }
        };
        exists("ServiceAccount", text(&pod["serviceAccountName"]));
        for volume in volumes {
            if let Some(map) = volume.get("configMap") {
                exists("ConfigMap", text(&map["name"]));
            }
            if let Some(claim) = volume.get("persistentVolumeClaim") {
                exists("PersistentVolumeClaim", text(&claim["claimName"]));
            }
        }
        let sources = workload.containers().into_iter().flat_map(|container| array(&container["envFrom"]));
        // Those from secrets are a violation of another invariant.
        for source in sources.filter(|source| source.get("secretRef").is_none()) {
            exists("ConfigMap", text(&source["configMapRef"]["name"]));
        }
        let projected = volumes.iter().flat_map(|volume| array(&volume["projected"]["sources"]));
        let projected = projected.map(|source| text(&source["secret"]["name"]));
        let mounted = volumes.iter().filter_map(|volume| volume["secret"]["secretName"].as_str());
        let unknown = projected.chain(mounted).filter(|secret| !SECRETS.contains(secret));
        violations.extend(unknown.map(|secret| format!("{}: Secret {secret:?}", workload.title())));
        for container in workload.containers() {
            let named = |volume: &&Value, mount: &Value| {
                volume["name"] == mount["name"] || volume["metadata"]["name"] == mount["name"]
            };
            let mounts = array(&container["volumeMounts"]);
            let lost = mounts
                .iter()
                .filter(|mount| !volumes.iter().chain(templates).any(|volume| named(&volume, mount)));
            violations.extend(lost.map(|mount| format!("{}: {mount}", workload.title())));
            let unused = volumes
                .iter()
                .chain(templates)
                .filter(|volume| !mounts.iter().any(|mount| named(volume, mount)));
            violations.extend(unused.map(|volume| format!("{}: {volume} is not mounted", workload.title())));
        }
    }
    violations
}

/// Each monitor selects pods with the port, and gives them the name of the job and the labels on which rules
/// rely. Probes request the public name.
pub(super) fn monitors_select_ports(objects: &Objects) -> Vec<String> {
    let mut violations = Vec::new();
    let label = |monitor: &Value, name: &str| {
        let mut endpoints = array(&monitor["spec"]["podMetricsEndpoints"]).iter();
        endpoints
            .any(|one| array(&one["relabelings"]).iter().any(|relabeling| relabeling["targetLabel"] == name))
    };
    for monitor in objects.of_kind("PodMonitor") {
        let labels: &[&str] = if name(monitor) == "postgres" { &["instance", "job"] } else { &["instance"] };
        violations.extend(
            labels
                .iter()
                .filter(|wanted| !label(monitor, wanted))
                .map(|wanted| format!("{}: {wanted}", name(monitor))),
        );
    }
    for probe in objects.of_kind("Probe") {
        let route =
            objects.find("HTTPRoute", "chart-index").map(|route| text(&route["spec"]["hostnames"][0]));
        let host = format!("https://{}/", route.unwrap_or_default());
        let targets = array(&probe["spec"]["targets"]["staticConfig"]["static"]);
        if targets.len() != 3 || !targets.iter().all(|target| text(target).starts_with(&host)) {
            violations.push("Probe: targets".to_owned());
        }
    }
    // CloudNativePG creates the pods of PostgreSQL.
    let clusters = json!({"matchExpressions": [{"key": "cnpg.io/cluster", "operator": "Exists"}]});
    for monitor in objects.of_kind("PodMonitor").filter(|monitor| name(monitor) == "postgres") {
        let spec = &monitor["spec"];
        if spec["selector"] != clusters || spec["podMetricsEndpoints"][0]["port"] != "metrics" {
            violations.push("PodMonitor postgres".to_owned());
        }
    }
    for monitor in objects.of_kind("PodMonitor").filter(|monitor| name(monitor) != "postgres") {
        let spec = &monitor["spec"];
        let selected: Vec<_> = objects
            .workloads()
            .into_iter()
            .filter(|workload| workload.is_selected_by(&spec["selector"]))
            .collect();
        let endpoints = array(&spec["podMetricsEndpoints"]);
        let job = selected.iter().map(|workload| &workload.labels()[text(&spec["jobLabel"])]);
        let right = job.clone().all(|job| job == name(monitor));
        let reaches = selected
            .iter()
            .all(|workload| endpoints.iter().all(|endpoint| has_port(workload, &endpoint["port"])));
        if selected.is_empty() || endpoints.len() != 1 || !right || !reaches {
            violations.push(name(monitor).to_owned());
        }
    }
    for rule in objects.of_kind("PrometheusRule").filter(|rule| array(&rule["spec"]["groups"]).is_empty()) {
        violations.push(name(rule).to_owned());
    }
    violations
}
