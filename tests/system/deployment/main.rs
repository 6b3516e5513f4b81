//! Tests of the files for containers and Kubernetes, without a container engine or a cluster.
#![expect(clippy::expect_used, reason = "a test ends where its set-up fails")]

mod compose;
mod documents;
mod environment;
mod haproxy;
mod kubernetes;
mod versions;

use std::process::Command;

use chart_index_tests::workspace_root;
use serde_json::Value;

/// The overlays of `k8s/overlays`.
const OVERLAYS: &[&str] = &["local", "production"];

/// The objects that an overlay of `k8s/overlays`, or a folder with a `kustomization.yaml`, is rendered to.
fn rendered(overlay: &str) -> Vec<Value> {
    let Value::Array(objects) = deployment(&["render", overlay]) else { panic!("{overlay}: not an array") };
    assert!(!objects.is_empty(), "{overlay} is empty");
    objects
}

/// `docker-compose.yml`, with its merge keys resolved. Its variables and `extends` are not.
fn compose() -> Value {
    deployment(&["compose"])
}

/// Runs `scripts/deployment`, asserts that it succeeds, and parses its output.
fn deployment(arguments: &[&str]) -> Value {
    let output = Command::new(workspace_root().join("scripts/deployment"))
        .args(arguments)
        .output()
        .expect("the script starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "scripts/deployment {arguments:?}\n{errors}");
    serde_json::from_slice(&output.stdout).expect("the script prints JSON")
}
