//! The metrics of the limiter.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::num::NonZeroU32;

use chart_index_ratelimit::{Decision, Group, Limiter, LimiterConfig, Limits};
use chart_index_redis::testing::{RedisServer, wait_for_state};
use chart_index_redis::{ConnectionState, RedisConnection};
use chart_index_tests::{RecordedTelemetry, Series};

const DECISIONS: &str = "chart_index_ratelimit_decisions_total";

/// A limiter that admits one request per address.
fn limiter(connection: RedisConnection) -> Limiter {
    let limits = Limits::all(NonZeroU32::MIN);
    Limiter::new(LimiterConfig { limits, ..LimiterConfig::default() }, connection)
}

/// The decisions that were made, as `group decision decider`, and their number.
fn decisions(telemetry: &RecordedTelemetry) -> BTreeMap<String, f64> {
    let series = telemetry.series().into_iter();
    let decided = series.filter(|series| series.name == DECISIONS && series.value > 0.0);
    let label = |series: &Series, name: &str| series.labels[&format!("chart_index_{name}")].clone();
    decided
        .map(|series| {
            (["group", "decision", "decider"].map(|name| label(&series, name)).join(" "), series.value)
        })
        .collect()
}

fn expected<const N: usize>(decisions: [(&str, f64); N]) -> BTreeMap<String, f64> {
    decisions.map(|(decision, number)| (decision.to_owned(), number)).into()
}

async fn check(limiter: &Limiter, group: Group, number: usize) -> Vec<Decision> {
    let mut decisions = Vec::new();
    for _ in 0..number {
        decisions.push(limiter.check(group, Ipv4Addr::LOCALHOST.into()).await);
    }
    decisions
}

#[tokio::test]
async fn decisions_are_counted_by_group_and_decider() {
    let telemetry = RecordedTelemetry::start();
    let server = RedisServer::start(&[]);
    let connection = RedisConnection::connect("main", &server.patient_config()).unwrap();
    wait_for_state(&connection, ConnectionState::Connected).await;
    let limiter = limiter(connection);
    check(&limiter, Group::Lookup, 5).await;
    check(&limiter, Group::Other, 1).await;
    let lookups = [
        ("lookup admitted redis", 1.0),
        ("lookup refused memory", 3.0),
        ("lookup refused redis", 1.0),
        ("other admitted redis", 1.0),
    ];
    assert_eq!(decisions(&telemetry), expected(lookups));
}

#[tokio::test]
async fn decisions_without_redis_are_local() {
    let telemetry = RecordedTelemetry::start();
    let limiter = limiter(RedisConnection::disabled());
    check(&limiter, Group::Rox, 3).await;
    let local = [("rox admitted local", 1.0), ("rox refused local", 2.0)];
    assert_eq!(decisions(&telemetry), expected(local));
}

#[tokio::test]
async fn every_series_exists_from_the_start() {
    let telemetry = RecordedTelemetry::start();
    let _limiter = limiter(RedisConnection::disabled());
    let series = telemetry.series().into_iter().filter(|series| series.name == DECISIONS);
    // Each group has two decisions of Redis and of the local window, and cached refusals.
    assert_eq!(series.count(), Group::ALL.len() * 5);
}
