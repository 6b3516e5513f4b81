//! The default base images.

use chart_index_system_tests::read;

/// The base images that the `Dockerfile` names: argument and default.
fn defaults(dockerfile: &str) -> Vec<(&str, &str)> {
    let arguments = dockerfile.lines().filter_map(|line| line.strip_prefix("ARG ")?.split_once('='));
    arguments.filter(|(name, _)| name.starts_with("BASE_")).collect()
}

#[test]
fn install_page_names_the_default_bases() {
    let (dockerfile, page) = (read("Dockerfile"), read("docs/operations/install.md"));
    let defaults = defaults(&dockerfile);
    assert_eq!(defaults.len(), 2, "{defaults:?}");
    for (argument, default) in defaults {
        let row = format!("| `{argument}` | `{default}` |");
        assert!(page.contains(&row), "docs/operations/install.md: {row}");
    }
}
