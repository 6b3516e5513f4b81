//! The traffic that network policies permit.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::objects::{Objects, array, text};

/// Everything that is permitted: the pods of the policy, the direction, the peer and the port.
const FLOWS: &[&str] = &[
    "* egress kube-system/kube-dns TCP 53",
    "* egress kube-system/kube-dns UDP 53",
    "chart-index ingress envoy-gateway-system/* TCP http",
    "chart-index ingress monitoring/* TCP admin",
    "chart-indexer ingress monitoring/* TCP metrics",
    "chart-index,chart-indexer egress cnpg.io/cluster TCP 5432",
    "chart-index egress redis TCP redis",
    "chart-index,chart-indexer egress meilisearch TCP http",
    "meilisearch ingress chart-index,chart-indexer TCP http",
    "redis ingress chart-index TCP redis",
    "cnpg.io/cluster ingress chart-index,chart-indexer TCP 5432",
    "cnpg.io/cluster ingress cnpg-system/cloudnative-pg TCP 5432",
    "cnpg.io/cluster ingress cnpg-system/cloudnative-pg TCP 8000",
    "cnpg.io/cluster ingress monitoring/* TCP 9187",
    "cnpg.io/cluster ingress cnpg.io/cluster TCP 5432",
    "cnpg.io/cluster ingress cnpg.io/cluster TCP 8000",
    "cnpg.io/cluster egress cnpg.io/cluster TCP 5432",
    "cnpg.io/cluster egress cnpg.io/cluster TCP 8000",
    // The API of Kubernetes and the object store.
    "cnpg.io/cluster egress 0.0.0.0/0 TCP 443",
    "cnpg.io/cluster egress 0.0.0.0/0 TCP 6443",
    "cnpg.io/cluster egress ::/0 TCP 443",
    "cnpg.io/cluster egress ::/0 TCP 6443",
];

/// Everything is denied, both ways, except the flows that are needed.
pub(super) fn policies_permit_the_needed_flows(objects: &Objects) -> Vec<String> {
    let policies: Vec<_> = objects.of_kind("NetworkPolicy").map(|policy| &policy["spec"]).collect();
    let denies = json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]});
    let mut violations = Vec::new();
    if !policies.contains(&&denies) {
        violations.push("nothing is denied".to_owned());
    }
    let others = policies.iter().filter(|policy| ***policy != denies);
    let permitted: BTreeSet<String> = others.flat_map(|policy| flows(policy)).collect();
    let needed: BTreeSet<String> = FLOWS.iter().map(|flow| (*flow).to_owned()).collect();
    violations.extend(needed.difference(&permitted).map(|flow| format!("denied: {flow}")));
    violations.extend(permitted.difference(&needed).map(|flow| format!("permitted: {flow}")));
    violations
}

/// The flows that a policy permits. One that does not name its directions is a violation.
fn flows(policy: &Value) -> Vec<String> {
    let pods = pods(&policy["podSelector"]);
    let mut flows = Vec::new();
    for (direction, kind, peers) in [("ingress", "Ingress", "from"), ("egress", "Egress", "to")] {
        let named = array(&policy["policyTypes"]).contains(&json!(kind));
        if named != policy.get(direction).is_some() || policy.get("podSelector").is_none() {
            flows.push(format!("{pods} {direction}, policyTypes"));
        }
        for rule in array(&policy[direction]) {
            let any = [Value::Null];
            let ports = rule["ports"].as_array().map_or(&any[..], Vec::as_slice);
            let peers = rule[peers].as_array().map_or(&any[..], Vec::as_slice);
            for (peer, port) in peers.iter().flat_map(|peer| ports.iter().map(move |port| (peer, port))) {
                flows.push(format!("{pods} {direction} {} {}", self::peer(peer), self::port(port)));
            }
        }
    }
    flows
}

fn peer(peer: &Value) -> String {
    if let Some(block) = peer.get("ipBlock") {
        return text(&block["cidr"]).to_owned();
    }
    match peer.get("namespaceSelector") {
        Some(namespace) => {
            let namespace = text(&namespace["matchLabels"]["kubernetes.io/metadata.name"]);
            format!("{namespace}/{}", pods(&peer["podSelector"]))
        }
        None => pods(&peer["podSelector"]),
    }
}

fn port(port: &Value) -> String {
    let number = port["port"].as_str().map_or_else(|| port["port"].to_string(), str::to_owned);
    format!("{} {number}", text(&port["protocol"]))
}

/// The names of the pods that a selector selects, or the label that they all have; `*` for all.
fn pods(selector: &Value) -> String {
    let labels = ["app.kubernetes.io/name", "k8s-app"];
    let label = labels.iter().find_map(|label| selector["matchLabels"][label].as_str());
    if let Some(label) = label {
        return label.to_owned();
    }
    match array(&selector["matchExpressions"]).first() {
        Some(expression) if expression["operator"] == "Exists" => text(&expression["key"]).to_owned(),
        Some(expression) => array(&expression["values"]).iter().map(text).collect::<Vec<_>>().join(","),
        None => "*".to_owned(),
    }
}
