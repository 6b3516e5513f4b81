//! The SBOMs of the programs.

use std::collections::BTreeSet;
use std::process::Command;

use chart_index_tests::workspace_root;
use serde_json::Value;

use crate::run;

/// Crates that only tests and benchmarks use.
const OF_TESTS: [&str; 4] = ["chart-index-tests", "insta", "proptest", "rcgen"];

#[test]
#[ignore = "installs a Cargo tool, which takes 3 minutes: make test-full"]
fn long_sboms_list_the_crates_of_each_program() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut script = Command::new(workspace_root().join("scripts/image"));
    run(script.arg("sbom").env("SBOM_DIR", folder.path()));
    for (program, package) in [
        ("chart-hash", "chart-index-hash"),
        ("chart-index", "chart-index-server"),
        ("chart-indexer", "chart-index-indexer"),
    ] {
        let file = folder.path().join(format!("{program}.cdx.json"));
        let text = std::fs::read_to_string(file).expect("an SBOM");
        let temporary = std::env::temp_dir();
        assert!(!text.contains(temporary.to_str().expect("UTF-8")), "a path of this machine");
        let bom: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&bom["bomFormat"], &bom["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
        let component = &bom["metadata"]["component"];
        assert_eq!(component["name"], program);
        assert_eq!(component["version"], env!("CARGO_PKG_VERSION"));
        check_components(program, &components(&bom), &crates(package));
    }
}

fn check_components(program: &str, listed: &BTreeSet<String>, expected: &BTreeSet<String>) {
    assert!(expected.len() > 100, "{expected:?}");
    let missing: Vec<_> = expected.difference(listed).collect();
    assert!(missing.is_empty(), "{program}: {missing:?}");
    for name in OF_TESTS {
        let prefix = format!("{name} ");
        assert!(!listed.iter().any(|listed| listed.starts_with(&prefix)), "{program}: {name}");
    }
}

/// The components of an SBOM, as name and version.
fn components(bom: &Value) -> BTreeSet<String> {
    let components = bom["components"].as_array().expect("components");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    components.iter().map(|part| format!("{} {}", text(&part["name"]), text(&part["version"]))).collect()
}

/// The crates that Cargo links into a program or builds it with, as name and version.
fn crates(package: &str) -> BTreeSet<String> {
    let mut tree = Command::new("cargo");
    tree.args(["tree", "--locked", "--package", package, "--edges", "normal,build"]);
    let listed = run(tree.args(["--prefix", "none", "--format", "{p}"]).current_dir(workspace_root()));
    let crates = listed.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?, words.next()?.strip_prefix('v')?))
    });
    crates.filter(|(name, _)| *name != package).map(|(name, version)| format!("{name} {version}")).collect()
}
