//! `scripts/deployment validate`, with which `make lint` checks every overlay, reports what is wrong.

use std::io::Seek;
use std::process::Command;

use chart_index_tests::workspace_root;
use serde_json::{Value, json};

use super::objects::name;
use super::rendered;

const UNKNOWN: &str = "unknownField";

/// A field of an object of each kind of the operators, and of one of Kubernetes itself, that the schema lacks.
const UNKNOWN_FIELDS: [(&str, &str); 8] = [
    ("Deployment", "/spec/template/spec/containers/0"),
    ("HTTPRoute", "/spec/rules/0/backendRefs/0"),
    ("Cluster", "/spec/postgresql/synchronous"),
    ("ScheduledBackup", "/spec"),
    ("ObjectStore", "/spec"),
    ("PodMonitor", "/spec/podMetricsEndpoints/0"),
    ("Probe", "/spec/targets"),
    ("PrometheusRule", "/spec/groups/0/rules/0"),
];

/// What `scripts/deployment validate` reports, a line for each error.
fn errors(objects: &[Value]) -> Vec<String> {
    let mut file = tempfile::tempfile().expect("a temporary file");
    serde_json::to_writer(&file, objects).expect("JSON");
    file.rewind().expect("a file");
    let script = workspace_root().join("scripts/deployment");
    let output = Command::new(script).arg("validate").stdin(file).output().expect("the script starts");
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).lines().map(str::to_owned).collect()
}

#[test]
fn unknown_fields_and_invalid_values_are_reported() {
    let values = [
        ("HTTPRoute", "/spec/rules/0/backendRefs/0/port", json!(65_536)),
        ("HTTPRoute", "/spec/rules/0/timeouts/request", json!("soon")),
        ("Cluster", "/spec/instances", json!(0)),
        ("Cluster", "/spec/postgresql/synchronous/method", json!("all")),
        ("Cluster", "/spec/resources/requests/memory", json!("much")),
        ("ScheduledBackup", "/spec/immediate", json!("yes")),
        ("ObjectStore", "/spec/retentionPolicy", json!("forever")),
        ("PodMonitor", "/spec/podMetricsEndpoints/0/interval", json!("often")),
        ("Probe", "/spec/interval", json!("often")),
        ("PrometheusRule", "/spec/groups/0/rules/0/expr", json!(true)),
    ];
    let mut objects = rendered("production");
    let mut change = |kind: &str, path: &str, value: Value| {
        let object = objects.iter_mut().find(|object| object["kind"] == kind).expect(kind);
        let title = format!("{kind}/{}: ", name(object));
        let (parent, field) = path.rsplit_once('/').expect("a path");
        object.pointer_mut(parent).expect(path)[field] = value;
        title
    };
    let mut expected = Vec::new();
    for (kind, path, value) in values {
        expected.push((change(kind, path, value), format!("${}:", path.replace('/', "."))));
    }
    for (kind, parent) in UNKNOWN_FIELDS {
        expected.push((change(kind, &format!("{parent}/{UNKNOWN}"), json!(1)), UNKNOWN.to_owned()));
    }
    let found = errors(&objects);
    let is_expected =
        |error: &str, (title, part): &(String, String)| error.starts_with(title) && error.contains(part);
    for one in &expected {
        assert!(found.iter().any(|error| is_expected(error, one)), "{one:?} {found:#?}");
    }
    let others: Vec<_> =
        found.iter().filter(|error| !expected.iter().any(|one| is_expected(error, one))).collect();
    assert!(others.is_empty(), "{others:#?}");
}
