//! The Python package.

use std::path::{Path, PathBuf};
use std::process::Command;

use chart_index_system_tests::run;
use chart_index_tests::workspace_root;

use crate::program::{finds_the_charts_of_a_folder, hashed, library, serve_samples};

/// The interpreter of a new environment with the package, whose types are checked.
fn install(folder: &Path) -> PathBuf {
    let root = workspace_root();
    let script = || Command::new(root.join("scripts/python-client"));
    run(script().arg("environment").arg(folder));
    let programs = ["docs/snippets/client.py", "tests/system/clients/python/requests.py"];
    run(script().arg("check").arg(folder).args(programs.map(|program| root.join(program))));
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
    let code = "import json, sys; from chart_index import hash_folder\n\
                for found in hash_folder(sys.argv[1]):\n \
                    print(json.dumps(found, ensure_ascii=False, separators=(',', ':')))\n";
    for path in [cases.as_path(), &library.root()] {
        let mut program = Command::new(python);
        program.args(["-c", code]).arg(path).current_dir(folder);
        let printed = run(&mut program);
        assert!(printed == hashed(path), "{}: {printed}", path.display());
    }
}

async fn every_method_returns_what_the_index_has(python: &Path) {
    let (_database, service) = serve_samples().await;
    let mut program = Command::new(python);
    program.arg(workspace_root().join("tests/system/clients/python/requests.py"));
    program.arg(format!("http://{}", service.address()));
    tokio::task::spawn_blocking(move || run(&mut program)).await.expect("it succeeds");
}
