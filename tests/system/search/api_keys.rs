//! The API keys that docs/operations/install.md describes.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use chart_index_system_tests::{code_blocks, read};
use chart_index_tests::{IndexerRun, PrivateMeilisearch, Service, program_command, within, workspace_root};
use serde_json::Value;

use crate::support::{Catalogue, run, start_node};

const MASTER_KEY: &str = "a-master-key-of-more-than-16-bytes";

/// The requests in the documentation that create the keys: that of the service, then that of the indexer.
fn documented_keys() -> Vec<String> {
    let text = read("docs/operations/install.md");
    let blocks = code_blocks(&text, "json").into_iter();
    blocks.filter(|block| block.contains("\"actions\"")).map(str::to_owned).collect()
}

async fn create_key(node: &PrivateMeilisearch, description: &str) -> String {
    let http = chart_index_tests::http_client_builder().build().unwrap();
    let request = http.post(format!("{}/keys", node.url())).bearer_auth(MASTER_KEY);
    let request = request.header("content-type", "application/json").body(description.to_owned());
    let response = request.send().await.unwrap().bytes().await.unwrap();
    let response: Value = serde_json::from_slice(&response).unwrap();
    response["key"].as_str().unwrap_or_else(|| panic!("{description}: {response}")).to_owned()
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn documented_keys_have_the_required_actions() {
    let mut catalogue = Catalogue::with_nodes(0).await;
    let node = start_node(&["--master-key", MASTER_KEY]);
    let documented = documented_keys();
    let [service_key, indexer_key] = &documented[..] else { panic!("{documented:?}") };
    let service_key = create_key(&node, service_key).await;
    let indexer_key = create_key(&node, indexer_key).await;
    catalogue.nodes.push(node);
    catalogue.write_sets(5, "");
    catalogue.ingest();
    let indexer = |arguments: &[&str]| {
        let done = run(catalogue.command(arguments).env("MEILISEARCH_API_KEY", &indexer_key));
        assert_eq!(done.code, Some(0), "{arguments:?}: {}{}", done.stdout, done.stderr);
    };
    let check = |key: &str| {
        let mut command = program_command("chart-index");
        command.arg("check").env("DATABASE_URL", catalogue.database.url());
        command.envs([("MEILISEARCH_URL", &*catalogue.node_urls()), ("MEILISEARCH_API_KEY", key)]);
        let output = IndexerRun::run(&mut command).stdout;
        output.lines().find(|line| line.contains(" meilisearch: ")).unwrap_or(&output).to_owned()
    };
    assert!(check(&service_key).starts_with("problem ") && check(&service_key).contains(": no index"));
    assert!(check("another").starts_with("problem "), "{}", check("another"));
    indexer(&["sync"]);
    assert_eq!(
        check(&service_key),
        format!("ok       meilisearch: {}: version unknown", catalogue.node_urls())
    );
    assert!(check(MASTER_KEY).contains("version 1."), "{}", check(MASTER_KEY));
    indexer(&["status"]);
    catalogue.write_sets(6, "changed");
    catalogue.ingest();
    let removed = &catalogue.ids()[0];
    catalogue.run(&["remove", "chartset", removed]);
    for command in [&["sync"][..], &["verify", "--search"], &["rebuild"], &["sync"], &["verify", "--search"]]
    {
        indexer(command);
    }
    let variables = [("MEILISEARCH_URL", catalogue.node_urls()), ("MEILISEARCH_API_KEY", service_key)];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let service = Service::with_variables(catalogue.database.url(), &variables);
    let client = service.client();
    // The key may not read the experimental features; filters that need them are sent nevertheless.
    for query in ["sort=title", "creator=eato", "q=title"] {
        let by_meilisearch = async || {
            let response = client.get(&format!("/api/chartsets?{query}")).await;
            assert_eq!(response.json()["total"], 5, "{query}");
            (response.header("x-search-engine") == "meilisearch").then_some(())
        };
        within(Duration::from_secs(10), by_meilisearch).await;
    }
}

/// Runs a script of the repository, which must succeed, and returns its output.
fn run_script(script: &str, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new("sh");
    if script.starts_with("scripts/") {
        command = Command::new("bash");
    }
    command.arg(workspace_root().join(script)).args(arguments).envs(variables.iter().copied());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

async fn key(node: &PrivateMeilisearch, uid: &str, master_key: &str) -> Value {
    let http = chart_index_tests::http_client_builder().build().unwrap();
    let request = http.get(format!("{}/keys/{uid}", node.url())).bearer_auth(master_key);
    serde_json::from_slice(&request.send().await.unwrap().bytes().await.unwrap()).unwrap()
}

/// docker-compose.yml starts the node with the file of the master key, and the programs with keys that
/// `scripts/compose` computed.
#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn compose_creates_the_documented_keys() {
    let secrets = tempfile::tempdir().unwrap();
    let folder = secrets.path().to_str().unwrap();
    run_script("scripts/compose", &["secrets", folder], &[]);
    let secret = |name: &str| std::fs::read_to_string(secrets.path().join(name)).unwrap().trim().to_owned();
    let master_key = secret("meilisearch_master_key");
    let node = start_node(&["--config-file-path", &format!("{folder}/meilisearch_config")]);
    let url = node.url();
    let variables =
        [("MEILISEARCH_URL", url.as_str()), ("MASTER_KEY_FILE", &format!("{folder}/meilisearch_master_key"))];
    for result in ["created", "exists"] {
        let output = run_script("compose/meilisearch-keys/create.sh", &[], &variables);
        assert_eq!(output, format!("chart-index.json: {result}\nchart-indexer.json: {result}\n"));
    }
    let files = ["chart-index.json", "chart-indexer.json"];
    let names = ["meilisearch_search_key", "meilisearch_index_key"];
    for ((file, name), documented) in files.into_iter().zip(names).zip(documented_keys()) {
        let path = workspace_root().join(Path::new("compose/meilisearch-keys").join(file));
        let described: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let documented: Value = serde_json::from_str(&documented).unwrap();
        let key = key(&node, described["uid"].as_str().unwrap(), &master_key).await;
        assert_eq!(key["key"], secret(name), "{file}");
        for field in ["name", "actions", "indexes", "expiresAt"] {
            assert_eq!((&described[field], &key[field]), (&documented[field], &documented[field]), "{file}");
        }
    }
}
