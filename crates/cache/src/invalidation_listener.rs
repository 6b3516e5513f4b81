//! The background task that receives invalidations and applies them to the memory of this replica.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use chart_index_redis::RedisConfig;
use futures_util::StreamExt;
use redis::aio::PubSubSink;
use redis::{Client, RedisResult, Value};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::invalidation_message;
use crate::read_through::ReadThrough;
use crate::subscription::{Server, Subscription};

/// How often the connection is checked: well below the timeout after which the replica no longer counts as
/// listening.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// How long a check or an attempt to connect may take.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The delay before an attempt to reconnect, chosen at random so that replicas do not reconnect in step.
const RECONNECT_DELAY_MS: std::ops::Range<u64> = 50..250;

/// Listens until the task is aborted. Tries the nodes in turn.
pub(crate) async fn run<E: Send + Sync + 'static>(
    cache: Arc<ReadThrough<E>>,
    nodes: Vec<Client>,
    config: RedisConfig,
    channel: String,
) {
    let mut disconnected = false;
    for node in nodes.iter().cycle() {
        let subscribed = Subscription::open(node, &config, &channel);
        match timeout(TIMEOUT, subscribed).await.map_err(std::io::Error::from) {
            Ok(Ok(subscription)) => {
                if std::mem::take(&mut disconnected) {
                    tracing::info!("cache invalidations are received again");
                }
                cache.start_listening();
                listen(&cache, subscription).await;
            }
            Ok(Err(error)) => log_failure(&mut disconnected, &error),
            Err(error) => log_failure(&mut disconnected, &error),
        }
        sleep(Duration::from_millis(fastrand::u64(RECONNECT_DELAY_MS))).await;
    }
}

/// Logs the first of consecutive failures.
fn log_failure(disconnected: &mut bool, error: &(dyn Error + 'static)) {
    if !std::mem::replace(disconnected, true) {
        tracing::warn!(error, "cache invalidations are not received: cached responses are revalidated");
    }
}

/// Applies messages until the connection is lost or fails a check.
async fn listen<E: Send + Sync + 'static>(cache: &ReadThrough<E>, subscription: Subscription) {
    let Subscription { sink, mut messages, server } = subscription;
    let mut checks = std::pin::pin!(check_regularly(cache, sink, server));
    loop {
        tokio::select! {
            biased;
            message = messages.next() => match message {
                Some(message) => apply(cache, message.get_payload_bytes()),
                None => return,
            },
            () = &mut checks => return,
        }
    }
}

fn apply<E: Send + Sync + 'static>(cache: &ReadThrough<E>, message: &[u8]) {
    match invalidation_message::decode(message) {
        Some(keys) => cache.invalidate(&keys),
        // Perhaps from a newer version. Any key may have changed, as when listening starts.
        None => cache.start_listening(),
    }
}

/// Checks the connection and the server until one of them fails.
async fn check_regularly<E: Send + Sync + 'static>(
    cache: &ReadThrough<E>,
    mut sink: PubSubSink,
    mut server: Server,
) {
    let mut ticks = interval(CHECK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let check = async { RedisResult::Ok((server.check().await?, sink.ping::<Value>().await?)) };
        match timeout(TIMEOUT, check).await {
            Ok(Ok(_)) => cache.confirm_listening(),
            Ok(Err(_)) | Err(_) => return,
        }
    }
}
