//! The types of the clients are those of the OpenAPI document.

use std::fs;
use std::process::Command;

use chart_index_system_tests::run;
use chart_index_tests::workspace_root;

use crate::program::serve_samples;

const RUST: &str = "clients/rust/src/types.rs";
const PYTHON: &str = "clients/python/chart_index/types.py";
const TYPESCRIPT: &str = "clients/npm/src/openapi.d.ts";

/// `UPDATE_DOCS=1` writes them.
#[tokio::test]
async fn types_are_those_of_the_openapi_document() {
    let (_database, service) = serve_samples().await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("openapi.json"), service.client().get("/docs/openapi.json").await.body).expect("a file");
    let root = workspace_root();
    let mut script = Command::new(root.join("scripts/client-types"));
    script.args(["openapi.json", "types.rs", "types.py"].map(path));
    run(&mut script);
    let types = run(Command::new(root.join("scripts/npm-client")).arg("types").arg(path("openapi.json")));
    fs::write(path("openapi.d.ts"), types).expect("a file");
    for (written, file) in [("types.rs", RUST), ("types.py", PYTHON), ("openapi.d.ts", TYPESCRIPT)] {
        let written = fs::read_to_string(path(written)).expect("a file");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(root.join(file), &written).expect("a file");
        }
        let current = fs::read_to_string(root.join(file)).expect("a file");
        assert!(current == written, "{file} is out of date: run the test with UPDATE_DOCS=1");
    }
}
