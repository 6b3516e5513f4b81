//! The background task that connects, probes and reconnects.

use std::error::Error;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use redis::RedisResult;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::RedisConfig;
use crate::circuit_breaker::CircuitBreaker;
use crate::config::Client;
use crate::connection_state::{Connected, CurrentConnection, SharedConnection};
use crate::multiplexed::{Multiplexed, with_timeout};

/// After a connection that lasted this long, the delays start again.
const STABLE_AFTER: Duration = Duration::from_secs(5);
/// How often a connection is probed, so that a request does not have to find out that it is dead.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Delays between attempts to connect, from 50 ms to 300 ms. The jitter, up to the delay itself, keeps replicas
/// from reconnecting in step.
const BACKOFF: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(50))
    .with_max_delay(Duration::from_millis(300))
    .without_max_times()
    .with_jitter();

/// Keeps a connection open until the task is aborted.
pub(crate) async fn run(shared: Arc<SharedConnection>, client: Client, config: RedisConfig) {
    let mut delays = delays();
    let mut unavailable = false;
    loop {
        match connect(&shared, &client, &config).await {
            Ok(connection) => {
                if std::mem::take(&mut unavailable) {
                    tracing::info!("redis is available again");
                }
                if use_until_discarded(&shared, connection).await >= STABLE_AFTER {
                    delays = self::delays();
                    continue;
                }
            }
            Err(error) => {
                shared.state.send_replace(CurrentConnection::Unavailable);
                if !std::mem::replace(&mut unavailable, true) {
                    tracing::warn!(error = &error as &dyn Error, "redis is unavailable");
                }
            }
        }
        if let Some(delay) = delays.next().filter(|delay| !delay.is_zero()) {
            shared.state.send_replace(CurrentConnection::Unavailable);
            sleep(delay).await;
        }
    }
}

/// The delays before attempts to reconnect, of which the first is none.
fn delays() -> impl Iterator<Item = Duration> {
    iter::once(Duration::ZERO).chain(BACKOFF.build())
}

/// One attempt to connect. Requests wait for it for as long as for a reply; then Redis counts as unavailable.
async fn connect(
    shared: &SharedConnection,
    client: &Client,
    config: &RedisConfig,
) -> RedisResult<Multiplexed> {
    // Bounds all steps together: resolving the name, TLS, AUTH, the slots of a cluster.
    let attempt = with_timeout(2 * config.connect_timeout, Multiplexed::open(client, config));
    let mut attempt = std::pin::pin!(attempt);
    if let Ok(opened) = timeout(config.request_timeout, &mut attempt).await {
        return opened;
    }
    shared.state.send_replace(CurrentConnection::Unavailable);
    attempt.await
}

/// Lets requests use a connection, and probes it, until it is discarded. Returns how long that was.
async fn use_until_discarded(shared: &SharedConnection, connection: Multiplexed) -> Duration {
    let opened_at = Instant::now();
    let connected = Arc::new(Connected { connection, breaker: CircuitBreaker::default() });
    shared.state.send_replace(CurrentConnection::Connected(Arc::clone(&connected)));
    let mut probes = interval(PROBE_INTERVAL);
    probes.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shared.discarded.notified() => return opened_at.elapsed(),
            _ = probes.tick() => {
                let reply = timeout(shared.request_timeout, connected.connection.clone().probe()).await;
                let _ = shared.record(&connected, reply);
            }
        }
    }
}
