//! `k8s/components/split`: each request reaches replicas that serve it.

use chart_index_tests::{Service, TestDatabase};
use serde_json::Value;

use super::objects::{Objects, array, name, text};
use super::references::route_rule;
use super::{production_with, violations};

/// The replicas with `SERVICES=lookup,bulk`, and those with `SERVICES=browse,pages`.
const SETS: [&str; 2] = ["chart-index", "chart-index-browse"];

const UNKNOWN: &str = "0000000000000000000000000000000000000000000000000000000000000000";

#[test]
fn split_adds_a_second_set_of_replicas() {
    let rendered = split();
    let objects = Objects::new("production", &rendered);
    let rules = [("routes lead to services", "rules".to_owned())];
    assert_eq!(violations("production", &rendered), rules);
    let route = objects.find("HTTPRoute", "chart-index").expect("a route");
    let wanted = [
        route_rule(&["/"], "10s", SETS[1]),
        route_rule(&["/api/changes"], "70s", SETS[0]),
        route_rule(&["/api/charts/filter", "/api/exports"], "0s", SETS[0]),
        route_rule(&["/api/charts", "/api/variants"], "10s", SETS[0]),
    ];
    assert_eq!(array(&route["spec"]["rules"]), wanted);
}

/// The responses are those of a replica that serves everything, and those of the other set are not.
#[tokio::test]
async fn split_routes_requests_to_replicas_that_serve_them() {
    let rendered = split();
    let objects = Objects::new("production", &rendered);
    let database = TestDatabase::migrated().await;
    let start = |variables: &[(&str, &str)]| Service::with_variables(database.url(), variables);
    let whole = start(&[]);
    let sets = SETS.map(|set| (set, start(&[("SERVICES", services(&objects, set))])));
    for path in [
        &format!("/api/charts/{UNKNOWN}"),
        "/api/charts/filter",
        &format!("/api/variants/{UNKNOWN}"),
        "/api/changes",
        "/api/exports/latest",
        "/api/chartsets?perPage=1",
        "/go/chartset/0000000000000000",
        "/api/random?q=!",
        "/",
        "/about",
    ] {
        let set = backend(&objects, path);
        let expected = whole.client().get(path).await;
        for (name, replica) in &sets {
            let response = replica.client().get(path).await;
            let is_same = (response.status, &response.body) == (expected.status, &expected.body);
            assert_eq!(is_same, *name == set, "{path}: {name}: {response:?}, {expected:?}");
        }
    }
}

fn split() -> Vec<Value> {
    production_with("  - ../../components/hpa\n", "  - ../../components/split\n")
}

/// `SERVICES` of the replicas that a service of Kubernetes selects.
fn services<'a>(objects: &Objects<'a>, service: &str) -> &'a str {
    let selector = &objects.find("Service", service).expect("a service")["spec"]["selector"];
    let selector = serde_json::json!({"matchLabels": selector});
    let mut replicas = objects.replicas().into_iter().filter(|replica| replica.is_selected_by(&selector));
    let selected = replicas.next().expect("replicas");
    assert!(replicas.next().is_none(), "{service} selects one set: {}", name(selected.object));
    objects.variables(selected.containers()[0])["SERVICES"]
}

/// The service to which the route sends a path: by the longest prefix of whole segments.
fn backend<'a>(objects: &Objects<'a>, path: &str) -> &'a str {
    let path = path.split('?').next().expect("a path");
    let matches = |prefix: &str| {
        path.strip_prefix(prefix.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let route = objects.find("HTTPRoute", "chart-index").expect("a route");
    let rules = array(&route["spec"]["rules"]).iter().flat_map(|rule| {
        let prefixes = array(&rule["matches"]).iter().map(|one| text(&one["path"]["value"]));
        prefixes.map(|prefix| (prefix.len(), prefix, text(&rule["backendRefs"][0]["name"])))
    });
    rules.filter(|(_, prefix, _)| matches(prefix)).max().expect("a rule").2
}
