//! Invariants of `k8s/`, on the objects that each overlay is rendered to.

mod commands;
mod flows;
mod invariants;
mod objects;
mod pods;
mod references;
mod split;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use chart_index_tests::workspace_root;
use serde_json::{Value, json};

use self::invariants::INVARIANTS;
pub(super) use self::objects::Objects;
use self::objects::{Workload, array, name, text};
pub(super) use self::references::secret_files;
use super::{OVERLAYS, compose, rendered};

/// The violations of all invariants.
fn violations(overlay: &str, objects: &[Value]) -> Vec<(&'static str, String)> {
    let objects = Objects::new(overlay, objects);
    let of = |(invariant, check): &(&'static str, invariants::Check)| {
        check(&objects).into_iter().map(|violation| (*invariant, violation)).collect::<Vec<_>>()
    };
    INVARIANTS.iter().flat_map(of).collect()
}

#[test]
fn overlays_satisfy_every_invariant() {
    for overlay in OVERLAYS {
        let found = violations(overlay, &rendered(overlay));
        assert!(found.is_empty(), "{overlay}: {found:#?}");
    }
}

/// Changes of `production`, each of which violates this invariant.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("the namespace is restricted", r#""pod-security.kubernetes.io/enforce":"restricted""#, r#""other":"""#),
    ("pods are restricted", r#""readOnlyRootFilesystem":true"#, r#""readOnlyRootFilesystem":false"#),
    (
        "pods have no token",
        r#""automountServiceAccountToken":false"#,
        r#""automountServiceAccountToken":true"#,
    ),
    ("permanent pods have probes", r#""path":"/livez""#, r#""path":"/readyz""#),
    ("pods have time to drain", r#""terminationGracePeriodSeconds":"#, r#""other":"#),
    ("pods spread over nodes", r#""topologySpreadConstraints":"#, r#""other":"#),
    ("memory is limited and CPU is not", r#""limits":{"memory":"#, r#""limits":{"cpu":"#),
    (
        "rollouts keep all replicas",
        r#""maxSurge":1,"maxUnavailable":0"#,
        r#""maxSurge":0,"maxUnavailable":1"#,
    ),
    ("drains evict one replica at a time", r#""unhealthyPodEvictionPolicy":"#, r#""other":"#),
    ("policies permit the needed flows", r#""kind":"NetworkPolicy""#, r#""kind":"Other""#),
    ("services select pods", r#""targetPort":"http""#, r#""targetPort":"other""#),
    ("secrets are files", r#""projected":"#, r#""other":"#),
    ("replicas scale by CPU", r#""averageUtilization":"#, r#""other":"#),
    ("commits survive a failover", r#""kind":"Cluster""#, r#""kind":"Other""#),
    ("cron jobs run as documented", r#""concurrencyPolicy":"Forbid""#, r#""concurrencyPolicy":"Allow""#),
];

#[test]
fn mistakes_violate_invariants() {
    let text = serde_json::to_string(&rendered("production")).expect("JSON");
    for (invariant, correct, wrong) in MISTAKES {
        assert!(text.contains(correct), "{invariant}: {correct}");
        let objects: Vec<Value> = serde_json::from_str(&text.replace(correct, wrong)).expect("JSON");
        let found = violations("production", &objects);
        assert!(found.iter().any(|(violated, _)| violated == invariant), "{invariant}: {found:#?}");
    }
}

#[test]
fn every_component_is_in_an_overlay() {
    let kustomizations = OVERLAYS.iter().chain(&["recovery"]).map(|overlay| {
        let file = workspace_root().join("k8s/overlays").join(overlay).join("kustomization.yaml");
        fs::read_to_string(file).expect("a kustomization")
    });
    let kustomizations: String = kustomizations.collect();
    let components = fs::read_dir(workspace_root().join("k8s/components")).expect("a folder");
    for component in components {
        let component = component.expect("a component").file_name().into_string().expect("UTF-8");
        // These have tests of their own.
        if ["exports", "ipv6", "objects", "split"].contains(&component.as_str()) {
            continue;
        }
        assert!(kustomizations.contains(&format!("- ../../components/{component}\n")), "{component}");
    }
}

#[test]
fn servers_have_the_versions_of_compose() {
    let compose = compose();
    for overlay in OVERLAYS {
        let objects = rendered(overlay);
        let images = Objects::new(overlay, &objects);
        let images: Vec<_> =
            images.workloads().iter().flat_map(Workload::containers).map(|one| &one["image"]).collect();
        for server in ["redis", "meilisearch"] {
            let image = &compose["services"][server]["image"];
            assert!(image.is_string() && images.contains(&image), "{overlay}: {image}: {images:?}");
        }
        let cluster = objects.iter().find(|object| object["kind"] == "Cluster").expect("a cluster");
        let images = [&compose["services"]["postgres"]["image"], &cluster["spec"]["imageName"]];
        let versions =
            images.map(|image| text(image).rsplit_once(':').and_then(|(_, tag)| tag.split('-').next()));
        assert!(versions[0].is_some_and(|version| version.contains('.')), "{versions:?}");
        assert_eq!(versions[0], versions[1], "{overlay}: PostgreSQL");
    }
}

/// The objects of `production` with this after a line of its kustomization.
fn production_with(line: &str, addition: &str) -> Vec<Value> {
    let copy = tempfile::tempdir().expect("a temporary folder");
    let folders = ["k8s", "compose", "monitoring"].map(|folder| workspace_root().join(folder));
    let copied =
        Command::new("cp").arg("--recursive").args(folders).arg(copy.path()).status().expect("cp starts");
    assert!(copied.success());
    let overlay = copy.path().join("k8s/overlays/production");
    let file = overlay.join("kustomization.yaml");
    let original = fs::read_to_string(&file).expect("a kustomization");
    assert_eq!(original.matches(line).count(), 1);
    fs::write(&file, original.replace(line, &format!("{line}{addition}"))).expect("a kustomization");
    rendered(overlay.to_str().expect("UTF-8"))
}

/// Access to the bucket for every program that reads or writes objects, and a job that collects garbage.
#[test]
fn objects_component_gives_access_to_the_bucket() {
    let rendered = production_with("  - ../../components/ingest\n", "  - ../../components/objects\n");
    let expected: BTreeSet<_> = [
        ("policies permit the needed flows", "permitted: chart-index,chart-indexer egress 0.0.0.0/0 TCP 443"),
        ("policies permit the needed flows", "permitted: chart-index,chart-indexer egress ::/0 TCP 443"),
    ]
    .into();
    let found = violations("production", &rendered);
    let (from_secret, others): (Vec<_>, Vec<_>) =
        found.iter().map(|(invariant, one)| (*invariant, one.as_str())).partition(|(invariant, one)| {
            *invariant == "secrets are files" && one.ends_with(": {\"secretRef\":{\"name\":\"objects\"}}")
        });
    assert_eq!(others.into_iter().collect::<BTreeSet<_>>(), expected);
    let objects = Objects::new("production", &rendered);
    let programs = objects.programs().into_iter().filter(|program| program.object["kind"] != "Job");
    let mut count = 0;
    for program in programs {
        let container = program.containers()[0];
        assert_eq!(objects.variables(container)["OBJECT_STORE_URL"], "s3://bucket/chart-index");
        count += 1;
    }
    assert_eq!(from_secret.len(), count, "{from_secret:?}");
    let gc = objects.find("CronJob", "chart-indexer-objects-gc").expect("a job");
    let container = &gc["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["args"], json!(["objects", "gc", "--grace", "24h"]));
    assert_eq!(gc["spec"]["suspend"], Value::Null);
}

/// A volume that replicas read, and that `follow` and a job write.
#[test]
fn exports_component_mounts_a_volume() {
    let rendered = production_with("  - ../../components/ingest\n", "  - ../../components/exports\n");
    let found = violations("production", &rendered);
    assert!(found.is_empty(), "{found:#?}");
    let objects = Objects::new("production", &rendered);
    let mut mounted = BTreeSet::new();
    for program in objects.programs() {
        let container = program.containers()[0];
        let mount = array(&container["volumeMounts"]).iter().find(|mount| mount["mountPath"] == "/exports");
        mounted.extend(mount.map(|mount| (program.title(), mount["readOnly"] == true)));
        let serves = text(&program.object["kind"]) == "Deployment";
        assert!(!serves || objects.variables(container)["EXPORTS_DIR"] == "/exports", "{}", program.title());
    }
    let expected = [
        ("CronJob chart-indexer-export".to_owned(), false),
        ("Deployment chart-index".to_owned(), true),
        ("Deployment chart-indexer-sync".to_owned(), false),
    ];
    assert_eq!(mounted, BTreeSet::from(expected));
    let job = objects.find("CronJob", "chart-indexer-export").expect("a job");
    let container = &job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["args"], json!(["export", "/exports", "--rox", "--keep", "3"]));
}

/// Every listener and service of both address families.
#[test]
fn ipv6_component_listens_on_both_families() {
    let rendered = production_with("  - ../../components/monitoring\n", "  - ../../components/ipv6\n");
    let found = violations("production", &rendered);
    assert!(found.is_empty(), "{found:#?}");
    let objects = Objects::new("production", &rendered);
    let services: Vec<_> = objects.of_kind("Service").collect();
    assert!(!services.is_empty());
    for service in services {
        assert_eq!(service["spec"]["ipFamilyPolicy"], "PreferDualStack", "{}", name(service));
    }
    let mut listeners = BTreeSet::new();
    for workload in objects.workloads() {
        for container in workload.containers() {
            let is_listener =
                |(name, _): &(&str, &str)| name.ends_with("LISTEN") || *name == "MEILI_HTTP_ADDR";
            listeners.extend(objects.variables(container).into_iter().filter(is_listener));
        }
    }
    let expected = [
        ("ADMIN_LISTEN", "[::]:9090"),
        ("LISTEN", "[::]:8080"),
        ("MEILI_HTTP_ADDR", "[::]:7700"),
        ("METRICS_LISTEN", "[::]:9091"),
    ];
    assert_eq!(listeners, BTreeSet::from(expected));
}

/// The digest of an image follows its tag; names and labels cannot have one.
#[test]
fn images_may_have_a_digest() {
    let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
    let objects = production_with("    newTag: 1.0.0-rc.1\n", &format!("    digest: {digest}\n"));
    let found = violations("production", &objects);
    assert!(found.is_empty(), "{found:#?}");
    let objects = Objects::new("production", &objects);
    let images = objects.programs();
    let mut images = images.iter().flat_map(Workload::containers).map(|container| text(&container["image"]));
    assert!(images.all(|image| image.ends_with(&format!("chart-index:1.0.0-rc.1@{digest}"))));
}

/// `recovery`: a cluster restored from the archive of the old one, an archive of its own, and nothing that
/// serves before the removals are applied.
#[test]
fn recovery_applies_removals_before_anything_is_served() {
    let rendered = rendered("recovery");
    let objects = Objects::new("recovery", &rendered);
    let cluster = objects.of_kind("Cluster").next().expect("a cluster");
    let spec = &cluster["spec"];
    let origin = &spec["externalClusters"][0];
    assert_eq!(spec["bootstrap"]["recovery"]["source"], origin["name"]);
    let archives = [&origin["plugin"], &spec["plugins"][0]].map(|plugin| &plugin["parameters"]);
    assert_eq!(archives[0]["barmanObjectName"], archives[1]["barmanObjectName"]);
    assert_eq!([&archives[0]["serverName"], &archives[1]["serverName"]], ["postgres", name(cluster)]);
    let backup = objects.of_kind("ScheduledBackup").next().expect("a backup");
    assert_eq!(backup["spec"]["cluster"]["name"], name(cluster));
    let secret = format!("{}-app", name(cluster));
    for workload in objects.programs() {
        let pod = workload.pod();
        assert_eq!(
            pod["volumes"][0]["projected"]["sources"][0]["secret"]["name"],
            secret,
            "{}",
            workload.title()
        );
        match text(&workload.object["kind"]) {
            "Deployment" => assert_eq!(workload.object["spec"]["replicas"], 0, "{}", workload.title()),
            "CronJob" => assert_eq!(workload.object["spec"]["suspend"], true, "{}", workload.title()),
            _ => {
                assert_eq!(name(workload.object), "chart-indexer-recovery");
                assert_eq!(pod["initContainers"][0]["args"], json!(["migrate"]));
                assert_eq!(
                    pod["containers"][0]["args"],
                    json!(["remove", "--from", "/removals/removals.jsonl"])
                );
            }
        }
    }
    let images: BTreeSet<_> =
        objects.programs().iter().flat_map(Workload::containers).map(|one| text(&one["image"])).collect();
    assert_eq!(images.len(), 1, "{images:?}");
    let denied = flows::policies_permit_the_needed_flows(&objects);
    assert!(denied.is_empty(), "{denied:#?}");
}
