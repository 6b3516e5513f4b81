//! What has to hold for the objects of each overlay. Each check returns its violations.

use serde_json::{Value, json};

use super::flows::policies_permit_the_needed_flows;
use super::objects::{Objects, are_networks, array, name, text};
use super::pods::{
    memory_is_limited_and_cpu_is_not, permanent_pods_have_probes, pods_are_restricted, pods_have_no_token,
    pods_have_time_to_drain, pods_spread_over_nodes,
};
use super::references::{
    monitors_select_ports, references_exist, routes_lead_to_services, secrets_are_files, services_select_pods,
};

/// Returns the violations of an invariant.
pub(super) type Check = fn(&Objects) -> Vec<String>;

/// All invariants with their names.
pub(super) const INVARIANTS: &[(&str, Check)] = &[
    ("objects are in the namespace", objects_are_in_the_namespace),
    ("the namespace is restricted", the_namespace_is_restricted),
    ("pods are restricted", pods_are_restricted),
    ("pods have no token", pods_have_no_token),
    ("permanent pods have probes", permanent_pods_have_probes),
    ("pods have time to drain", pods_have_time_to_drain),
    ("pods spread over nodes", pods_spread_over_nodes),
    ("memory is limited and CPU is not", memory_is_limited_and_cpu_is_not),
    ("rollouts keep all replicas", rollouts_keep_all_replicas),
    ("drains evict one replica at a time", drains_evict_one_replica_at_a_time),
    ("policies permit the needed flows", policies_permit_the_needed_flows),
    ("trusted proxies are addresses", trusted_proxies_are_addresses),
    ("gateways close idle connections first", gateways_close_idle_connections_first),
    ("the version is the same everywhere", the_version_is_the_same_everywhere),
    ("services select pods", services_select_pods),
    ("routes lead to services", routes_lead_to_services),
    ("secrets are files", secrets_are_files),
    ("references exist", references_exist),
    ("monitors select ports", monitors_select_ports),
    ("replicas scale by CPU", replicas_scale_by_cpu),
    ("PostgreSQL has enough connections", postgresql_has_enough_connections),
    ("sizes are those of capacity.md", sizes_follow_from_the_cores),
    ("commits survive a failover", commits_survive_a_failover),
    ("replicas read from the standbys", replicas_read_from_the_standbys),
    ("cron jobs run as documented", cron_jobs_run_as_documented),
];

fn objects_are_in_the_namespace(objects: &Objects) -> Vec<String> {
    let is_elsewhere =
        |object: &&Value| object["kind"] != "Namespace" && object["metadata"]["namespace"] != "chart-index";
    let elsewhere = objects.all().iter().filter(is_elsewhere);
    elsewhere.map(|object| format!("{} {}", text(&object["kind"]), name(object))).collect()
}

fn the_namespace_is_restricted(objects: &Objects) -> Vec<String> {
    let Some(namespace) = objects.find("Namespace", "chart-index") else { return vec!["none".to_owned()] };
    let modes = ["enforce", "warn", "audit"].map(|mode| format!("pod-security.kubernetes.io/{mode}"));
    modes.into_iter().filter(|mode| namespace["metadata"]["labels"][mode] != "restricted").collect()
}

fn rollouts_keep_all_replicas(objects: &Objects) -> Vec<String> {
    let mut violations = Vec::new();
    let wanted = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    for workload in objects.replicas() {
        if workload.object["spec"]["strategy"] != wanted {
            violations.push(workload.title());
        }
    }
    let sync = objects.find("Deployment", "chart-indexer-sync").map(|sync| &sync["spec"]);
    if sync.is_none_or(|spec| spec["strategy"] != wanted || spec["replicas"] != 1) {
        violations.push("chart-indexer-sync does not follow until its successor is ready".to_owned());
    }
    let nodes = objects.find("StatefulSet", "meilisearch").map(|nodes| &nodes["spec"]);
    if nodes.is_none_or(|spec| spec["updateStrategy"]["type"] != "OnDelete" || spec["replicas"] != 2) {
        violations.push("meilisearch is not two nodes that are replaced by hand".to_owned());
    }
    violations
}

