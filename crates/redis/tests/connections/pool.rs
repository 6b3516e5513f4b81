//! Which connections the pool uses again.

use std::time::Duration;

use chart_index_redis::testing::RedisServer;
use chart_index_redis::{CommandError, RedisPool};
use redis::{Cmd, Value, cmd};
use tokio::time::Instant;

#[tokio::test]
async fn connection_to_a_read_only_server_is_closed() {
    let server = RedisServer::start(&[]);
    let pool = RedisPool::new(&server.patient_config()).unwrap();
    let run = async |command: &Cmd| {
        pool.run_all(std::slice::from_ref(command), Instant::now() + Duration::from_secs(20)).await.remove(0)
    };
    let connection = async || match run(cmd("CLIENT").arg("ID")).await {
        Ok(Value::Int(id)) => id,
        reply => panic!("{reply:?}"),
    };
    let first = connection().await;
    assert_eq!(connection().await, first, "it is used again");
    // Nothing listens on port 1.
    server.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    let reply = run(cmd("SET").arg("key").arg("value")).await;
    assert!(matches!(reply, Err(CommandError::Disconnected(_))), "{reply:?}");
    assert_ne!(connection().await, first, "a new one may lead to another server");
}
