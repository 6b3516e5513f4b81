//! The signature of an export, verified with minisign as docs/formats/exports.md shows.

use std::fs;
use std::process::Command;

use chart_index_tests::{Service, ServiceOptions, indexer};

use super::sample_database;
use super::snippets::succeeded;

#[tokio::test]
async fn minisign_verifies_an_export() {
    let database = sample_database().await;
    let folder = tempfile::tempdir().expect("a folder");
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder.path()).output().expect("the program is installed")
    };
    succeeded("minisign", &run("minisign", &["-G", "-W", "-p", "export.pub", "-s", "export.key"]));
    let key = folder.path().join("export.key");
    let exports = folder.path().join("exports");
    let (key, exports) = (key.to_str().expect("UTF-8"), exports.to_str().expect("UTF-8"));
    indexer(database.url(), &["export", exports, "--sign-key", key]).succeeded();
    let variables = [("EXPORTS_DIR", exports)];
    let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
    let service = Service::start_with(database.url(), &options);
    let client = service.client();
    let path = client.get("/api/exports/latest").await.header("location").to_owned();
    fs::write(folder.path().join("manifest.json"), client.get(&path).await.body).expect("a file");
    let signature = client.get(&format!("{path}.minisig")).await;
    fs::write(folder.path().join("manifest.json.minisig"), signature.body).expect("a file");
    let printed = succeeded("minisign", &run("minisign", &["-Vm", "manifest.json", "-p", "export.pub"]));
    let name = path.split('/').nth(3).expect("the name of the export");
    assert!(printed.contains(&format!("Trusted comment: export {name}")), "{printed}");
}