fn drains_evict_one_replica_at_a_time(objects: &Objects) -> Vec<String> {
    let mut violations = Vec::new();
    let nodes = objects.workloads().into_iter().filter(|workload| workload.object["kind"] == "StatefulSet");
    for workload in objects.replicas().into_iter().chain(nodes) {
        let budgets: Vec<_> = objects
            .of_kind("PodDisruptionBudget")
            .map(|budget| &budget["spec"])
            .filter(|spec| spec["selector"] == workload.object["spec"]["selector"])
            .filter(|spec| spec["maxUnavailable"] == 1 && spec["unhealthyPodEvictionPolicy"] == "AlwaysAllow")
            .collect();
        if budgets.len() != 1 {
            violations.push(format!("{} has {} budgets", workload.title(), budgets.len()));
        }
    }
    violations
}

/// In production, those of the base: only the operator knows them.
fn trusted_proxies_are_addresses(objects: &Objects) -> Vec<String> {
    let mut violations = Vec::new();
    for workload in objects.replicas() {
        for container in workload.containers() {
            let variables = objects.variables(container);
            let proxies = variables.get("TRUSTED_PROXIES").copied().unwrap_or_default();
            let is_right = match objects.overlay {
                "production" => proxies == "addresses-of-the-gateway",
                _ => are_networks(proxies),
            };
            if !is_right {
                violations.push(format!("{}: {proxies:?}", workload.title()));
            }
        }
    }
    violations
}

/// Envoy after an hour.
fn gateways_close_idle_connections_first(objects: &Objects) -> Vec<String> {
    let mut violations = Vec::new();
    for workload in objects.replicas() {
        let variables = objects.variables(workload.containers()[0]);
        let timeout = variables.get("HEADER_READ_TIMEOUT_MS").and_then(|timeout| timeout.parse::<u64>().ok());
        if timeout <= Some(3_600_000) {
            violations.push(format!("{}: {timeout:?}", workload.title()));
        }
    }
    violations
}

/// In the name of the job that migrates and in a label; the tag of each image is its beginning.
fn the_version_is_the_same_everywhere(objects: &Objects) -> Vec<String> {
    let job = objects.of_kind("Job").map(name).next().unwrap_or_default();
    let version = job.strip_prefix("chart-indexer-migrate-").unwrap_or_default();
    let mut violations = Vec::new();
    for workload in objects.programs() {
        let labels = [workload.labels(), &workload.object["metadata"]["labels"]];
        if labels.iter().any(|labels| labels["app.kubernetes.io/version"] != version) {
            violations.push(format!("{}: label", workload.title()));
        }
        for container in workload.containers() {
            let image = text(&container["image"]);
            let tag =
                image.split_once("chart-index:").map(|(_, tag)| tag.split('@').next().unwrap_or_default());
            if tag.is_none_or(|tag| tag != version && !version.starts_with(&format!("{tag}-"))) {
                violations.push(format!("{}: {image}", workload.title()));
            }
        }
    }
    violations
}

fn replicas_scale_by_cpu(objects: &Objects) -> Vec<String> {
    let mut violations = Vec::new();
    for workload in objects.replicas() {
        let Some(autoscaler) = autoscaler(objects, name(workload.object)) else {
            if workload.object["spec"]["replicas"] != 2 {
                violations.push(format!("{} has not two replicas", workload.title()));
            }
            continue;
        };
        let metric = json!([{"type": "ContainerResource", "containerResource": {
            "container": "chart-index", "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}
        }}]);
        let behavior = &autoscaler["behavior"];
        let sensible = autoscaler["metrics"] == metric
            && autoscaler["minReplicas"].as_u64() >= Some(2)
            && behavior["scaleDown"]["stabilizationWindowSeconds"].as_u64() >= Some(300)
            && !array(&behavior["scaleDown"]["policies"]).is_empty()
            && !array(&behavior["scaleUp"]["policies"]).is_empty();
        if !sensible || workload.object["spec"].get("replicas").is_some() {
            violations.push(workload.title());
        }
    }
    violations
}

