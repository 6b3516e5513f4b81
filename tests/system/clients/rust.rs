//! The Rust crates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use chart_index_system_tests::{read, run};
use chart_index_tests::{samples, workspace_root};

use crate::program::finds_the_charts_of_a_folder;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The client and `chart-hash`, and the crates of the workspace that they need.
const PACKAGES: [&str; 6] = [
    "chart-index-chartfile",
    "chart-index-cli",
    "chart-index-client",
    "chart-index-domain",
    "chart-index-hash",
    "chart-index-rox",
];

fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.env("CARGO_TARGET_DIR", target_folder());
    cargo
}

/// This test is target/<profile>/deps/….
fn target_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the path of the test");
    test.ancestors().nth(3).expect("the target folder").to_path_buf()
}

/// Packages the crates, and unpacks them into a folder.
fn package(folder: &Path) {
    let mut package = cargo();
    // The test builds a program with them.
    package.args(["package", "--quiet", "--no-verify", "--allow-dirty", "--locked"]);
    package.args(PACKAGES.iter().flat_map(|name| ["--package", name])).current_dir(workspace_root());
    run(&mut package);
    for name in PACKAGES {
        let archive = target_folder().join("package").join(format!("{name}-{VERSION}.crate"));
        run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder));
    }
}

/// The manifest of a program with the packaged crates. Its dependencies are those of the workspace, compiled
/// alike.
fn manifest() -> String {
    let root = read("Cargo.toml");
    let (_, profiles) = root.split_once("[profile.dev]").expect("the profiles");
    let patch = |name| format!("{name} = {{ path = \"{name}-{VERSION}\" }}\n");
    let patches = PACKAGES.map(patch).concat();
    format!(
        "[package]\nname = \"client\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [workspace]\nresolver = \"3\"\nmembers = [\"chart-index-hash-{VERSION}\"]\n\n\
         [dependencies]\nchart-index-client = \"{VERSION}\"\n\
         tokio = {{ version = \"1\", features = [\"macros\", \"rt\"] }}\n\n\
         [patch.crates-io]\n{patches}\n[profile.dev]{profiles}"
    )
}

#[tokio::test]
async fn rust_crates_are_packaged_and_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    package(folder.path());
    fs::create_dir(path("src")).expect("a folder");
    fs::copy(workspace_root().join("docs/snippets/client.rs"), path("src/main.rs")).expect("a file");
    fs::copy(workspace_root().join("Cargo.lock"), path("Cargo.lock")).expect("a file");
    fs::write(path("Cargo.toml"), manifest()).expect("a file");
    // Under another name: other tests run the program of the workspace.
    let hash = path(&format!("chart-index-hash-{VERSION}/Cargo.toml"));
    let renamed = fs::read_to_string(&hash).expect("a file").replace("\"chart-hash\"", "\"packaged-hash\"");
    fs::write(&hash, renamed).expect("a file");
    run(cargo().args(["build", "--quiet", "--workspace"]).current_dir(folder.path()));
    let hashed = run(Command::new(target_folder().join("debug/packaged-hash")).arg(samples()));
    assert!(hashed.contains("noteHashVersion"), "{hashed}");
    let tree = run(cargo().args(["tree", "--workspace", "--prefix", "none"]).current_dir(folder.path()));
    for server in ["axum", "sqlx", "chart-index-store"] {
        assert!(!tree.lines().any(|line| line.starts_with(&format!("{server} "))), "{server}: {tree}");
    }
    // Another test of this target may build a program of the same name.
    fs::copy(target_folder().join("debug/client"), path("client")).expect("the program");
    finds_the_charts_of_a_folder(Command::new(path("client"))).await;
}

/// The programs of the READMEs are the examples that the site shows.
#[test]
fn readmes_have_the_examples() {
    for (readme, example, start) in [
        ("clients/rust/README.md", "docs/snippets/client.rs", "use std"),
        ("clients/python/README.md", "docs/snippets/client.py", "import sys"),
        ("clients/npm/README.md", "docs/snippets/client.mjs", "import {"),
    ] {
        let [readme, example] = [readme, example].map(read);
        let program = &example[example.find(start).expect("the program")..];
        assert!(readme.contains(&format!("\n{program}```\n")), "{program}");
    }
}
