//! Recording rules and alerts.

use chart_index_tests::PrivatePrometheus;

use super::promtool;

/// `check config` checks the files of rules as well.
#[test]
fn configuration_and_rules_are_valid() {
    let output = promtool(&["check", "config", "--lint=all", "--lint-fatal", "monitoring/prometheus.yml"]);
    assert!(output.contains("rules found"), "{output}");
}

/// A server with the configuration of the repository evaluates every rule, also without any target.
#[tokio::test]
async fn rules_are_evaluated() {
    let prometheus = PrivatePrometheus::start(&[]).await;
    prometheus.wait_for_evaluations().await;
    let failed: Vec<_> = prometheus.rules().await.into_iter().filter(|rule| rule.health != "ok").collect();
    assert!(failed.is_empty(), "{failed:#?}");
}
