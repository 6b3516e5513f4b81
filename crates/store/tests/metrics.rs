//! The metrics and spans of the store.
#![expect(clippy::unwrap_used, reason = "a test fails if its setup does")]

use std::time::Duration;

use chart_index_domain::{ChartsetId, NoteHash};
use chart_index_store::{CatalogueWatch, Store, StoreConfig};
use chart_index_tests::{RecordedTelemetry, Series, TestDatabase, within};
use opentelemetry::trace::SpanKind;
use tokio::time::timeout;
use tracing::Instrument;

const HASH: NoteHash = NoteHash::from_bytes([7; 32]);
const ID: ChartsetId = ChartsetId::from_bytes([7; 8]);
const TIMEOUT: Duration = Duration::from_secs(20);

async fn catalogue() -> (TestDatabase, StoreConfig) {
    let database = TestDatabase::migrated().await;
    let config = StoreConfig::new(database.url().parse().unwrap());
    (database, config)
}

/// The types of error of the operations with this name, `-` without one, and how often each occurred.
fn operations(telemetry: &RecordedTelemetry, name: &str) -> Vec<(String, f64)> {
    let is_operation = |series: &Series| {
        let label = |label| series.labels.get(label).map(String::as_str);
        series.name == "db_client_operation_duration_seconds"
            && (label("db_system_name"), label("db_operation_name")) == (Some("postgresql"), Some(name))
    };
    let error = |series: &Series| series.labels.get("error_type").map_or("-", String::as_str).to_owned();
    let operations = telemetry.series().into_iter().filter(is_operation);
    operations.map(|series| (error(&series), series.value)).collect()
}

#[tokio::test]
async fn operation_has_a_duration_and_a_client_span() {
    let telemetry = RecordedTelemetry::start();
    let (_database, config) = catalogue().await;
    let store = Store::new(&config);
    assert!(store.chart(HASH).await.unwrap().is_none(), "without a span around it");
    let request = tracing::info_span!("request");
    assert!(store.chart(HASH).instrument(request.clone()).await.unwrap().is_none());
    assert_eq!(operations(&telemetry, "look up chart"), [("-".to_owned(), 2.0)]);
    let spans = telemetry.spans();
    let [span] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((&*span.name, &span.kind), ("look up chart", &SpanKind::Client));
    assert_eq!(span.attributes["db.system.name"], "postgresql");
    assert_eq!(span.attributes["db.operation.name"], "look up chart");
    assert!(!span.attributes.contains_key("error.type"));
}

#[tokio::test]
async fn failed_operation_has_an_error_type() {
    let telemetry = RecordedTelemetry::start();
    let (database, config) = catalogue().await;
    let impatient = Store::new(&StoreConfig { lookup_timeout: Duration::from_millis(10), ..config.clone() });
    let mut lock = database.start_psql("BEGIN; LOCK TABLE rox_files; SELECT pg_sleep(60)");
    let locked = "relation = 'rox_files'::regclass AND mode = 'AccessExclusiveLock' AND granted";
    within(TIMEOUT, async || (database.locks(locked) == 1).then_some(())).await;
    let request = tracing::info_span!("request");
    assert!(impatient.rox(HASH).instrument(request.clone()).await.is_err());
    database.psql(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
         WHERE datname = current_database() AND query LIKE 'BEGIN; LOCK%'",
    );
    lock.wait().unwrap();
    assert_eq!(operations(&telemetry, "read ROX file"), [("timeout".to_owned(), 1.0)], "once with its retry");
    assert_eq!(telemetry.spans()[0].attributes["error.type"], "timeout");

    let waits = || {
        let labels = [("db_client_connection_pool_name", "requests")];
        telemetry.value("db_client_connection_timeouts_total", &labels)
    };
    assert_eq!(waits(), Some(0), "exists before the first timeout");
    // Nothing listens on port 1.
    let url = "postgres://nobody@127.0.0.1:1/none".parse().unwrap();
    let unavailable =
        Store::new(&StoreConfig { acquire_timeout: Duration::from_millis(50), ..StoreConfig::new(url) });
    for _ in 0..5 {
        assert!(unavailable.public_source(ID).await.is_err());
    }
    assert_eq!(operations(&telemetry, "read source of chartset"), [("unavailable".to_owned(), 5.0)]);
    assert_eq!(waits(), Some(3), "then the circuit breaker is open");

    // Not migrated.
    let empty = TestDatabase::create().await;
    let store = Store::new(&StoreConfig::new(empty.url().parse().unwrap()));
    assert!(store.chartset(ID).await.is_err());
    assert_eq!(operations(&telemetry, "read chartset"), [("error".to_owned(), 1.0)]);
}

#[tokio::test]
async fn dropped_operation_counts_as_a_timeout() {
    let telemetry = RecordedTelemetry::start();
    let (_database, config) = catalogue().await;
    let store = Store::new(&config);
    assert!(timeout(Duration::ZERO, store.chartset(ID)).await.is_err(), "it has to wait for a connection");
    assert_eq!(operations(&telemetry, "read chartset"), [("timeout".to_owned(), 1.0)]);
}

#[tokio::test]
async fn pool_is_observed_while_it_exists() {
    let telemetry = RecordedTelemetry::start();
    let (_database, config) = catalogue().await;
    let monitoring = Store::new(&config).monitoring();
    let pool = ("db_client_connection_pool_name", "monitoring");
    let open =
        |state| telemetry.value("db_client_connection_open", &[pool, ("db_client_connection_state", state)]);
    let max = || telemetry.value("db_client_connection_max", &[pool]);
    assert_eq!((open("idle"), open("used"), max()), (Some(0), Some(0), Some(2)));

    let available = || telemetry.value("chart_index_postgresql_available", &[]);
    assert_eq!(available(), None);
    let watch = CatalogueWatch::start(&monitoring, None, Duration::from_mins(1), |_, _| ()).await;
    assert_eq!(available(), Some(1));
    within(TIMEOUT, async || (open("idle") == Some(1)).then_some(())).await;
    assert_eq!(open("used"), Some(0));
    assert!(telemetry.value("db_client_connection_wait_time_seconds", &[pool]).is_some());

    drop((monitoring, watch));
    within(TIMEOUT, async || (open("idle"), max(), available()).eq(&(None, None, None)).then_some(())).await;
}

#[tokio::test]
async fn outdated_prepared_statement_is_counted() {
    let telemetry = RecordedTelemetry::start();
    let (database, config) = catalogue().await;
    let store = Store::new(&StoreConfig { max_connections: 1, ..config });
    assert!(store.check_schema().await.is_ok());
    let _ = database.psql("ALTER TABLE _sqlx_migrations ALTER COLUMN version TYPE numeric");
    let _ = store.check_schema().await;
    assert_eq!(telemetry.value("chart_index_postgresql_plan_errors_total", &[]), Some(1));
}
