//! Connects, probes and reconnects, instead of the connection manager of the crate, which keeps a connection
//! that hangs or leads to a replica, and connects once for each command that fails (decision 0067).

use std::error::Error;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, RedisResult, ServerErrorKind, from_redis_value};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::circuit_breaker::CircuitBreaker;
use crate::connection_state::{Connected, CurrentConnection, SharedConnection};

/// The server that a connection leads to.
pub(crate) struct Target {
    pub(crate) client: Client,
    /// What a server is asked when it is probed: `PING`, or `CLUSTER INFO` in a cluster.
    pub(crate) probe: Cmd,
    pub(crate) connect_timeout: Duration,
}

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
/// How many commands may be queued for a socket before their callers have to wait.
const QUEUE_CAPACITY: usize = 1_024;

/// Keeps a connection open until the task is aborted.
pub(crate) async fn run(shared: Arc<SharedConnection>, target: Target) {
    let server = target.client.get_connection_info().addr().to_string();
    let mut delays = delays();
    let mut unavailable = false;
    loop {
        match connect(&shared, &target).await {
            Ok(connection) => {
                if std::mem::take(&mut unavailable) {
                    tracing::info!(server, "redis is available again");
                }
                if use_until_discarded(&shared, &target, connection).await >= STABLE_AFTER {
                    delays = self::delays();
                    continue;
                }
            }
            Err(error) => {
                shared.state.send_replace(CurrentConnection::Unavailable);
                if !std::mem::replace(&mut unavailable, true) {
                    tracing::warn!(error = &error as &dyn Error, server, "redis is unavailable");
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
async fn connect(shared: &SharedConnection, target: &Target) -> RedisResult<MultiplexedConnection> {
    let attempt = async {
        let connection = target.open().await?;
        // A Redis that replies too late for requests is not available.
        with_timeout(shared.request_timeout, target.probe(connection.clone())).await?;
        Ok(connection)
    };
    let mut attempt = std::pin::pin!(attempt);
    if let Ok(opened) = timeout(shared.request_timeout, &mut attempt).await {
        return opened;
    }
    shared.state.send_replace(CurrentConnection::Unavailable);
    attempt.await
}

impl Target {
    /// Connects. The timeout bounds all steps together: resolving the name, TLS, AUTH.
    pub(crate) async fn open(&self) -> RedisResult<MultiplexedConnection> {
        let settings = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect_timeout))
            // Every command has its own deadline.
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE_CAPACITY);
        let opened = self.client.get_multiplexed_async_connection_with_config(&settings);
        with_timeout(2 * self.connect_timeout, opened).await
    }

    /// Checks that the server replies and, in a cluster, that it accepts commands: one that is cut off from the
    /// others replies as well.
    pub(crate) async fn probe(&self, mut connection: MultiplexedConnection) -> RedisResult<()> {
        let reply = connection.send_packed_command(&self.probe).await?.extract_error()?;
        if from_redis_value::<String>(reply)?.contains("cluster_state:fail") {
            let error = ErrorKind::Server(ServerErrorKind::ClusterDown);
            return Err((error, "the state of the cluster is fail").into());
        }
        Ok(())
    }
}

/// Awaits a result, and fails with an I/O error if it takes longer than this.
pub(crate) async fn with_timeout<Output>(
    limit: Duration,
    result: impl Future<Output = RedisResult<Output>>,
) -> RedisResult<Output> {
    match timeout(limit, result).await {
        Ok(result) => result,
        Err(elapsed) => Err(std::io::Error::from(elapsed).into()),
    }
}

/// Lets requests use a connection, and probes it, until it is discarded. Returns how long that was.
async fn use_until_discarded(
    shared: &SharedConnection,
    target: &Target,
    connection: MultiplexedConnection,
) -> Duration {
    let opened_at = Instant::now();
    let connected = Arc::new(Connected { connection, breaker: CircuitBreaker::default() });
    shared.state.send_replace(CurrentConnection::Connected(Arc::clone(&connected)));
    let mut probes = interval(PROBE_INTERVAL);
    probes.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shared.discarded() => return opened_at.elapsed(),
            _ = probes.tick() => {
                let reply = timeout(shared.request_timeout, target.probe(connected.connection.clone())).await;
                let _ = shared.record(&connected, reply);
            }
        }
    }
}
