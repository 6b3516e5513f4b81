//! The arrows between the crates, and which crate may name which library.
#![expect(clippy::expect_used, reason = "what cargo tells is there, or the test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use chart_index_tests::workspace_root;

/// What each package of the workspace may use directly. Arrows point down only.
const ARROWS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("cli", &[]),
    ("chartfile", &["domain"]),
    ("store", &["cli", "domain"]),
    ("search", &["cli", "domain"]),
    ("redis", &["cli", "tests"]),
    ("ratelimit", &["domain", "redis"]),
    ("telemetry", &[]),
    ("cache", &["domain", "ratelimit", "redis"]),
    ("http", &["cache", "cli", "domain", "ratelimit"]),
    ("lookup", &["cache", "domain", "http", "ratelimit", "store"]),
    ("browse", &["cache", "domain", "http", "ratelimit", "store"]),
    (
        "server",
        &[
            "browse",
            "cache",
            "cli",
            "domain",
            "http",
            "lookup",
            "ratelimit",
            "redis",
            "search",
            "store",
            "telemetry",
        ],
    ),
    ("indexer", &["cache", "chartfile", "domain", "redis", "search", "store", "telemetry"]),
    ("tests", &[]),
    ("benchmarks", &["domain", "store", "tests"]),
];

/// Libraries that only these packages may name.
const OWNED: &[(&str, &[&str])] = &[
    ("sqlx", &["store"]),
    ("rhythm-open-exchange", &["chartfile"]),
    ("redis", &["redis", "cache", "ratelimit"]),
    ("deadpool-redis", &["redis"]),
    ("meilisearch-sdk", &["search"]),
];

/// Packages whose code runs in the public process.
const PUBLIC_PROCESS: &str = "server";

#[test]
fn arrows_point_down_only() {
    for (package, dependencies) in workspace_dependencies() {
        let allowed = ARROWS.iter().find(|(name, _)| *name == package);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("{package} has no line in ARROWS"));
        for dependency in dependencies.iter().filter_map(|name| name.strip_prefix("chart-index-")) {
            assert!(allowed.contains(&dependency), "{package} must not use {dependency}");
        }
    }
}

#[test]
fn each_vendor_has_one_owner() {
    for (package, dependencies) in workspace_dependencies() {
        for (library, owners) in OWNED {
            let named = dependencies.contains(*library);
            assert!(!named || owners.contains(&package.as_str()), "{package} must not name {library}");
        }
    }
}

#[test]
fn no_parser_runs_in_the_public_process() {
    let dependencies = workspace_dependencies();
    let (mut reached, mut open) = (BTreeSet::new(), vec![PUBLIC_PROCESS.to_owned()]);
    while let Some(package) = open.pop() {
        let used = dependencies.get(&package).into_iter().flatten();
        open.extend(used.filter_map(|name| name.strip_prefix("chart-index-").map(str::to_owned)));
        reached.insert(package);
    }
    assert!(reached.contains("store"), "the walk over the dependencies finds what it is known to find");
    assert!(!reached.contains("chartfile"), "{reached:?}");
}

/// The direct dependencies of each package of the workspace, without those of its tests.
fn workspace_dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--locked", "--offline"])
        .current_dir(workspace_root())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    packages.iter().map(|package| (short_name(package), dependencies_of(package))).collect()
}

fn short_name(package: &serde_json::Value) -> String {
    let name = package["name"].as_str().expect("a name");
    name.strip_prefix("chart-index-")
        .unwrap_or_else(|| panic!("{name} is not named chart-index-…"))
        .to_owned()
}

fn dependencies_of(package: &serde_json::Value) -> BTreeSet<String> {
    let dependencies = package["dependencies"].as_array().expect("a list of dependencies");
    let normal = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
    normal.filter_map(|dependency| dependency["name"].as_str().map(str::to_owned)).collect()
}
