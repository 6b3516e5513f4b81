//! The commands of the documentation name services of `docker-compose.yml`.

use std::collections::BTreeSet;

use chart_index_system_tests::read;

use super::compose;

/// The pages with commands for Compose and Kubernetes.
pub(crate) const PAGES: [&str; 5] = [
    "docs/runbook.md",
    "docs/operations/compose.md",
    "docs/operations/kubernetes.md",
    "docs/operations/recovery.md",
    "docs/operations/removals.md",
];

/// The pages, with a space in place of what ends a command.
fn text() -> String {
    PAGES.map(read).concat().replace(['`', '|', '\n', '&', ';', ','], " \0 ")
}

#[test]
fn commands_name_services_of_compose() {
    let compose = compose();
    let services = compose["services"].as_object().expect("services");
    let text = text();
    let mut named = BTreeSet::new();
    for command in text.split("docker compose ").skip(1) {
        let words = command.split_whitespace().take_while(|word| *word != "\0").collect::<Vec<_>>();
        let arguments = words[1..].iter().filter(|word| !word.starts_with('-'));
        match words[0] {
            "exec" | "run" | "kill" | "logs" => named.extend(arguments.take(1).copied()),
            "stop" | "restart" | "rm" => named.extend(arguments.copied()),
            "cp" => {
                named.extend(arguments.filter_map(|word| word.split_once(':')).map(|(service, _)| service));
            }
            _ => {}
        }
    }
    let unknown: Vec<_> = named.iter().filter(|name| !services.contains_key(**name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(named.len() > 8, "{named:?}");
}
