//! Versions that several files name.

use std::collections::BTreeSet;

use chart_index_system_tests::read;

#[test]
fn files_agree_on_the_version_of_rust() {
    let toolchain = read("rust-toolchain.toml");
    let version = toolchain.lines().find_map(|line| line.strip_prefix("channel = \"")?.strip_suffix('"'));
    let version = version.expect("a version");
    let (minor, _) = version.rsplit_once('.').expect("major.minor.patch");
    for (path, expected) in [
        ("Cargo.toml", format!("\nrust-version = \"{minor}\"\n")),
        ("Dockerfile", format!("\nARG BASE_BUILD=docker.io/library/rust:{version}-slim-bookworm")),
        ("README.md", format!(" Rust {minor} or newer")),
        ("CONTRIBUTING.md", format!("\nRust {minor} or newer")),
        ("docs/operations/install.md", format!(" Rust {minor} or newer")),
    ] {
        assert!(read(path).contains(&expected), "{path}: {expected:?}");
    }
}

/// Those of workflows may have a digest.
#[test]
fn workflows_have_the_meilisearch_of_compose() {
    let versions = ["docker-compose.yml", ".github/workflows/ci.yml"].map(|path| {
        let text = read(path);
        let images = text.split("getmeili/meilisearch:").skip(1);
        images
            .filter_map(|rest| Some(rest.split(['@', ' ', '\n']).next()?.to_owned()))
            .collect::<BTreeSet<_>>()
    });
    assert_eq!(versions[0].len(), 1, "{versions:?}");
    assert_eq!(versions[0], versions[1]);
}
