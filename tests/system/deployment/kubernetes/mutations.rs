//! Changes of rendered objects, each of which has to violate an invariant.

use serde_json::Value;

use super::objects::name;

/// Fields whose removal, anywhere in an object of these kinds, has to violate an invariant. Elements of arrays
/// are removed as well.
const GUARDED: &[(&[&str], &[&str])] = &[
    (&["Namespace"], &["labels"]),
    (
        &["Deployment", "StatefulSet", "Job", "CronJob"],
        &[
            "allowPrivilegeEscalation",
            "automountServiceAccountToken",
            "capabilities",
            "concurrencyPolicy",
            "containers",
            "drop",
            "enableServiceLinks",
            "envFrom",
            "fsGroup",
            "labelSelector",
            "limits",
            "livenessProbe",
            "matchLabelKeys",
            "matchLabels",
            "maxUnavailable",
            "ports",
            "projected",
            "readOnlyRootFilesystem",
            "readinessProbe",
            "requests",
            "resources",
            "runAsGroup",
            "runAsNonRoot",
            "runAsUser",
            "seccompProfile",
            "securityContext",
            "selector",
            "serviceAccountName",
            "sizeLimit",
            "sources",
            "startupProbe",
            "suspend",
            "topologySpreadConstraints",
            "updateStrategy",
            "volumeMounts",
            "volumes",
        ],
    ),
    (&["ServiceAccount"], &["automountServiceAccountToken"]),
    (&["PodDisruptionBudget"], &["matchLabels", "maxUnavailable", "selector", "unhealthyPodEvictionPolicy"]),
    (&["NetworkPolicy"], &["egress", "from", "ingress", "podSelector", "policyTypes", "ports", "to"]),
    (
        &["HorizontalPodAutoscaler"],
        &["behavior", "containerResource", "metrics", "minReplicas", "scaleDown", "scaleTargetRef"],
    ),
    (&["HTTPRoute"], &["backendRefs", "filters", "matches", "parentRefs", "path", "rules", "timeouts"]),
    (&["Service"], &["ports", "selector"]),
    (&["PodMonitor"], &["jobLabel", "podMetricsEndpoints", "port", "relabelings", "selector"]),
    (&["Probe"], &["static"]),
    (&["ScheduledBackup"], &["cluster", "method", "pluginConfiguration"]),
];

/// Values that have to violate an invariant: the kind, a part of the name, the path and the value.
const CHANGES: &[(&str, &str, &str, &str)] = &[
    ("ConfigMap", "chart-index-", "/data/TRUSTED_PROXIES", "\"\""),
    ("ConfigMap", "chart-index-", "/data/DRAIN_DELAY_MS", "\"15000\""),
    ("ConfigMap", "chart-index-", "/data/DATABASE_MAX_CONNECTIONS", "\"160\""),
    ("ConfigMap", "chart-index-", "/data/MAX_FILLS_IN_FLIGHT", "\"64\""),
    ("ConfigMap", "chart-index-", "/data/WORKER_THREADS", "\"64\""),
    ("ConfigMap", "chart-index-", "/data/HEADER_READ_TIMEOUT_MS", "\"10000\""),
    ("ConfigMap", "chart-index-", "/data/CACHE_BYTES", "\"1000000000\""),
    ("ConfigMap", "chart-indexer-", "/data/DATABASE_URL_FILE", "\"/elsewhere\""),
    ("Cluster", "postgres", "/spec/postgresql/parameters/max_connections", "\"90\""),
    ("Deployment", "chart-index", "/spec/strategy/rollingUpdate/maxUnavailable", "1"),
    ("Deployment", "chart-index", "/spec/template/spec/terminationGracePeriodSeconds", "24"),
    (
        "Deployment",
        "chart-index",
        "/spec/template/spec/containers/0/livenessProbe/httpGet/path",
        "\"/readyz\"",
    ),
    ("Deployment", "chart-index", "/spec/template/spec/containers/0/image", "\"chart-index:other\""),
    (
        "Deployment",
        "chart-index",
        "/spec/template/spec/containers/0/lifecycle",
        "{\"preStop\": {\"sleep\": {\"seconds\": 5}}}",
    ),
    ("Deployment", "chart-index", "/spec/template/spec/containers/0/resources/limits/cpu", "\"1\""),
    ("Deployment", "chart-index", "/spec/template/spec/hostNetwork", "true"),
    ("Deployment", "sync", "/spec/replicas", "2"),
    ("Deployment", "sync", "/spec/strategy/type", "\"Recreate\""),
    ("Deployment", "sync", "/spec/template/spec/containers/0/env", "[{\"name\": \"A\", \"valueFrom\": {}}]"),
    ("Job", "migrate", "/metadata/name", "\"chart-indexer-migrate-0\""),
    ("NetworkPolicy", "meilisearch", "/spec/ingress/0/ports/0/port", "1"),
    ("NetworkPolicy", "default-deny", "/spec/ingress", "[{}]"),
    ("HTTPRoute", "chart-index", "/spec/rules/1/matches/0/path/value", "\"/api/change\""),
    ("Service", "chart-index", "/spec/ports/0/targetPort", "\"none\""),
    ("CronJob", "rebuild", "/spec/suspend", "false"),
    ("CronJob", "verify", "/spec/suspend", "true"),
    ("Namespace", "chart-index", "/metadata/labels/pod-security.kubernetes.io~1enforce", "\"baseline\""),
];

