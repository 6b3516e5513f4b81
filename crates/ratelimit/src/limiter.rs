//! The rate limiter: cached refusals, then Redis, then the local window.

use std::error::Error;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Instant;

use chart_index_redis::{CommandError, RedisConnection};
use redis::{Cmd, Value};

use crate::error_transitions::ErrorTransitions;
use crate::group::network_limit;
use crate::local_window::LocalWindow;
use crate::metrics::{Decider, DecisionCounters};
use crate::refusal_cache::RefusalCache;
use crate::window_script::WindowScript;
use crate::{ClientAddress, Decision, Group, LimiterConfig, Limits, Scope};

/// Admits or refuses requests by an exact sliding window across all replicas that share one Redis.
///
/// In no window more requests of an address are admitted than the limit of the group, and none is refused below the
/// limit (docs/api.md, "Rate limits"). An IPv6 address must also be below the limit of its /48, which is 16 times as
/// high.
///
/// A decision comes from
///
/// 1. the *refusal cache*, if Redis would certainly refuse the request as well: no round trip;
/// 2. *Redis*, in one round trip;
/// 3. the *local window*, if Redis is unavailable, too slow or replies with an error, e.g. because its memory is
///    full.
///
/// So while Redis is unavailable, each replica admits an address up to its limit once more. When Redis is available
/// again, it decides by the admissions that it still has. Redis may still count a command that timed out.
#[derive(Debug)]
pub struct Limiter {
    connection: RedisConnection,
    limits: Limits,
    script: WindowScript,
    refusals: RefusalCache,
    local_window: LocalWindow,
    counters: Arc<DecisionCounters>,
    errors: ErrorTransitions,
}

/// A rate limit check to send to Redis, alone or in a pipeline with other commands.
#[derive(Debug)]
#[must_use = "the request is neither admitted nor refused until the check is finished"]
pub struct PreparedCheck {
    group: Group,
    address: ClientAddress,
    limit: NonZeroU32,
    command: Cmd,
    prepared_at: Instant,
    deadline: tokio::time::Instant,
}

impl PreparedCheck {
    /// The command to send.
    #[must_use]
    pub const fn command(&self) -> &Cmd {
        &self.command
    }

    /// The group of the request.
    #[must_use]
    pub const fn group(&self) -> Group {
        self.group
    }

    /// The deadline for [`RedisConnection::run_all`].
    #[must_use]
    pub const fn deadline(&self) -> tokio::time::Instant {
        self.deadline
    }
}

/// The number of decisions since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DecisionCounts {
    /// Cached refusals.
    pub from_memory: u64,
    /// Decisions by Redis.
    pub by_redis: u64,
    /// Decisions by the local window.
    pub by_local_window: u64,
}

impl Limiter {
    /// A limiter over this connection.
    #[must_use]
    pub fn new(config: LimiterConfig, connection: RedisConnection) -> Self {
        let (window, now) = (config.window.get(), Instant::now());
        Self {
            connection,
            limits: config.limits,
            script: WindowScript::new(config.key_prefix, window),
            refusals: RefusalCache::with_capacity(config.cached_refusals),
            local_window: LocalWindow::new(window, config.local_window_admissions, now),
            counters: DecisionCounters::new(),
            errors: ErrorTransitions::new(now),
        }
    }

    /// Decides on a request, and counts it if it is admitted.
    pub async fn check(&self, group: Group, address: ClientAddress) -> Decision {
        match self.prepare(group, address) {
            Ok(check) => self.decide(check).await,
            Err(refused) => refused,
        }
    }

    /// Sends a prepared check without other commands.
    pub async fn decide(&self, check: PreparedCheck) -> Decision {
        let reply = self.connection.run(&check.command, check.deadline).await;
        self.finish(check, reply).await
    }

    /// The first half of [`check`](Self::check), for a caller that has other commands for the same round trip: it
    /// sends [`PreparedCheck::command`] with its own commands by [`RedisConnection::run_all`], and passes the reply
    /// to [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// A cached refusal: the other commands are not needed either.
    pub fn prepare(&self, group: Group, address: ClientAddress) -> Result<PreparedCheck, Decision> {
        let (prepared_at, limit) = (Instant::now(), self.limits.get(group));
        if let Some((scope, retry_after)) = self.refusals.get(group, address, prepared_at) {
            let limit = match scope {
                Scope::Address => limit,
                Scope::Network => network_limit(limit),
            };
            let refused = Decision::Refused { scope, limit, retry_after };
            self.counters.count(group, Decider::Memory, &refused);
            return Err(refused);
        }
        let command = self.script.evalsha(group, address, limit);
        let deadline = self.connection.deadline();
        Ok(PreparedCheck { group, address, limit, command, prepared_at, deadline })
    }

    /// The second half of [`check`](Self::check): the decision by the reply to the command.
    ///
    /// If Redis does not know the script, e.g. after a restart, the script is sent within the same deadline. If there
    /// is no usable reply, the local window decides.
    pub async fn finish(&self, check: PreparedCheck, reply: Result<Value, CommandError>) -> Decision {
        let (group, address, limit) = (check.group, check.address, check.limit);
        let reply = match reply {
            Err(error) if error.is_unknown_script() => {
                let command = self.script.eval(group, address, limit);
                self.connection.run(&command, check.deadline).await
            }
            reply => reply,
        };
        self.log_transition(reply.as_ref().err());
        let received_at = Instant::now();
        let Some(decision) = reply.ok().and_then(|reply| self.script.decision(limit, &reply)) else {
            let decision = self.local_window.check(group, address, limit, received_at);
            self.counters.count(group, Decider::Local, &decision);
            return decision;
        };
        self.counters.count(group, Decider::Redis, &decision);
        if let Decision::Refused { scope, retry_after, .. } = decision {
            self.refusals.insert(group, address, (scope, retry_after), (check.prepared_at, received_at));
        }
        decision
    }

    /// The limit of each group.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The connection to Redis.
    #[must_use]
    pub const fn connection(&self) -> &RedisConnection {
        &self.connection
    }

    /// The number of decisions since the start.
    #[must_use]
    pub fn counts(&self) -> DecisionCounts {
        DecisionCounts {
            from_memory: self.counters.decided_by(Decider::Memory),
            by_redis: self.counters.decided_by(Decider::Redis),
            by_local_window: self.counters.decided_by(Decider::Local),
        }
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
}
