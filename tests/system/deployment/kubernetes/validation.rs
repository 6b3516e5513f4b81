//! Validation of rendered objects against the types of Kubernetes and of the operators.

use std::collections::BTreeSet;
use std::io::Seek;
use std::process::Command;

use chart_index_tests::workspace_root;
use serde_json::{Value, json};

use super::objects::name;
use super::rendered;

/// Kinds of the operators.
const CUSTOM: &[&str] =
    &["Cluster", "HTTPRoute", "ObjectStore", "PodMonitor", "Probe", "PrometheusRule", "ScheduledBackup"];

/// Fields that hold any names.
const MAPS: &[&str] = &["annotations", "labels", "limits", "matchLabels", "parameters", "requests"];

/// What `scripts/deployment validate` reports, a line for each error.
fn errors(objects: &[Value]) -> Vec<String> {
    let mut file = tempfile::tempfile().expect("a temporary file");
    serde_json::to_writer(&file, objects).expect("JSON");
    file.rewind().expect("a file");
    let script = workspace_root().join("scripts/deployment");
    let output = Command::new(script).arg("validate").stdin(file).output().expect("the script starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(i32::from(!errors.is_empty())), "{errors}");
    errors.lines().map(str::to_owned).collect()
}

fn title(object: &Value) -> String {
    format!("{}/{}:", object["kind"].as_str().unwrap_or_default(), name(object))
}

fn is_custom(object: &Value) -> bool {
    CUSTOM.iter().any(|kind| object["kind"] == *kind)
}

#[test]
fn rendered_objects_are_valid() {
    for overlay in ["production", "recovery"] {
        let found = errors(&rendered(overlay));
        assert!(found.is_empty(), "{overlay}: {found:#?}");
    }
}

#[test]
fn unknown_fields_are_rejected() {
    let mut objects = rendered("production");
    objects.retain(|object| object.get("spec").is_some());
    assert!(objects.len() > 25, "{}", objects.len());
    for object in &mut objects {
        object["spec"]["unknownField"] = json!(1);
    }
    let found = errors(&objects);
    let rejected: BTreeSet<_> = found
        .iter()
        .filter(|error| error.contains("unknownField"))
        .filter_map(|error| error.split(' ').next())
        .collect();
    let titles: Vec<_> = objects.iter().map(title).collect();
    assert_eq!(rejected, titles.iter().map(String::as_str).collect(), "{found:#?}");
}

#[test]
fn custom_resources_have_no_unknown_field_at_any_depth() {
    let mut objects = rendered("production");
    objects.retain(is_custom);
    let kinds: BTreeSet<_> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
    assert_eq!(kinds, CUSTOM.iter().copied().collect());
    let added: usize = objects.iter_mut().map(|object| add_unknown_fields(&mut object["spec"])).sum();
    assert!(added > 100, "{added}");
    let found = errors(&objects);
    let rejected = found.iter().filter(|error| error.contains("unknownField")).count();
    assert_eq!(rejected, added, "{found:#?}");
}

/// To this value and everything that it holds. Returns how many.
fn add_unknown_fields(value: &mut Value) -> usize {
    match value {
        Value::Array(elements) => elements.iter_mut().map(add_unknown_fields).sum(),
        Value::Object(fields) => {
            let inner = fields.iter_mut().filter(|(field, _)| !MAPS.contains(&field.as_str()));
            let inner: usize = inner.map(|(_, child)| add_unknown_fields(child)).sum();
            fields.insert("unknownField".to_owned(), json!(1));
            inner + 1
        }
        _ => 0,
    }
}

#[test]
fn custom_resources_have_no_invalid_value() {
    let changes = [
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
    let expected: Vec<_> = changes
        .iter()
        .map(|(kind, path, value)| {
            let object =
                objects.iter_mut().find(|object| object["kind"] == *kind).expect("an object of the kind");
            *object.pointer_mut(path).expect(path) = value.clone();
            format!("{} ${}:", title(object), path.replace('/', "."))
        })
        .collect();
    let found = errors(&objects);
    for start in &expected {
        assert!(found.iter().any(|error| error.starts_with(start)), "{start} {found:#?}");
    }
    assert!(found.iter().all(|error| expected.iter().any(|start| error.starts_with(start))), "{found:#?}");
}
