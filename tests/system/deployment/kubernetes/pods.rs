//! Invariants of pods.

use serde_json::{Value, json};

use super::objects::{Objects, Workload, array, bytes, name, text};

/// What the pod security standard `restricted` wants, and more: no writable file systems, one user.
pub(super) fn pods_are_restricted(objects: &Objects) -> Vec<String> {
    let mut violations = Vec::new();
    for workload in objects.workloads() {
        let pod = &workload.pod()["securityContext"];
        let wanted = [
            ("runAsNonRoot", json!(true)),
            ("runAsUser", json!(65532)),
            ("runAsGroup", json!(65532)),
            ("fsGroup", json!(65532)),
            ("seccompProfile", json!({"type": "RuntimeDefault"})),
        ];
        violations.extend(different(&workload, pod, &wanted));
        for container in workload.containers() {
            let wanted = [
                ("allowPrivilegeEscalation", json!(false)),
                ("readOnlyRootFilesystem", json!(true)),
                ("capabilities", json!({"drop": ["ALL"]})),
            ];
            violations.extend(different(&workload, &container["securityContext"], &wanted));
        }
        if workload.containers().is_empty() {
            violations.push(format!("{} has no containers", workload.title()));
        }
        let host = ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"];
        violations.extend(
            host.iter().filter(|field| workload.pod().get(field).is_some()).map(|field| (*field).to_owned()),
        );
        let volumes = array(&workload.pod()["volumes"]);
        violations.extend(
            volumes.iter().filter(|volume| volume.get("hostPath").is_some()).map(|_| workload.title()),
        );
    }
    violations
}

/// The fields of an object that have other values.
fn different(workload: &Workload, object: &Value, wanted: &[(&str, Value)]) -> Vec<String> {
    let different = wanted.iter().filter(|(field, value)| object[field] != *value);
    different.map(|(field, _)| format!("{}: {field}", workload.title())).collect()
}

pub(super) fn pods_have_no_token(objects: &Objects) -> Vec<String> {
    let mut violations = Vec::new();
    for workload in objects.workloads() {
        let pod = workload.pod();
        let account = objects.find("ServiceAccount", text(&pod["serviceAccountName"]));
        let tokens = [
            &pod["automountServiceAccountToken"],
            &account.unwrap_or(&Value::Null)["automountServiceAccountToken"],
        ];
        if tokens.iter().any(|token| **token != json!(false)) {
            violations.push(workload.title());
        }
        // Variables of services would be settings of Redis and Meilisearch.
        if pod["enableServiceLinks"] != json!(false) {
            violations.push(format!("{}: enableServiceLinks", workload.title()));
        }
    }
    violations
}

pub(super) fn memory_is_limited_and_cpu_is_not(objects: &Objects) -> Vec<String> {
    let mut violations = Vec::new();
    for workload in objects.workloads() {
        for container in workload.containers() {
            let (requests, limits) = (&container["resources"]["requests"], &container["resources"]["limits"]);
            let has = bytes(&requests["memory"]).is_some()
                && requests["cpu"].is_string()
                && bytes(&limits["memory"]).is_some();
            let cache =
                objects.variables(container).get("CACHE_BYTES").map_or(Some(0), |cache| cache.parse().ok());
            if !has || limits.get("cpu").is_some() || !has_room_for(limits, cache) {
                violations.push(workload.title());
            }
        }
    }
    for claim in objects
        .workloads()
        .iter()
        .flat_map(|workload| array(&workload.object["spec"]["volumeClaimTemplates"]))
    {
        if bytes(&claim["spec"]["resources"]["requests"]["storage"]).is_none() {
            violations.push(format!("{} requests no storage", name(claim)));
        }
    }
    for volume in objects.workloads().iter().flat_map(|workload| array(&workload.pod()["volumes"])) {
        if volume.get("emptyDir").is_some_and(|folder| bytes(&folder["sizeLimit"]).is_none()) {
            violations.push(format!("emptyDir {} has no limit", text(&volume["name"])));
        }
    }
    violations
}

/// Whether the memory limit of a replica is that of docs/operations/capacity.md.
fn has_room_for(limits: &Value, cache: Option<u64>) -> bool {
    match (bytes(&limits["memory"]), cache) {
        (Some(limit), Some(cache)) => cache == 0 || limit > cache + (512 << 20),
        _ => false,
    }
}