fn autoscaler<'a>(objects: &Objects<'a>, deployment: &str) -> Option<&'a Value> {
    let mut all = objects.of_kind("HorizontalPodAutoscaler").map(|autoscaler| &autoscaler["spec"]);
    all.find(|spec| {
        spec["scaleTargetRef"]["name"] == deployment && spec["scaleTargetRef"]["kind"] == "Deployment"
    })
}

/// For all replicas that autoscalers permit, one more of each during a rollout, and four commands of
/// chart-indexer.
fn postgresql_has_enough_connections(objects: &Objects) -> Vec<String> {
    const OF_INDEXERS: u64 = 4 * 16;
    const RESERVED: u64 = 10;
    let mut needed = OF_INDEXERS + RESERVED;
    for workload in objects.replicas() {
        let replicas = match autoscaler(objects, name(workload.object)) {
            Some(spec) => spec["maxReplicas"].as_u64(),
            None => workload.object["spec"]["replicas"].as_u64(),
        };
        let container = workload.containers()[0];
        let connections =
            objects.variables(container).get("DATABASE_MAX_CONNECTIONS").and_then(|text| text.parse().ok());
        let (Some(replicas), Some(connections)) = (replicas, connections) else {
            return vec![workload.title()];
        };
        let connections: u64 = connections;
        needed += (replicas + 1) * (connections + 2);
    }
    let cluster = objects.find("Cluster", "postgres");
    let maximum =
        cluster.map(|cluster| text(&cluster["spec"]["postgresql"]["parameters"]["max_connections"]));
    let maximum = maximum.and_then(|maximum| maximum.parse::<u64>().ok()).unwrap_or_default();
    if maximum >= needed { Vec::new() } else { vec![format!("max_connections {maximum}, {needed} needed")] }
}

/// The formulas of docs/operations/capacity.md, by the cores of PostgreSQL and the largest number of replicas.
fn sizes_follow_from_the_cores(objects: &Objects) -> Vec<String> {
    let cluster = objects.find("Cluster", "postgres");
    let cores = cluster.map_or(0, |cluster| whole_cores(&cluster["spec"]["resources"]["requests"]["cpu"]));
    let replicas = objects.replicas();
    let numbers = replicas.iter().map(|workload| match autoscaler(objects, name(workload.object)) {
        Some(spec) => spec["maxReplicas"].as_u64(),
        None => workload.object["spec"]["replicas"].as_u64(),
    });
    let number: u64 = numbers.flatten().sum();
    let mut violations = Vec::new();
    let mut of_redis = 0;
    for workload in &replicas {
        let container = workload.containers()[0];
        let variables = objects.variables(container);
        let setting = |name: &str| variables.get(name).and_then(|value| value.parse::<u64>().ok());
        let expected = |factor: u64| Some((factor * cores / number.max(1)).max(factor));
        let threads = setting("WORKER_THREADS");
        let has_core = objects.overlay != "production" || container["resources"]["requests"]["cpu"] == "1";
        if setting("DATABASE_MAX_CONNECTIONS") != expected(4)
            || setting("MAX_FILLS_IN_FLIGHT") != expected(16)
            || !(1..=2).contains(&threads.unwrap_or_default())
            || !has_core
        {
            violations.push(format!("{}: {cores} cores, {number} replicas", workload.title()));
        }
        of_redis = of_redis.max(6 + threads.unwrap_or_default());
    }
    // One more of each deployment during a rollout.
    let clients = (number + replicas.len() as u64) * of_redis;
    let redis = objects.of_kind("ConfigMap").find_map(|map| map["data"]["redis.conf"].as_str());
    let maximum = redis.and_then(|text| text.lines().find_map(|line| line.strip_prefix("maxclients ")));
    if maximum.and_then(|maximum| maximum.parse::<u64>().ok()).is_none_or(|maximum| maximum < clients) {
        violations.push(format!("maxclients {maximum:?}, {clients} needed"));
    }
    violations
}

