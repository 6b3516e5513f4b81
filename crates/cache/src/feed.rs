//! Hearing of changed answers: a subscription on a connection of its own, renewed whenever it is lost.

use std::sync::Arc;
use std::time::Duration;

use chart_index_redis::RedisConfig;
use futures_util::StreamExt;
use redis::aio::PubSubSink;
use redis::{Client, RedisResult};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::CacheKey;
use crate::inner::Inner;
use crate::subscription::{Server, Subscription};

const MESSAGE_VERSION: u8 = 1;
/// How often the connection is asked for a sign of life, well within the silence that trust survives.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// How long it may take, and how long connecting may.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE_MS: std::ops::Range<u64> = 50..250;

/// The channel of the caches with this key prefix.
pub(crate) fn channel(key_prefix: &str) -> String {
    format!("{key_prefix}invalidate")
}

/// A message that names these keys.
pub(crate) fn message(keys: &[CacheKey]) -> Vec<u8> {
    let mut message = Vec::with_capacity(1 + keys.len() * CacheKey::WIRE_BYTES);
    message.push(MESSAGE_VERSION);
    for key in keys {
        key.write_wire(&mut message);
    }
    message
}

/// The keys in a message; `None` if it is not one that this version understands.
fn keys(message: &[u8]) -> Option<Vec<CacheKey>> {
    let (&MESSAGE_VERSION, keys) = message.split_first()? else { return None };
    let (keys, rest) = keys.as_chunks();
    if rest.is_empty() { keys.iter().map(CacheKey::from_wire).collect() } else { None }
}

/// Listens until it is aborted.
pub(crate) async fn follow<E: Send + Sync + 'static>(
    inner: Arc<Inner<E>>,
    nodes: Vec<Client>,
    config: RedisConfig,
    channel: String,
) {
    let mut away = false;
    for node in nodes.iter().cycle() {
        let subscribed = Subscription::open(node, &config, &channel);
        match timeout(PATIENCE, subscribed).await.map_err(std::io::Error::from) {
            Ok(Ok(subscription)) => {
                if std::mem::take(&mut away) {
                    tracing::info!("invalidations are heard again");
                }
                inner.doubt_everything();
                listen(&inner, subscription).await;
            }
            Ok(Err(error)) => note(&mut away, &error),
            Err(error) => note(&mut away, &error),
        }
        sleep(Duration::from_millis(fastrand::u64(PAUSE_MS))).await;
    }
}

/// Logs the first failure, and none of the many that follow.
fn note(away: &mut bool, error: &(dyn std::error::Error + 'static)) {
    if !std::mem::replace(away, true) {
        tracing::warn!(error, "invalidations are not heard: answers are checked before they are served");
    }
}

/// Applies what is heard, until the connection is lost or silent.
async fn listen<E: Send + Sync + 'static>(inner: &Inner<E>, subscription: Subscription) {
    let Subscription { sink, mut messages, server } = subscription;
    let mut pulse = std::pin::pin!(pulse(inner, sink, server));
    loop {
        tokio::select! {
            biased;
            message = messages.next() => match message {
                Some(message) => apply(inner, message.get_payload_bytes()),
                None => return,
            },
            () = &mut pulse => return,
        }
    }
}

fn apply<E: Send + Sync + 'static>(inner: &Inner<E>, message: &[u8]) {
    match keys(message) {
        Some(keys) => inner.invalidate(&keys),
        // From a newer version, perhaps: something has changed, who knows what.
        None => inner.doubt_everything(),
    }
}

/// Checks the connection and the server, again and again; returns when one of them fails.
async fn pulse<E: Send + Sync + 'static>(inner: &Inner<E>, mut sink: PubSubSink, mut server: Server) {
    let mut beats = interval(HEARTBEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        let checked = async { RedisResult::Ok((server.check().await?, sink.ping::<redis::Value>().await?)) };
        match timeout(PATIENCE, checked).await {
            Ok(Ok(_)) => inner.hears(),
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use chart_index_domain::NoteHash;

    use super::*;

    #[test]
    fn a_message_names_its_keys() {
        let named = CacheKey::all_of_chart(NoteHash::from_bytes([5; 32]));
        assert_eq!(keys(&message(&named)), Some(named.to_vec()));
        assert_eq!(keys(&message(&[])), Some(vec![]));
    }

    #[test]
    fn a_message_of_another_version_is_not_understood() {
        let mut newer = message(&CacheKey::all_of_chart(NoteHash::from_bytes([5; 32])));
        assert_eq!(keys(&newer[..20]), None);
        newer[0] += 1;
        assert_eq!(keys(&newer), None);
        assert_eq!(keys(b""), None);
    }
}
