//! Timeouts of commands and the circuit breaker.

use std::time::Duration;

use chart_index_redis::testing::{RedisServer, wait_for_state};
use chart_index_redis::{CommandError, ConnectionState, RedisConfig, RedisConnection, RedisEndpoint};
use chart_index_tests::Proxy;
use futures_util::future::join_all;
use redis::{Cmd, cmd};

/// A command on a key that does not exist.
fn command(name: &str) -> Cmd {
    let mut command = cmd(name);
    command.arg("missing");
    command
}

#[tokio::test]
async fn timeouts_count_for_their_own_connection_only() {
    let server = RedisServer::start(&[]);
    let proxy = Proxy::start(&format!("redis://default@127.0.0.1:{}/0", server.port)).await;
    let endpoint = RedisEndpoint::Single(proxy.url().parse().unwrap());
    let request_timeout = Duration::from_millis(400);
    let config = RedisConfig { request_timeout, ..RedisConfig::new(endpoint) };
    let connection = RedisConnection::connect("main", &config).unwrap();
    wait_for_state(&connection, ConnectionState::Connected).await;
    proxy.silence_open_connections();
    let get = command("GET");
    let send = || {
        let (connection, get) = (connection.clone(), get.clone());
        tokio::spawn(async move { connection.run(&get, connection.deadline()).await })
    };
    let first: Vec<_> = (0..3).map(|_| send()).collect();
    tokio::time::sleep(request_timeout / 2).await;
    let late: Vec<_> = (0..3).map(|_| send()).collect();
    for reply in join_all(first).await {
        assert!(matches!(reply.unwrap(), Err(CommandError::TimedOut)), "the breaker opens");
    }
    wait_for_state(&connection, ConnectionState::Connected).await;
    for reply in join_all(late).await {
        assert!(matches!(reply.unwrap(), Err(CommandError::TimedOut)), "after the connection was replaced");
    }
    assert_eq!(connection.state(), ConnectionState::Connected);
    let mut slow = command("BLPOP");
    slow.arg("0.5");
    let reply = connection.run(&slow, connection.deadline()).await;
    assert!(matches!(reply, Err(CommandError::TimedOut)), "{reply:?}");
    assert_eq!(connection.state(), ConnectionState::Connected, "a single timeout does not open the breaker");
}