/// The cores of a quantity such as `4` or `500m`, rounded down.
fn whole_cores(quantity: &Value) -> u64 {
    let quantity = text(quantity);
    match quantity.strip_suffix('m') {
        Some(thousandths) => thousandths.parse::<u64>().map_or(0, |thousandths| thousandths / 1000),
        None => quantity.parse().unwrap_or_default(),
    }
}

/// In production; and lost disks are restored from an archive.
fn commits_survive_a_failover(objects: &Objects) -> Vec<String> {
    let Some(cluster) = objects.find("Cluster", "postgres") else { return vec!["no cluster".to_owned()] };
    let spec = &cluster["spec"];
    if spec["instances"] == 1 {
        let production = objects.overlay == "production";
        return if production { vec!["one instance".to_owned()] } else { Vec::new() };
    }
    let store = name(objects.of_kind("ObjectStore").next().unwrap_or(&Value::Null));
    let plugin = "barman-cloud.cloudnative-pg.io";
    let archive = json!([{"name": plugin, "isWALArchiver": true, "parameters": {"barmanObjectName": store}}]);
    let backup = objects.of_kind("ScheduledBackup").map(|backup| &backup["spec"]).find(|backup| {
        backup["cluster"]["name"] == name(cluster)
            && backup["method"] == "plugin"
            && backup["pluginConfiguration"]["name"] == plugin
    });
    let checks = [
        ("instances", spec["instances"].as_u64() >= Some(3)),
        (
            "synchronous",
            spec["postgresql"]["synchronous"]
                == json!({"method": "any", "number": 1, "dataDurability": "required"}),
        ),
        ("affinity", spec["affinity"]["podAntiAffinityType"] == "required"),
        ("archive", spec["plugins"] == archive),
        ("backup", backup.is_some()),
    ];
    checks.iter().filter(|(_, holds)| !holds).map(|(what, _)| (*what).to_owned()).collect()
}

/// Through the service for all standbys of a cluster, if there are any.
fn replicas_read_from_the_standbys(objects: &Objects) -> Vec<String> {
    let Some(cluster) = objects.find("Cluster", "postgres") else { return vec!["no cluster".to_owned()] };
    let expected = (cluster["spec"]["instances"] != 1).then(|| format!("{}-ro", name(cluster)));
    let mut violations = Vec::new();
    for workload in objects.replicas() {
        let variables = objects.variables(workload.containers()[0]);
        if variables.get("DATABASE_READ_HOST").map(ToString::to_string) != expected {
            violations.push(workload.title());
        }
    }
    violations
}

fn cron_jobs_run_as_documented(objects: &Objects) -> Vec<String> {
    let wanted = [
        ("ingest", json!(true), json!([["ingest", "/library"]])),
        ("rebuild", json!(true), json!([["rebuild"]])),
        ("verify", Value::Null, json!([["verify"], ["verify", "--search"]])),
    ];
    let mut violations = Vec::new();
    for (command, suspended, arguments) in wanted {
        let job = objects.find("CronJob", &format!("chart-indexer-{command}"));
        let spec = job.map_or(&Value::Null, |job| &job["spec"]);
        let containers = array(&spec["jobTemplate"]["spec"]["template"]["spec"]["containers"]);
        let actual: Value = containers.iter().map(|container| container["args"].clone()).collect();
        if spec["suspend"] != suspended || spec["concurrencyPolicy"] != "Forbid" || actual != arguments {
            violations.push(command.to_owned());
        }
    }
    violations
}
