//! `make up`: the first start, a start with another image, and one after `make down`.

use chart_index_system_tests::{ComposeProject, code_blocks, ping_as_operator, read};
use serde_json::Value;

use super::report::Drill;
use super::site::{self, LIMIT, REPLICAS, Site};

/// The services that run, apart from the replicas.
const OTHERS: [&str; 11] = [
    "postgres",
    "backup",
    "redis",
    "meilisearch",
    "sync",
    "haproxy",
    "prometheus",
    "alertmanager",
    "blackbox",
    "node-exporter",
    "grafana",
];

/// What the test adds to configuration files.
const COMMENT: &str = "# changed";

#[test]
#[ignore = "needs root and a Meilisearch server: make test-system"]
fn make_up_with_meilisearch_replaces_images_and_keeps_data() {
    site::run_started(&[], async |project| drop(make_up(project, 1)), replaces_images_and_keeps_data);
}

async fn replaces_images_and_keeps_data(site: Site) {
    assert_healthy(&site);
    assert_eq!(site.admitted(1).await, LIMIT, "the replicas share the limit");
    for command in runbook_commands() {
        let output = site.project.run_shell(&command);
        // Meilisearch responds to a key that is not valid with an error.
        assert!(!output.trim().is_empty() && !output.contains("\"code\""), "{command}: {output}");
    }

    write_export(&site.project);

    start_former_service(&site.project);
    let before = inspect_all(&site);
    let haproxy_started = start_of_haproxy(&site.project);
    for file in ["monitoring/prometheus.yml", "compose/haproxy/haproxy.cfg"] {
        replace(&site.project, file);
    }
    let mut drill = Drill::start(site.load(60).start());
    drill.wait_for_requests(180).await;
    drill.begin_phase("another image");
    assert!(!make_up(&site.project, 2).contains("Lists come from PostgreSQL"));
    site.wait_for_all_replicas().await;
    drill.record_recovery();
    let report = drill.finish("make up with another image");
    assert_eq!(report.failed(""), 0, "replicas are replaced one by one");
    assert_eq!(site.project.containers(&["service=former"]), "", "it is removed");
    for (before, (service, after)) in before.iter().zip(inspect_all(&site)) {
        let is_program = REPLICAS.contains(&service) || service == "sync";
        assert_eq!(before.1["Image"] != after["Image"], is_program, "{service}");
        assert_eq!(before.1["Id"] != after["Id"], is_program, "{service}");
        let is_restarted = before.1["State"]["StartedAt"] != after["State"]["StartedAt"];
        assert_eq!(is_restarted, is_program || service == "prometheus", "{service}");
    }
    assert_healthy(&site);
    let configuration = site.project.exec("prometheus", &["cat", "/etc/prometheus/prometheus.yml"]);
    assert!(configuration.ends_with(COMMENT));
    let configuration = site.project.exec("haproxy", &["cat", "/usr/local/etc/haproxy/haproxy.cfg"]);
    assert!(configuration.ends_with(COMMENT));
    assert_ne!(start_of_haproxy(&site.project), haproxy_started, "it has loaded the file");

    replaces_images_without_meilisearch(&site).await;

    let chartsets = site.ids_of_chartsets().await;
    site.project.run_once("ingest", &["remove", "chart", &site.removable]);
    site.project.run_script("make", &["down"]);
    assert_eq!(site.project.containers(&[]), "");
    make_up(&site.project, 2);
    site.wait_for_all_replicas().await;
    assert_healthy(&site);
    assert_eq!(site.ids_of_chartsets().await, chartsets);
    // Only the database knows of it: the chart is in the library.
    assert_eq!(site.status_of("replica-1", &site.removable).await, "unknown");
}

/// As docs/operations/exports.md says, which has another folder.
fn write_export(project: &ComposeProject) {
    let page = read("docs/operations/exports.md");
    let mut blocks = code_blocks(&page, "sh").into_iter();
    let commands = blocks.find(|block| block.starts_with("install ")).expect("commands");
    let folder = project.folder().join("exports");
    let folder = folder.to_str().expect("UTF-8");
    project.run_shell(&commands.replace("/var/lib/chart-index/exports", folder));
    let mut written = std::fs::read_dir(folder).expect("a folder").flatten();
    assert!(written.any(|entry| entry.path().join("manifest.json").is_file()), "there is an export");
}

