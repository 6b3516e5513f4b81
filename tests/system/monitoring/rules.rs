//! Recording rules and alerts, without data.

use std::collections::{BTreeMap, BTreeSet};

use chart_index_system_tests::{PrivatePrometheus, RUNBOOK_URL, Rule, read};
use tokio::sync::OnceCell;

use super::dashboards::documented_metrics;
use super::expressions::metrics;
use super::loaded::runbook_queries;
use super::{promtool, workspace_files};

/// The beginnings of the names of metrics of other programs that rules and the runbook use.
pub(crate) const OF_OTHERS: &[&str] = &[
    "alertmanager_",
    "barman_",
    "cnpg_",
    "haproxy_",
    "kube_",
    "kubelet_",
    "node_",
    "probe_",
    "prometheus_",
    "up",
];

/// What the section of an alert consists of, in this order.
const RUNBOOK_PARTS: [&str; 4] = ["Impact", "Check", "Act", "Roll back"];

/// `check config` checks the files of rules as well.
#[test]
fn configuration_and_rules_are_valid() {
    let output = promtool(&["check", "config", "--lint=all", "--lint-fatal", "monitoring/prometheus.yml"]);
    assert!(output.contains("rules found"), "{output}");
}

/// The tests of `monitoring/tests`, in one process.
#[test]
fn alerts_fire_and_stay_silent() {
    let files = workspace_files("monitoring/tests");
    let arguments: Vec<&str> =
        ["test", "rules"].into_iter().chain(files.iter().map(String::as_str)).collect();
    promtool(&arguments);
}

/// A server with the configuration of the repository evaluates every rule, even without a target, and its
/// alerts link to `RUNBOOK_URL` of its environment.
#[tokio::test]
async fn rules_are_evaluated_and_link_to_the_runbook() {
    let prometheus = PrivatePrometheus::start(&[]).await;
    prometheus.wait_for_evaluations().await;
    let failed: Vec<_> = prometheus.rules().await.into_iter().filter(|rule| rule.health != "ok").collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let annotations = prometheus.annotations("ChartIndexWatchdog").await;
    assert_eq!(annotations["runbook_url"], format!("{RUNBOOK_URL}#chartindexwatchdog"));
}

#[tokio::test]
async fn rules_and_runbook_use_documented_metrics() {
    let rules = rules().await;
    let mut known = documented_metrics();
    known.extend(rules.iter().filter(|rule| !rule.is_alert).map(|rule| rule.name.clone()));
    let queries = runbook_queries().into_iter();
    let expressions = rules.into_iter().map(|rule| rule.expression).chain(queries);
    let used: BTreeSet<String> = expressions.flat_map(|expression| metrics(&expression)).collect();
    let is_of_others = |name: &&String| OF_OTHERS.iter().any(|beginning| name.starts_with(beginning));
    let unknown: Vec<_> = used.difference(&known).filter(|name| !is_of_others(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[tokio::test]
async fn every_alert_is_tested() {
    let mut alerts: BTreeSet<String> = alerts().await.into_iter().map(|alert| alert.name).collect();
    // It is never silent.
    assert!(alerts.remove("ChartIndexWatchdog"));
    let mut tested: BTreeMap<bool, BTreeSet<String>> = BTreeMap::new();
    for file in workspace_files("monitoring/tests") {
        for (alert, fires) in tested_alerts(&read(&file)) {
            tested.entry(fires).or_default().insert(alert);
        }
    }
    assert!(alerts.len() > 20, "{alerts:?}");
    for (fires, tested) in [(true, &tested[&true]), (false, &tested[&false])] {
        let untested: Vec<_> = alerts.difference(tested).collect();
        assert!(untested.is_empty(), "no test in which these fire ({fires}): {untested:?}");
    }
}

#[tokio::test]
async fn every_alert_has_a_severity_and_annotations() {
    for alert in alerts().await {
        let severity = alert.labels.get("severity").map(String::as_str);
        let is_watchdog = alert.name == "ChartIndexWatchdog";
        let is_severity = matches!(severity, Some("page" | "ticket")) && !is_watchdog;
        assert!(is_severity || is_watchdog && severity == Some("none"), "{alert:?}");
        let annotations: Vec<&str> = alert.annotations.keys().map(String::as_str).collect();
        assert_eq!(annotations, ["description", "runbook_url", "summary"], "{}", alert.name);
        let runbook = format!("{{{{ $externalLabels.runbook }}}}#{}", alert.name.to_lowercase());
        assert_eq!(alert.annotations["runbook_url"], runbook, "{}", alert.name);
    }
}

#[tokio::test]
async fn runbook_has_a_section_for_each_alert() {
    let text = read("docs/runbook.md");
    let sections: BTreeMap<&str, &str> = text
        .split("\n### ")
        .skip(1)
        .map(|section| section.split("\n## ").next().unwrap_or_default())
        // Alerts with the same steps share a section: the headings of all but the last are followed by no text.
        .map(|section| section.split_once('\n').unwrap_or((section, "")))
        .collect();
    let alerts = alerts().await;
    let names: BTreeSet<&str> = alerts.iter().map(|alert| alert.name.as_str()).collect();
    assert_eq!(names, sections.keys().copied().collect());
    for (name, section) in sections.into_iter().filter(|(_, section)| !section.is_empty()) {
        let parts: Vec<&str> = section
            .lines()
            .filter_map(|line| line.strip_prefix("- **")?.split_once(".**").map(|(part, _)| part))
            .collect();
        // Not every action can or has to be reverted.
        assert!(parts == RUNBOOK_PARTS || parts == RUNBOOK_PARTS[..3], "{name}: {parts:?}");
    }
}

async fn alerts() -> Vec<Rule> {
    rules().await.into_iter().filter(|rule| rule.is_alert).collect()
}

/// The rules, as a server has parsed them.
async fn rules() -> Vec<Rule> {
    static RULES: OnceCell<Vec<Rule>> = OnceCell::const_new();
    let parsed = || async { PrivatePrometheus::start(&[]).await.rules().await };
    RULES.get_or_init(parsed).await.clone()
}

/// The alerts that a file of tests expects, and whether to fire.
fn tested_alerts(tests: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for case in tests.split("- alertname: ").skip(1) {
        let alert = case.lines().next().unwrap_or_default();
        let expected = case.lines().find_map(|line| line.trim().strip_prefix("exp_alerts:"));
        found.push((alert.to_owned(), expected.expect("an expectation").trim() != "[]"));
    }
    found
}
