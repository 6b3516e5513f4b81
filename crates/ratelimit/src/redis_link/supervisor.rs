//! The background task that connects, watches, and connects again.

use std::sync::Arc;
use std::time::Duration;

use redis::RedisResult;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use super::breaker::Breaker;
use super::config::{Opener, RedisLinkConfig};
use super::connection::{Connection, in_time};
use super::{Open, Shared, State};

/// A connection that held this long was a good one: after it the first attempt comes at once again.
const GOOD: Duration = Duration::from_secs(5);
/// How often an idle connection is tried, so that a request does not find it dead.
const HEARTBEAT: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Runs until it is aborted.
pub(super) async fn supervise(shared: Arc<Shared>, opener: Opener, config: RedisLinkConfig) {
    let mut pause = Duration::ZERO;
    let mut away = false;
    loop {
        match attempt(&shared, &opener, &config).await {
            Ok(connection) => {
                if std::mem::take(&mut away) {
                    tracing::info!("redis is back");
                }
                if watch(&shared, connection).await >= GOOD {
                    pause = Duration::ZERO;
                    continue;
                }
            }
            Err(error) => {
                shared.state.send_replace(State::Away);
                if !std::mem::replace(&mut away, true) {
                    tracing::warn!(error = &error as &dyn std::error::Error, "redis is away");
                }
            }
        }
        if !pause.is_zero() {
            shared.state.send_replace(State::Away);
            sleep(jittered(pause)).await;
        }
        pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
    }
}

/// One attempt to connect. Requests wait for it no longer than one of them may wait.
async fn attempt(shared: &Shared, opener: &Opener, config: &RedisLinkConfig) -> RedisResult<Connection> {
    // What opens in parts (name, TLS, log-in, the map of a cluster) takes no longer in all.
    let mut opening = std::pin::pin!(in_time(2 * config.connect_timeout, Connection::open(opener, config)));
    if let Ok(opened) = timeout(config.request_timeout, &mut opening).await {
        return opened;
    }
    shared.state.send_replace(State::Away);
    opening.await
}

/// Offers a connection until it is given up; how long it was in use.
async fn watch(shared: &Shared, connection: Connection) -> Duration {
    let begun = Instant::now();
    let open = Arc::new(Open { connection, breaker: Breaker::default() });
    shared.state.send_replace(State::Up(Arc::clone(&open)));
    let mut beats = interval(HEARTBEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shared.given_up.notified() => return begun.elapsed(),
            _ = beats.tick() => {
                // The breaker is told of its outcome as of any other.
                let probed = timeout(shared.request_timeout, open.connection.clone().probe()).await;
                let _ = shared.judged(&open, probed);
            }
        }
    }
}

/// Between all of a pause and five quarters of it, so that replicas do not come back in step.
fn jittered(pause: Duration) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    let random = u32::try_from(RandomState::new().hash_one(()) % 256).unwrap_or(0);
    pause + pause / 4 * random / 256
}
