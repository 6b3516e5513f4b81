//! Invariants of `k8s/`, on the objects that each overlay is rendered to, and changes that have to violate
//! them.

mod flows;
mod invariants;
mod mutations;
mod objects;
mod pods;
mod references;
mod validation;

use std::collections::BTreeSet;
use std::fs;

use chart_index_tests::workspace_root;
use serde_json::Value;

use self::invariants::INVARIANTS;
use self::mutations::mutations;
use self::objects::{Objects, Workload, name, text};
use super::{OVERLAYS, compose, rendered};

/// The violations of all invariants.
fn violations(overlay: &str, objects: Vec<&Value>) -> Vec<(&'static str, String)> {
    let objects = Objects::new(overlay, objects);
    let of = |(invariant, check): &(&'static str, invariants::Check)| {
        check(&objects).into_iter().map(|violation| (*invariant, violation)).collect::<Vec<_>>()
    };
    INVARIANTS.iter().flat_map(of).collect()
}

#[test]
fn overlays_satisfy_every_invariant() {
    for overlay in OVERLAYS {
        let found = violations(overlay, rendered(overlay).iter().collect());
        assert!(found.is_empty(), "{overlay}: {found:#?}");
    }
}

/// Without a probe, budget, policy, security setting, spread constraint and so on.
#[test]
fn every_removal_violates_an_invariant() {
    let mut violated = BTreeSet::new();
    let mut count = 0;
    for overlay in OVERLAYS {
        let objects = rendered(overlay);
        for mutation in mutations(&objects) {
            let found = violations(overlay, mutation.apply(&objects));
            assert!(!found.is_empty(), "{overlay}: nothing notices: {}", mutation.description);
            violated.extend(found.into_iter().map(|(invariant, _)| invariant));
            count += 1;
        }
    }
    assert!(count > 500, "{count} mutations");
    let unused: Vec<_> =
        INVARIANTS.iter().filter(|(name, _)| !violated.contains(name)).map(|(name, _)| name).collect();
    assert!(unused.is_empty(), "no mutation violates {unused:?}");
}

#[test]
fn every_component_is_in_an_overlay() {
    let kustomizations = OVERLAYS.iter().map(|overlay| {
        let file = workspace_root().join("k8s/overlays").join(overlay).join("kustomization.yaml");
        fs::read_to_string(file).expect("a kustomization")
    });
    let kustomizations: String = kustomizations.collect();
    let components = fs::read_dir(workspace_root().join("k8s/components")).expect("a folder");
    for component in components {
        let component = component.expect("a component").file_name().into_string().expect("UTF-8");
        assert!(kustomizations.contains(&format!("- ../../components/{component}\n")), "{component}");
    }
}

#[test]
fn servers_have_the_versions_of_compose() {
    let compose = compose();
    for overlay in OVERLAYS {
        let objects = rendered(overlay);
        let images = Objects::new(overlay, objects.iter().collect());
        let images: Vec<_> =
            images.workloads().iter().flat_map(Workload::containers).map(|one| &one["image"]).collect();
        for server in ["redis", "meilisearch"] {
            let image = &compose["services"][server]["image"];
            assert!(image.is_string() && images.contains(&image), "{overlay}: {image}: {images:?}");
        }
        let cluster = objects.iter().find(|object| object["kind"] == "Cluster").expect("a cluster");
        let of_compose = text(&compose["services"]["postgres"]["image"]);
        let of_compose = of_compose.split_once(':').and_then(|(_, tag)| tag.split('.').next());
        let of_cluster = text(&cluster["spec"]["imageName"]);
        let of_cluster = of_cluster.rsplit_once(':').and_then(|(_, tag)| tag.split('.').next());
        assert_eq!(of_cluster, of_compose, "{overlay}: PostgreSQL");
    }
}

/// An overlay has to replace it; `trusted_proxies_are_addresses` rejects it.
#[test]
fn the_base_names_no_trusted_proxies() {
    let objects = rendered("k8s/base");
    let settings = objects
        .iter()
        .find(|object| name(object).starts_with("chart-index-") && object["kind"] == "ConfigMap");
    let proxies = settings.expect("settings")["data"]["TRUSTED_PROXIES"].as_str().expect("a value");
    assert!(!objects::are_networks(proxies), "{proxies}");
    let arguments = ["serve", "--trusted-proxies", proxies, "--database-url", "postgres://localhost/none"];
    let run =
        chart_index_tests::IndexerRun::run(chart_index_tests::program_command("chart-index").args(arguments));
    assert_eq!(run.code, Some(2), "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("--trusted-proxies"), "{}", run.stderr);
}
