//! The metrics and spans of connections.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::time::Duration;

use chart_index_redis::testing::{RedisServer, wait_for_state};
use chart_index_redis::{CommandError, ConnectionState, RedisConfig, RedisConnection, RedisPool};
use chart_index_tests::{RecordedSpan, RecordedTelemetry};
use redis::{Cmd, cmd};
use tokio::time::Instant;
use tracing::{Instrument, info_span};

const OPERATIONS: &str = "db_client_operation_duration_seconds";

fn command(name: &str, arguments: &[&str]) -> Cmd {
    let mut command = cmd(name);
    for argument in arguments {
        command.arg(argument);
    }
    command
}

async fn connect(config: RedisConfig) -> RedisConnection {
    let connection = RedisConnection::connect("main", &config).unwrap();
    wait_for_state(&connection, ConnectionState::Connected).await;
    connection
}

/// The number of operations with this name, and how many of them had each type of error.
fn operations(telemetry: &RecordedTelemetry, name: &str) -> (i64, [i64; 3]) {
    let labels = [("db_system_name", "redis"), ("db_operation_name", name)];
    let with_error = |error| {
        let labels = [labels[0], labels[1], ("error_type", error)];
        telemetry.value(OPERATIONS, &labels).unwrap_or(0)
    };
    let all = telemetry.value(OPERATIONS, &labels).unwrap_or(0);
    (all, ["timeout", "unavailable", "error"].map(with_error))
}

#[tokio::test]
async fn operations_are_counted_by_command_and_error() {
    let telemetry = RecordedTelemetry::start();
    let server = RedisServer::start(&[]);
    let connection = connect(server.patient_config()).await;
    let deadline = connection.deadline();
    for name in ["GET", "EVALSHA", "EVAL"] {
        assert_eq!(operations(&telemetry, name), (0, [0; 3]), "{name} before the first");
        let labels = [("db_operation_name", name)];
        assert_eq!(telemetry.value(OPERATIONS, &labels), Some(0), "{name} has its series from the start");
    }
    let get = command("GET", &["missing"]);
    let unknown = command("EVALSHA", &["ffffffffffffffffffffffffffffffffffffffff", "0"]);
    connection.run(&get, deadline).await.unwrap();
    connection.run(&unknown, deadline).await.unwrap_err();
    connection.run(&command("APPEND", &["key", "value"]), deadline).await.unwrap();
    for (name, expected) in
        [("GET", (1, [0; 3])), ("EVALSHA", (1, [0, 0, 1])), ("_OTHER", (1, [0; 3])), ("APPEND", (0, [0; 3]))]
    {
        assert_eq!(operations(&telemetry, name), expected, "{name}");
    }
}

#[tokio::test]
async fn outage_is_visible() {
    let telemetry = RecordedTelemetry::start();
    let mut server = RedisServer::start(&[]);
    let connection = connect(server.config()).await;
    let is_connected =
        || telemetry.value("chart_index_redis_connected", &[("chart_index_redis_connection", "main")]);
    assert_eq!(is_connected(), Some(1));
    let get = command("GET", &["missing"]);
    server.freeze();
    let reply = connection.run(&get, connection.deadline()).await;
    assert!(matches!(reply, Err(CommandError::TimedOut)), "{reply:?}");
    server.thaw();
    server.kill();
    wait_for_state(&connection, ConnectionState::Unavailable).await;
    assert_eq!(is_connected(), Some(0));
    let reply = connection.run(&get, connection.deadline()).await;
    assert!(matches!(reply, Err(CommandError::Unavailable)), "{reply:?}");
    assert_eq!(operations(&telemetry, "GET"), (2, [1, 1, 0]));
}

#[tokio::test]
async fn nothing_is_measured_without_redis() {
    let telemetry = RecordedTelemetry::start();
    let connection = RedisConnection::disabled();
    let reply = connection.run(&command("GET", &["missing"]), connection.deadline()).await;
    assert!(matches!(reply, Err(CommandError::Unavailable)), "{reply:?}");
    for name in [OPERATIONS, "chart_index_redis_connected"] {
        assert_eq!(telemetry.value(name, &[]), None, "{name}");
    }
}

#[tokio::test]
async fn commands_that_are_sent_together_are_one_operation() {
    let telemetry = RecordedTelemetry::start();
    let server = RedisServer::start(&[]);
    let connection = connect(server.patient_config()).await;
    let (set, unknown) = (command("SET", &["key", "value"]), command("NONE", &[]));
    let run = async |commands: &[Cmd]| {
        let replies = connection.run_all(commands, connection.deadline()).await;
        replies.iter().map(Result::is_ok).collect::<Vec<_>>()
    };
    assert_eq!(run(std::slice::from_ref(&set)).await, [true]);
    assert_eq!(run(&[set.clone(), set.clone()]).await, [true, true]);
    assert_eq!(run(&[set.clone(), unknown, set]).await, [true, false, true]);
    for (name, expected) in [("SET", (1, [0; 3])), ("PIPELINE", (2, [0, 0, 1])), ("MGET", (0, [0; 3]))] {
        assert_eq!(operations(&telemetry, name), expected, "{name}");
    }
}

#[tokio::test]
async fn unavailable_redis_fails_operations_of_the_pool() {
    let telemetry = RecordedTelemetry::start();
    let mut server = RedisServer::start(&[]);
    let pool = RedisPool::new(&server.config()).unwrap();
    let mget = command("MGET", &["key"]);
    let run = async |wait| pool.run_all(std::slice::from_ref(&mget), Instant::now() + wait).await.remove(0);
    run(Duration::from_secs(20)).await.unwrap();
    server.freeze();
    let reply = run(Duration::from_millis(10)).await;
    assert!(matches!(reply, Err(CommandError::TimedOut)), "{reply:?}");
    server.thaw();
    server.kill();
    let reply = run(Duration::from_secs(20)).await;
    assert!(!matches!(reply, Ok(_) | Err(CommandError::TimedOut)), "{reply:?}");
    server.restart();
    run(Duration::from_secs(20)).await.unwrap();
    assert_eq!(operations(&telemetry, "MGET"), (4, [1, 1, 0]));
}

#[tokio::test]
async fn operations_have_spans_inside_other_spans_only() {
    let telemetry = RecordedTelemetry::start();
    let server = RedisServer::start(&[]);
    let connection = connect(server.patient_config()).await;
    let get = command("GET", &["missing"]);
    let work = async || {
        connection.run(&get, connection.deadline()).await.unwrap();
        connection.run(&command("NONE", &[]), connection.deadline()).await.unwrap_err();
        drop(connection.span("EVALSHA"));
    };
    work().await;
    assert_eq!(telemetry.spans().len(), 0, "no span is current");
    work().instrument(info_span!("request")).await;
    let spans = telemetry.spans();
    let [get, other, shared, request] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!(
        [&get.name, &other.name, &shared.name, &request.name],
        ["GET", "_OTHER", "EVALSHA", "request"]
    );
    assert_eq!([get.parent, other.parent, shared.parent], [request.id; 3]);
    let attribute = |span: &RecordedSpan, name| span.attributes.get(name).cloned().unwrap_or_default();
    for (span, error) in [(get, ""), (other, "error"), (shared, "")] {
        assert_eq!(attribute(span, "db.system.name"), "redis");
        assert_eq!(attribute(span, "db.operation.name"), span.name);
        assert_eq!(attribute(span, "error.type"), error, "{}", span.name);
    }
}
