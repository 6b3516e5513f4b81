//! Every panel of every dashboard has data on a loaded instance.

use std::time::{Duration, Instant, SystemTime};

use chart_index_system_tests::PrivatePrometheus;

use super::dashboards::{Query, queries};
use super::loaded::Loaded;

/// Maximum time until every panel has data.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Pause between two rounds of requests.
const PAUSE: Duration = Duration::from_millis(500);

/// The panels that may have no data, by the names of their dashboard and panel: they show alerts or errors by
/// their kind, and these do not occur here.
const WITHOUT_DATA: &[(&str, &str)] = &[
    ("dependencies", "Meilisearch: errors"),
    ("dependencies", "PostgreSQL: statements and timeouts"),
    ("dependencies", "Redis: errors"),
    ("saturation", "Shed requests by reason"),
    ("service", "Firing alerts"),
];

/// Parts of queries about nodes of Meilisearch, which have no data without a node.
const OF_MEILISEARCH: &[&str] = &[
    "chart_index_search_node_",
    "chart_index_sync_",
    r#"db_system_name="meilisearch""#,
    r#"slo="freshness""#,
];

/// Sends requests until every query has had a value, except for those of panels that may have none.
pub(crate) async fn assert_panels_have_data(loaded: &Loaded) {
    let mut missing = queries();
    let is_of = |query: &Query, (dashboard, panel): &(&str, &str)| {
        query.dashboard == *dashboard && query.panel == *panel
    };
    for exception in WITHOUT_DATA {
        assert!(missing.iter().any(|query| is_of(query, exception)), "no such panel: {exception:?}");
    }
    missing.retain(|query| !WITHOUT_DATA.iter().any(|exception| is_of(query, exception)));
    if !loaded.has_search {
        missing.retain(|query| !OF_MEILISEARCH.iter().any(|part| query.expression.contains(part)));
    }
    let start = Instant::now();
    for round in 0_u32.. {
        // A series that begins with its first error has no rate before the second one.
        if round.is_multiple_of(10) {
            loaded.fail().await;
        }
        loaded.request().await;
        let mut without_data = Vec::new();
        for query in missing {
            if !has_data(&loaded.prometheus, &query).await {
                without_data.push(query);
            }
        }
        missing = without_data;
        if missing.is_empty() {
            return;
        }
        assert!(start.elapsed() < TIMEOUT, "without data: {missing:#?}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Whether a query has a number within the last minute.
async fn has_data(prometheus: &PrivatePrometheus, query: &Query) -> bool {
    let now =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time after 1970").as_secs_f64();
    let answer = prometheus.query_range(&without_variables(&query.expression), (now - 60.0, now), 1.0).await;
    let series = answer.unwrap_or_else(|error| panic!("{query:?}: {error}"));
    let series = series.as_array().expect("series").iter();
    let mut samples = series.flat_map(|series| series["values"].as_array().expect("samples"));
    samples.any(|sample| sample[1].as_str().and_then(|value| value.parse().ok()).is_some_and(f64::is_finite))
}

/// The expression with values for the variables of Grafana. The harness scrapes every second.
fn without_variables(expression: &str) -> String {
    let values = [("$__rate_interval", "10s"), ("$__range", "1m"), ("$job", ".+"), ("$instance", ".+")];
    values.iter().fold(expression.to_owned(), |text, (name, value)| text.replace(name, value))
}
