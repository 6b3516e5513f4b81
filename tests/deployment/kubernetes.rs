//! Invariants of `k8s/`, on the objects that each overlay is rendered to.

use super::{OVERLAYS, rendered};

#[test]
fn the_namespace_enforces_restricted_pods() {
    for overlay in OVERLAYS {
        let objects = rendered(overlay);
        let namespace = objects.iter().find(|object| object["kind"] == "Namespace").expect("a namespace");
        let labels = &namespace["metadata"]["labels"];
        assert_eq!(labels["pod-security.kubernetes.io/enforce"], "restricted", "{overlay}: {labels}");
    }
}
