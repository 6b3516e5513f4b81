//! The build context.

use std::collections::BTreeSet;
use std::process::Command;

use chart_index_tests::workspace_root;

use crate::buildah::Buildah;
use crate::run;

/// Files of a checkout that building reads.
const NEEDED: [&str; 15] = [
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "benchmarks/benches/checks.rs",
    "benchmarks/src/ingest.rs",
    "clients/npm/src/blake3.js",
    "clients/rust/README.md",
    "clients/rust/src/lib.rs",
    "crates/store/migrations/0001_catalogue.up.sql",
    "crates/store/src/lib.rs",
    "docs/api.md",
    "docs/formats/note-hash.md",
    "docs/snippets/client.py",
    "services/server/src/main.rs",
    "tests/src/lib.rs",
];

/// Files that are in a checkout, or may be: history, build output, data of private servers, secrets,
/// documentation.
const OTHERS: [&str; 12] = [
    ".env",
    ".git/config",
    ".run/postgres/PG_VERSION",
    "Dockerfile",
    "README.md",
    "compose/secrets/postgres_password",
    "crates/chartfile/fuzz/target/output",
    "docs/runbook.md",
    "k8s/base/namespace.yaml",
    "samples/chart.osu",
    "target/release/chart-index",
    "target/sbom/chart-index.cdx.json",
];

#[test]
#[ignore = "needs root and Debian: make test-system"]
fn build_context_has_only_sources() {
    let buildah = Buildah::start();
    let checkout = buildah.folder().join("checkout");
    for path in NEEDED.iter().chain(&OTHERS) {
        let path = checkout.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, "content").expect("a file");
    }
    std::fs::copy(workspace_root().join(".dockerignore"), checkout.join(".dockerignore")).expect("a file");
    let dockerfile = buildah.folder().join("Dockerfile");
    std::fs::write(&dockerfile, "FROM scratch\nCOPY . /\n").expect("a file");
    buildah.build_context("context", &dockerfile, &checkout);
    let mut find = Command::new("find");
    let files = run(find.arg(buildah.mount("context")).args(["-type", "f", "-printf", "%P\\n"]));
    assert_eq!(files.lines().collect::<BTreeSet<_>>(), BTreeSet::from(NEEDED));
}
