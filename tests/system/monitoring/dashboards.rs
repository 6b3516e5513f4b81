//! Dashboards: their queries, and the metrics that they use.

use std::collections::BTreeSet;

use chart_index_system_tests::read;
use chart_index_tests::workspace_root;
use serde_json::Value;

use super::expressions::metrics;

/// Series of Prometheus itself that a dashboard uses.
const OF_PROMETHEUS: &[&str] = &["ALERTS", "up"];

#[derive(Debug)]
pub(crate) struct Query {
    /// The name of the file, without its extension.
    pub(crate) dashboard: String,
    pub(crate) panel: String,
    /// The expression, with variables of Grafana.
    pub(crate) expression: String,
    /// Whether it is in a stat panel of the first row.
    is_in_first_row: bool,
}

/// The queries of all panels of all dashboards.
pub(crate) fn queries() -> Vec<Query> {
    let mut queries = Vec::new();
    for (dashboard, panel) in panels() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            queries.push(Query {
                dashboard: dashboard.clone(),
                panel: panel["title"].as_str().expect("a title").to_owned(),
                expression: target["expr"].as_str().expect("an expression").to_owned(),
                is_in_first_row: panel["type"] == "stat" && panel["gridPos"]["y"] == 0,
            });
        }
    }
    assert!(queries.len() > 100, "{} queries", queries.len());
    queries
}

/// The panels of all dashboards, each with the name of its file.
fn panels() -> Vec<(String, Value)> {
    let folder = workspace_root().join("monitoring/dashboards");
    let files = std::fs::read_dir(folder).expect("the dashboards").map(|entry| entry.expect("a file").path());
    let mut panels = Vec::new();
    for path in files {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("UTF-8");
        let board: Value = serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("JSON");
        let of_board = board["panels"].as_array().expect("panels").iter().cloned();
        panels.extend(of_board.map(|panel| (name.to_owned(), panel)));
    }
    panels
}

/// The names of the metrics in docs/operations/metrics.md; a histogram has three.
pub(crate) fn documented_metrics() -> BTreeSet<String> {
    let page = read("docs/operations/metrics.md");
    let mut names = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let name = cells[1].trim_matches('`');
        if cells[2].ends_with("histogram") {
            names.extend(["bucket", "sum", "count"].map(|part| format!("{name}_{part}")));
        } else {
            names.insert(name.to_owned());
        }
    }
    assert!(names.len() > 50, "{names:?}");
    names
}

/// The names of the series that the rules record.
fn recorded_metrics() -> BTreeSet<String> {
    let folder = workspace_root().join("monitoring/rules");
    let files = std::fs::read_dir(folder).expect("the rules").map(|entry| entry.expect("a file").path());
    let text: String = files.map(|path| std::fs::read_to_string(path).expect("a file of rules")).collect();
    let names = text.lines().filter_map(|line| line.trim_start().strip_prefix("- record: "));
    names.map(|name| name.trim().to_owned()).collect()
}

#[test]
fn panels_use_documented_metrics() {
    let mut known = documented_metrics();
    known.extend(recorded_metrics());
    known.extend(OF_PROMETHEUS.iter().map(|&name| name.to_owned()));
    let mut unknown = BTreeSet::new();
    for query in queries() {
        let used = metrics(&query.expression);
        assert!(!used.is_empty(), "{query:?}");
        unknown.extend(
            used.difference(&known).map(|name| format!("{}, {}: {name}", query.dashboard, query.panel)),
        );
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn first_rows_show_the_state_of_every_server() {
    let mut shown = BTreeSet::new();
    let mut dashboards = BTreeSet::new();
    for query in queries() {
        dashboards.insert(query.dashboard.clone());
        if query.is_in_first_row {
            shown.extend(metrics(&query.expression).into_iter().map(|name| (query.dashboard.clone(), name)));
        }
    }
    for dashboard in dashboards {
        for state in ["postgresql_available", "redis_connected", "search_node_usable"] {
            let name = format!("chart_index_{state}");
            assert!(shown.contains(&(dashboard.clone(), name)), "{dashboard}: {state}");
        }
    }
}

#[test]
fn links_lead_to_sections_of_the_runbook() {
    let runbook = read("docs/runbook.md");
    let headings = runbook.lines().filter_map(|line| line.strip_prefix("### "));
    let sections: BTreeSet<_> =
        headings.map(|heading| format!("${{runbook}}#{}", heading.to_lowercase())).collect();
    let mut links = 0;
    for (dashboard, panel) in panels() {
        for link in panel["links"].as_array().into_iter().flatten() {
            let address = link["url"].as_str().expect("an address");
            assert!(sections.contains(address), "{dashboard}, {}: {address}", panel["title"]);
            links += 1;
        }
    }
    assert!(links > 30, "{links} links");
}