/// Starts a service that the next version does not have.
fn start_former_service(project: &ComposeProject) {
    let file = project.folder().join("docker-compose.override.yml");
    let service = "services: {former: {image: 'redis:7.4.11-bookworm', networks: [data]}}";
    std::fs::write(&file, service).expect("a file");
    project.run_shell("docker compose up --detach --no-build former");
    std::fs::remove_file(&file).expect("removable");
}

/// A fix of the programs does not wait for a Meilisearch that does not start.
async fn replaces_images_without_meilisearch(site: &Site) {
    let before = site.project.inspect("replica-1");
    let broken =
        "services: {meilisearch: {command: [sleep, infinity], stop_signal: KILL, healthcheck: {retries: 2}}}";
    let file = site.project.folder().join("docker-compose.override.yml");
    std::fs::write(&file, broken).expect("a file");
    let output = make_up(&site.project, 3);
    std::fs::remove_file(&file).expect("removable");
    assert!(output.contains("Lists come from PostgreSQL"), "{output}");
    site.wait_for_all_replicas().await;
    assert_ne!(site.project.inspect("replica-1")["Image"], before["Image"]);
    assert_eq!(site.engine_of("replica-1", "q=removable").await, "postgres");
}

/// The commands that docs/runbook.md has for Compose, with harmless arguments.
fn runbook_commands() -> Vec<String> {
    let page = read("docs/runbook.md");
    let rows =
        page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").nth(1)?.strip_prefix('`'));
    let paths = paths_of_meilisearch(&page);
    let mut commands = Vec::new();
    for cell in rows.filter(|cell| cell.starts_with("docker compose ")) {
        let command = cell.trim_end_matches('`').replace("AS_OPERATOR", &ping_as_operator());
        let command = command.replace("COMMAND", "verify");
        let command = if command.contains("psql") { command + " --command 'SELECT 1'" } else { command };
        let is_of_meilisearch = command.contains("meilisearch");
        let paths = if is_of_meilisearch { &paths[..] } else { &["readyz".to_owned()] };
        commands.extend(paths.iter().map(|path| command.replace("/PATH", &format!("/{path}"))));
    }
    assert!(commands.len() > 5, "{commands:?}");
    commands
}

/// The paths that the runbook requests from Meilisearch.
fn paths_of_meilisearch(page: &str) -> Vec<String> {
    let paths = page.split("\"$MEILISEARCH_URL/").skip(1).filter_map(|rest| rest.split('"').next());
    let paths: Vec<_> = paths.filter(|path| *path != "PATH").map(str::to_owned).collect();
    assert!(paths.len() > 2, "{paths:?}");
    paths
}

/// Runs `make up` with an image that differs for each number; returns what it prints.
fn make_up(project: &ComposeProject, number: u32) -> String {
    let dockerfile = format!("FROM chart-index:1.0.0-rc.1\nARG VERSION\nLABEL number={number}\n");
    std::fs::write(project.folder().join("Dockerfile"), dockerfile).expect("a file");
    project.run_shell("make up 2>&1")
}

/// Replaces a file by another one, as Git does.
fn replace(project: &ComposeProject, file: &str) {
    let path = project.folder().join(file);
    let configuration = std::fs::read_to_string(&path).expect("a configuration");
    std::fs::remove_file(&path).expect("removable");
    std::fs::write(&path, format!("{configuration}{COMMENT}\n")).expect("a file");
}

/// When the process of HAProxy started that handles requests.
fn start_of_haproxy(project: &ComposeProject) -> String {
    let url = "http://127.0.0.1:8404/metrics";
    let metrics = project.exec("haproxy", &["wget", "--quiet", "--output-document=-", url]);
    let start = metrics.lines().find(|line| line.starts_with("haproxy_process_start_time_seconds "));
    start.expect("a metric").to_owned()
}

fn inspect_all(site: &Site) -> Vec<(&'static str, Value)> {
    let services = REPLICAS.into_iter().chain(OTHERS);
    services.map(|service| (service, site.project.inspect(service))).collect()
}

fn assert_healthy(site: &Site) {
    for (service, container) in inspect_all(site) {
        assert_eq!(container["State"]["Health"]["Status"], "healthy", "{service}");
    }
}
