//! Batches the checks that are made at the same time into one call of the script.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chart_index_redis::{CommandError, RedisConnection};
use futures_util::future::join_all;
use tokio::sync::oneshot;
use tracing::Instrument;

use crate::Decision;
use crate::error_transitions::ErrorTransitions;
use crate::window_script::{Check, WindowScript};

/// The checks that wait to be sent over one connection.
///
/// A check is sent by a task that the runtime polls after the tasks that are ready now. So the checks of all
/// requests that were received together make one call of the script, and none waits for a timer or for an
/// earlier reply. Sent one by one, checks took a quarter of the instructions of the service. If a call fails,
/// all of its requests are decided by the local window.
#[derive(Debug)]
pub(crate) struct CheckQueue {
    connection: RedisConnection,
    script: Arc<WindowScript>,
    errors: Arc<ErrorTransitions>,
    waiting: Mutex<Vec<WaitingCheck>>,
}

#[derive(Debug)]
struct WaitingCheck {
    check: Check,
    decided: oneshot::Sender<Reply>,
}

/// The part of a reply for one check.
#[derive(Debug, Default)]
struct Reply {
    /// `None` if Redis did not decide.
    decision: Option<Decision>,
    /// The number of checks in the call.
    checks: usize,
}

/// The maximum number of checks in a call of the script, which Redis runs without other commands in between: it
/// takes 0.2 ms.
const MAX_CHECKS: usize = 64;

impl CheckQueue {
    pub(crate) const fn new(
        connection: RedisConnection,
        script: Arc<WindowScript>,
        errors: Arc<ErrorTransitions>,
    ) -> Self {
        Self { connection, script, errors, waiting: Mutex::new(Vec::new()) }
    }

    /// Another queue for the same connection.
    pub(crate) fn empty(&self) -> Self {
        Self::new(self.connection.clone(), Arc::clone(&self.script), Arc::clone(&self.errors))
    }

    /// The decision of Redis; `None` if no Redis is configured, or it is unavailable, too slow, or replies with
    /// an error.
    pub(crate) async fn decide(self: &Arc<Self>, check: Check) -> Option<Decision> {
        if !self.connection.is_configured() {
            return None;
        }
        let (decided, decision) = oneshot::channel::<Reply>();
        let is_first = {
            let mut waiting = self.waiting();
            waiting.push(WaitingCheck { check, decided });
            waiting.len() == 1
        };
        if is_first {
            // In a task: the other requests must not depend on the one that happened to be first.
            tokio::spawn(Arc::clone(self).send_waiting());
        }
        let span = self.connection.span("EVALSHA");
        let reply = async { decision.await.unwrap_or_default() };
        if span.is_disabled() {
            return reply.await.decision;
        }
        let Reply { decision, checks } = reply.instrument(span.clone()).await;
        // Signed: the exporter writes unsigned numbers as text.
        span.record("db.operation.batch.size", i64::try_from(checks).unwrap_or(i64::MAX));
        decision
    }

    async fn send_waiting(self: Arc<Self>) {
        let mut waiting = std::mem::take(&mut *self.waiting());
        let is_cluster = self.connection.is_cluster();
        if is_cluster {
            waiting.sort_unstable_by_key(|waiting| waiting.check.address.bucket());
        }
        let (checks, decided): (Vec<_>, Vec<_>) =
            waiting.into_iter().map(|waiting| (waiting.check, waiting.decided)).unzip();
        // In a cluster, the keys of a call must have the same hash tag.
        let one_call = |a: &Check, b: &Check| !is_cluster || a.address.bucket() == b.address.bucket();
        let calls = checks.chunk_by(one_call).flat_map(|checks| checks.chunks(MAX_CHECKS));
        let mut decided = decided.into_iter();
        let calls = calls.map(|checks| self.send(checks, decided.by_ref().take(checks.len()).collect()));
        // Collected, since `join_all` polls a few calls without a queue if it knows their number.
        let calls: Vec<_> = calls.collect();
        join_all(calls).await;
    }

    /// Sends checks in one call, and their decisions to the requests. One server that hangs delays no other.
    async fn send(&self, checks: &[Check], decided: Vec<oneshot::Sender<Reply>>) {
        for (decided, reply) in decided.into_iter().zip(self.ask(checks).await) {
            // Fails if the request was dropped.
            let _ = decided.send(reply);
        }
    }

    /// Calls the script once: one reply for each check.
    ///
    /// If Redis does not know the script, e.g. after a restart, the script itself is sent within the same
    /// deadline.
    async fn ask(&self, checks: &[Check]) -> Vec<Reply> {
        let deadline = self.connection.deadline();
        let reply = match self.connection.run(&self.script.evalsha(checks), deadline).await {
            Err(error) if error.is_unknown_script() => {
                self.connection.run(&self.script.eval(checks), deadline).await
            }
            reply => reply,
        };
        self.log_transition(reply.as_ref().err());
        let decisions = reply.ok().and_then(|reply| WindowScript::decisions(checks, &reply));
        let mut decisions = decisions.into_iter().flatten();
        let replies = checks.iter().map(|_| Reply { decision: decisions.next(), checks: checks.len() });
        replies.collect()
    }

    /// Logs the first error reply and the recovery. That Redis is unavailable is logged by the connection.
    fn log_transition(&self, error: Option<&CommandError>) {
        match error {
            Some(error @ CommandError::ErrorReply(_)) => {
                if self.errors.record_error(Instant::now()) {
                    let error = error as &dyn Error;
                    tracing::warn!(
                        error,
                        "rate limit checks fail in redis: using the window of this replica"
                    );
                }
            }
            Some(_) => {}
            None => {
                if self.errors.record_success(Instant::now) {
                    tracing::info!("rate limit checks succeed in redis again");
                }
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<WaitingCheck>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