pub(super) fn permanent_pods_have_probes(objects: &Objects) -> Vec<String> {
    let mut violations = Vec::new();
    for workload in objects.workloads().into_iter().filter(Workload::is_permanent) {
        for container in workload.containers() {
            for (probe, expected) in probes(name(workload.object)) {
                if let Some(problem) = probe_problem(container, &container[probe], expected.as_ref()) {
                    violations.push(format!("{}: {probe}: {problem}", workload.title()));
                }
            }
        }
    }
    violations
}

/// The probes of a workload, and their requests where these are HTTP.
fn probes(workload: &str) -> [(&'static str, Option<Value>); 3] {
    let get = |path: &str, port: &str| Some(json!({"path": path, "port": port}));
    let (startup, readiness, liveness) = match workload {
        "chart-index" | "chart-index-browse" => {
            (get("/livez", "admin"), get("/readyz", "admin"), get("/livez", "admin"))
        }
        "chart-indexer-sync" => {
            (get("/livez", "metrics"), get("/readyz", "metrics"), get("/livez", "metrics"))
        }
        "meilisearch" => (get("/health", "http"), get("/health", "http"), get("/health", "http")),
        _ => (None, None, None),
    };
    [("startupProbe", startup), ("readinessProbe", readiness), ("livenessProbe", liveness)]
}

fn probe_problem(container: &Value, probe: &Value, expected: Option<&Value>) -> Option<&'static str> {
    if probe.is_null() {
        return Some("missing");
    }
    let port = ["httpGet", "tcpSocket"].iter().find_map(|action| probe[action].get("port"));
    if port.is_some_and(|port| array(&container["ports"]).iter().all(|named| named["name"] != *port)) {
        return Some("no such port");
    }
    let other = || probe["exec"]["command"].is_array() || probe["tcpSocket"]["port"].is_string();
    let asks = expected.map_or_else(other, |request| probe["httpGet"] == *request);
    if !asks {
        return Some("another request");
    }
    let numbers = ["periodSeconds", "failureThreshold"].iter().all(|field| probe[field].is_u64());
    if numbers { None } else { Some("no period") }
}

/// The process drains itself: `DRAIN_DELAY_MS`, then `SHUTDOWN_GRACE_MS`, and 5 s more. A hook would delay the
/// signal.
pub(super) fn pods_have_time_to_drain(objects: &Objects) -> Vec<String> {
    let mut violations = Vec::new();
    for workload in objects.workloads() {
        let hooks = workload
            .containers()
            .into_iter()
            .filter(|container| container["lifecycle"].get("preStop").is_some());
        violations.extend(hooks.map(|_| format!("{} has a preStop hook", workload.title())));
    }
    for workload in objects.replicas() {
        let variables = objects.variables(workload.containers()[0]);
        let seconds = |name: &str| {
            variables.get(name).and_then(|value| value.parse::<u64>().ok()).map(|value| value.div_ceil(1000))
        };
        let needed = seconds("DRAIN_DELAY_MS")
            .zip(seconds("SHUTDOWN_GRACE_MS"))
            .map(|(delay, grace)| delay + grace + 5);
        if needed.is_none() || workload.pod()["terminationGracePeriodSeconds"].as_u64() != needed {
            violations.push(format!("{}: {needed:?} s needed", workload.title()));
        }
    }
    violations
}

pub(super) fn pods_spread_over_nodes(objects: &Objects) -> Vec<String> {
    let mut violations = Vec::new();
    let workloads =
        objects.workloads().into_iter().filter(|workload| workload.object["kind"] == "StatefulSet");
    for workload in objects.replicas().into_iter().chain(workloads) {
        for (key, action) in
            [("kubernetes.io/hostname", "DoNotSchedule"), ("topology.kubernetes.io/zone", "ScheduleAnyway")]
        {
            let mut wanted = json!({
                "topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": action,
                "labelSelector": workload.object["spec"]["selector"],
            });
            if action == "DoNotSchedule" {
                wanted["nodeTaintsPolicy"] = json!("Honor");
            }
            // Both revisions of a rollout would count, and block each other.
            if workload.object["kind"] == "Deployment" {
                wanted["matchLabelKeys"] = json!(["pod-template-hash"]);
            }
            if !array(&workload.pod()["topologySpreadConstraints"]).contains(&wanted) {
                violations.push(format!("{}: {key}", workload.title()));
            }
        }
    }
    violations
}
