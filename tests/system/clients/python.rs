//! The PyPI package.

use std::path::Path;
use std::process::Command;

use chart_index_tests::workspace_root;

use crate::{finds_the_charts_of_a_folder, hashed, library, serve_samples, succeeded};

/// The interpreter of a new environment with the package, whose types are checked.
fn install(folder: &Path) -> std::path::PathBuf {
    let root = workspace_root();
    let script = || Command::new(root.join("scripts/python-client"));
    let mut environment = script();
    succeeded("environment", &environment.arg("environment").arg(folder).output().expect("the script"));
    let programs = ["docs/snippets/client.py", "tests/system/clients/python/requests.py"];
    let mut check = script();
    check.arg("check").arg(folder).args(programs.map(|program| root.join(program)));
    succeeded("check", &check.output().expect("the script"));
    folder.join("environment/bin/python")
}

#[tokio::test]
async fn python_package_is_installed_and_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let python = install(folder.path());
    hashes_are_those_of_chart_indexer(&python, folder.path());
    every_method_returns_what_the_index_has(&python).await;
    let mut program = Command::new(python);
    program.arg(workspace_root().join("docs/snippets/client.py"));
    finds_the_charts_of_a_folder(program).await;
}

fn hashes_are_those_of_chart_indexer(python: &Path, folder: &Path) {
    let library = library();
    let cases = workspace_root().join("crates/chartfile/tests/cases");
    let code = "import json, sys; from chart_index import hash_file, hash_folder\n\
                for path in sys.argv[1:]:\n \
                    for found in hash_folder(path): print(json.dumps(found, ensure_ascii=False, separators=(',', ':')))\n";
    for path in [cases.as_path(), &library.root()] {
        let mut program = Command::new(python);
        program.args(["-c", code]).arg(path).current_dir(folder);
        let printed = succeeded("hash_folder", &program.output().expect("an interpreter"));
        assert!(printed == hashed(path), "{}: {printed}", path.display());
    }
}

async fn every_method_returns_what_the_index_has(python: &Path) {
    let (_database, service) = serve_samples().await;
    let mut program = Command::new(python);
    program.arg(workspace_root().join("tests/system/clients/python/requests.py"));
    program.arg(format!("http://{}", service.address()));
    let output = tokio::task::spawn_blocking(move || program.output().expect("an interpreter"));
    succeeded("requests.py", &output.await.expect("it ends"));
}
