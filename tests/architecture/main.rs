//! Dependency rules: which crates may depend on each other, and on which libraries.
#![expect(clippy::expect_used, reason = "the test fails if the output of cargo is incomplete")]

mod module_cycles;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use chart_index_tests::workspace_root;

/// The workspace packages on which each package may depend directly.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("cli", &[]),
    ("instrumentation", &[]),
    ("rox", &["domain"]),
    ("chartfile", &["domain", "rox"]),
    // Published: not on crates of the server.
    ("client", &["chartfile", "domain"]),
    ("python", &["client"]),
    ("hash", &["cli", "client"]),
    ("objects", &["instrumentation"]),
    ("store", &["cli", "domain", "instrumentation", "objects", "rox"]),
    ("search", &["cli", "domain", "instrumentation"]),
    // `tests` only for its feature `testing`.
    ("redis", &["cli", "instrumentation", "tests"]),
    ("ratelimit", &["domain", "instrumentation", "redis"]),
    ("telemetry", &["cli", "instrumentation"]),
    ("cache", &["domain", "instrumentation", "redis"]),
    ("http", &["cache", "cli", "domain", "instrumentation", "ratelimit"]),
    ("lookup", &["cache", "domain", "http", "objects", "ratelimit", "rox", "store"]),
    ("browse", &["cache", "domain", "http", "instrumentation", "ratelimit", "store"]),
    ("bulk", &["domain", "http", "instrumentation", "ratelimit", "store"]),
    ("pages", &["browse", "bulk", "cache", "cli", "domain", "http", "lookup", "ratelimit", "store"]),
    (
        "server",
        &[
            "browse",
            "bulk",
            "cache",
            "cli",
            "domain",
            "http",
            "instrumentation",
            "lookup",
            "objects",
            "pages",
            "ratelimit",
            "redis",
            "search",
            "store",
            "telemetry",
        ],
    ),
    (
        "indexer",
        &[
            "chartfile",
            "cli",
            "client",
            "domain",
            "instrumentation",
            "objects",
            "search",
            "store",
            "telemetry",
        ],
    ),
    ("tests", &["instrumentation"]),
    ("system-tests", &["client", "tests"]),
    ("benchmarks", &["chartfile", "domain", "rox", "store", "tests"]),
];

/// Libraries on which only these packages may depend directly.
const OWNED_LIBRARIES: &[(&str, &[&str])] = &[
    ("askama", &["pages"]),
    ("sqlx", &["store"]),
    ("pyo3", &["python"]),
    // The client reads hash filters, which the indexer writes.
    ("xorf", &["client"]),
    // It writes files of exports.
    ("parquet", &["indexer"]),
    ("rusqlite", &["indexer"]),
    ("rhythm-open-exchange", &["rox"]),
    ("rkyv", &["rox"]),
    ("rosu-pp", &["chartfile"]),
    ("redis", &["redis", "cache", "ratelimit"]),
    ("deadpool", &["store"]),
    ("deadpool-redis", &["redis"]),
    ("meilisearch-sdk", &["search"]),
    ("object_store", &["objects"]),
    ("opentelemetry_sdk", &["telemetry", "tests"]),
    ("opentelemetry-otlp", &["telemetry"]),
    ("prometheus", &["instrumentation"]),
    ("tracing-opentelemetry", &["instrumentation", "telemetry", "tests"]),
];

/// The package of the public program.
const PUBLIC_PROCESS: &str = "server";

#[test]
fn packages_depend_only_on_allowed_packages() {
    for (package, dependencies) in workspace_dependencies() {
        let allowed = ALLOWED_DEPENDENCIES.iter().find(|(name, _)| *name == package);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("{package} is not in ALLOWED_DEPENDENCIES"));
        for dependency in dependencies.iter().filter_map(|name| name.strip_prefix("chart-index-")) {
            assert!(allowed.contains(&dependency), "{package} must not depend on {dependency}");
        }
    }
}

#[test]
fn libraries_are_used_only_by_their_owners() {
    for (package, dependencies) in workspace_dependencies() {
        for (library, owners) in OWNED_LIBRARIES {
            let named = dependencies.contains(*library);
            assert!(!named || owners.contains(&package.as_str()), "{package} must not depend on {library}");
        }
    }
}

#[test]
fn public_program_contains_no_chart_parser() {
    let dependencies = workspace_dependencies();
    let (mut reached, mut pending) = (BTreeSet::new(), vec![PUBLIC_PROCESS.to_owned()]);
    while let Some(package) = pending.pop() {
        let used = dependencies.get(&package).into_iter().flatten();
        pending.extend(used.filter_map(|name| name.strip_prefix("chart-index-").map(str::to_owned)));
        reached.insert(package);
    }
    assert!(reached.contains("store"), "a known dependency is found");
    assert!(!reached.contains("chartfile"), "{reached:?}");
}

/// The direct dependencies of each workspace package, without development dependencies.
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