/// Changes that only apply to an overlay which has these objects.
const CHANGES_WITH_STANDBYS: &[(&str, &str, &str, &str)] = &[
    ("Cluster", "postgres", "/spec/instances", "1"),
    ("Cluster", "postgres", "/spec/postgresql/synchronous", "null"),
    ("Cluster", "postgres", "/spec/plugins", "[]"),
    ("HorizontalPodAutoscaler", "chart-index", "/spec/maxReplicas", "100"),
    (
        "HorizontalPodAutoscaler",
        "chart-index",
        "/spec/metrics/0/containerResource/target/averageUtilization",
        "90",
    ),
    ("Deployment", "chart-index", "/spec/replicas", "2"),
    ("ConfigMap", "chart-index-", "/data/DATABASE_READ_HOST", "\"postgres-rw\""),
];

/// A change of one object.
pub(super) struct Mutation {
    pub(super) description: String,
    index: usize,
    /// What the object becomes; nothing if it is removed.
    changed: Option<Value>,
}

impl Mutation {
    /// The objects after the change.
    pub(super) fn apply<'a>(&'a self, objects: &'a [Value]) -> Vec<&'a Value> {
        let (before, after) = (&objects[..self.index], &objects[self.index + 1..]);
        before.iter().chain(&self.changed).chain(after).collect()
    }
}

/// All changes of these objects: without each object, without each guarded field, and with other values.
pub(super) fn mutations(objects: &[Value]) -> Vec<Mutation> {
    let mut mutations = other_values(objects);
    for (index, object) in objects.iter().enumerate() {
        mutations.push(Mutation { description: format!("without {}", title(object)), index, changed: None });
        for path in guarded_paths(object) {
            let mut changed = object.clone();
            remove(&mut changed, &path);
            let description = format!("{} without {path}", title(object));
            mutations.push(Mutation { description, index, changed: Some(changed) });
        }
    }
    mutations
}

fn other_values(objects: &[Value]) -> Vec<Mutation> {
    let standbys = objects.iter().any(|object| object["kind"] == "ScheduledBackup");
    let with_standbys = if standbys { CHANGES_WITH_STANDBYS } else { &[] };
    let of = |(kind, part, path, value): &(&str, &str, &str, &str)| {
        let matches = |object: &Value| {
            object["kind"] == *kind && name(object).contains(part) && !name(object).contains("dashboard")
        };
        let index = objects.iter().position(matches).unwrap_or_else(|| panic!("no {kind} {part}"));
        let mut changed = objects[index].clone();
        let (parent, field) = path.rsplit_once('/').expect("a path");
        let parent = changed.pointer_mut(parent).unwrap_or_else(|| panic!("{kind} {part}: no {path}"));
        parent[field.replace("~1", "/")] = serde_json::from_str(value).expect("JSON");
        Mutation { description: format!("{kind} {part}: {path} {value}"), index, changed: Some(changed) }
    };
    CHANGES.iter().chain(with_standbys).map(of).collect()
}

/// The paths of the guarded fields of an object and of the elements of guarded arrays.
fn guarded_paths(object: &Value) -> Vec<String> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let fields: Vec<&str> = GUARDED
        .iter()
        .filter(|(kinds, _)| kinds.contains(&kind))
        .flat_map(|(_, fields)| *fields)
        .copied()
        .collect();
    let mut paths = Vec::new();
    if !fields.is_empty() {
        collect(object, "", &fields, &mut paths);
    }
    paths
}

fn collect(value: &Value, path: &str, fields: &[&str], paths: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(object) => {
            object.iter().map(|(field, child)| (field.replace('/', "~1"), child)).collect()
        }
        Value::Array(array) => {
            array.iter().enumerate().map(|(index, child)| (index.to_string(), child)).collect()
        }
        _ => return,
    };
    let parent = path.rsplit('/').next().unwrap_or_default();
    let in_guarded_array = value.is_array() && fields.contains(&parent);
    for (field, child) in children {
        let path = format!("{path}/{field}");
        // The metadata of an object is not guarded, except for the namespace.
        if path == "/metadata" && !fields.contains(&"labels") {
            continue;
        }
        if fields.contains(&field.as_str()) || in_guarded_array {
            paths.push(path.clone());
        }
        collect(child, &path, fields, paths);
    }
}

fn remove(object: &mut Value, path: &str) {
    let (parent, field) = path.rsplit_once('/').expect("a path");
    match object.pointer_mut(parent).expect("a path of the object") {
        Value::Object(parent) => {
            parent.remove(&field.replace("~1", "/"));
        }
        Value::Array(parent) => {
            parent.remove(field.parse().expect("an index"));
        }
        _ => unreachable!("only objects and arrays have parts"),
    }
}

fn title(object: &Value) -> String {
    format!("{} {}", object["kind"].as_str().unwrap_or_default(), name(object))
}
