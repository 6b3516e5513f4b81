//! The limiter: memory first, then Redis, then the stand-in.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use redis::{Cmd, ErrorKind, ServerErrorKind, Value};

use crate::failures::Failures;
use crate::group::network_limit;
use crate::refusals::Refusals;
use crate::stand_in::StandIn;
use crate::window_script::WindowScript;
use crate::{ClientAddress, Decision, Group, LimiterConfig, Limits, Scope};
use chart_index_redis::{CommandError, RedisConnection};

/// Decides which requests pass: never more than the limit of the group in any window, across all replicas that
/// share one Redis, and never a refusal below it (docs/api.md, "Limits"). An IPv6 address passes where its /48, which
/// has 16 times the limit, is below its limit as well.
///
/// A request is decided in one of three places:
///
/// 1. *Memory*, if a refusal is remembered that Redis would repeat. No round trip.
/// 2. *Redis*, in one round trip.
/// 3. *The stand-in*, if Redis is away, too slow, or answers with an error (out of memory, say): the same window,
///    for this replica alone.
///
/// With Redis away an address can so be admitted up to its limit once more on each replica; when Redis is back, it
/// decides alone again, from what it still holds. A call that timed out may still be counted by Redis later.
#[derive(Debug)]
pub struct Limiter {
    connection: RedisConnection,
    limits: Limits,
    script: WindowScript,
    refusals: Refusals,
    stand_in: StandIn,
    counts: Counts,
    failures: Failures,
}

/// A question for Redis that is ready to be sent, alone or in a pipeline with others.
#[derive(Debug)]
#[must_use = "the request is neither admitted nor refused until the check is finished"]
pub struct PreparedCheck {
    group: Group,
    address: ClientAddress,
    limit: NonZeroU32,
    command: Cmd,
    begun: Instant,
    deadline: tokio::time::Instant,
}

impl PreparedCheck {
    /// The command to send.
    #[must_use]
    pub const fn command(&self) -> &Cmd {
        &self.command
    }

    /// The group that the request belongs to.
    #[must_use]
    pub const fn group(&self) -> Group {
        self.group
    }

    /// When the round trip has to be over: the deadline for [`RedisConnection::run_all`].
    #[must_use]
    pub const fn deadline(&self) -> tokio::time::Instant {
        self.deadline
    }
}

/// How many decisions came from where, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DecisionCounts {
    /// Refusals from memory, without a round trip.
    pub from_memory: u64,
    /// Decisions of Redis.
    pub by_redis: u64,
    /// Decisions of this replica alone.
    pub by_stand_in: u64,
}

#[derive(Debug, Default)]
struct Counts {
    from_memory: AtomicU64,
    by_redis: AtomicU64,
    by_stand_in: AtomicU64,
}

impl Limiter {
    /// A limiter that asks over this connection.
    #[must_use]
    pub fn new(config: LimiterConfig, connection: RedisConnection) -> Self {
        let window = config.window.get();
        Self {
            connection,
            limits: config.limits,
            script: WindowScript::new(config.key_prefix, window),
            refusals: Refusals::with_capacity(config.remembered_refusals),
            stand_in: StandIn::new(window, config.stand_in_admissions, Instant::now()),
            counts: Counts::default(),
            failures: Failures::new(Instant::now()),
        }
    }

    /// Decides on one request, and counts it if it passes.
    pub async fn check(&self, group: Group, address: ClientAddress) -> Decision {
        match self.prepare(group, address) {
            Ok(check) => self.decide(check).await,
            Err(refused) => refused,
        }
    }

    /// Asks for a check alone.
    pub async fn decide(&self, check: PreparedCheck) -> Decision {
        let answer = self.connection.run(&check.command, check.deadline).await;
        self.finish(check, answer).await
    }

    /// The first half of [`check`](Self::check), for a caller that has something else to ask Redis in the same round
    /// trip: it sends [`PreparedCheck::command`] with its own commands over [`RedisConnection::run_all`], and hands the
    /// answer to [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// A refusal that is known without asking. What the caller meant to ask is then not needed either.
    pub fn prepare(&self, group: Group, address: ClientAddress) -> Result<PreparedCheck, Decision> {
        let (begun, limit) = (Instant::now(), self.limits.of(group));
        if let Some((scope, retry_after)) = self.refusals.get(group, address, begun) {
            self.counts.from_memory.fetch_add(1, Ordering::Relaxed);
            let limit = match scope {
                Scope::Address => limit,
                Scope::Network => network_limit(limit),
            };
            return Err(Decision::Refused { scope, limit, retry_after });
        }
        let command = self.script.call(group, address, limit);
        Ok(PreparedCheck { group, address, limit, command, begun, deadline: self.connection.deadline() })
    }

    /// The second half: the decision that follows from the answer to the command.
    ///
    /// Where Redis does not know the script, after a restart or a `SCRIPT FLUSH`, it is asked once more, within the
    /// same deadline. Where it gave no usable answer, the stand-in decides.
    pub async fn finish(&self, check: PreparedCheck, answer: Result<Value, CommandError>) -> Decision {
        let (group, address, limit) = (check.group, check.address, check.limit);
        let answer = match answer {
            Err(error) if is_unknown_script(&error) => {
                let command = self.script.call_with_code(group, address, limit);
                self.connection.run(&command, check.deadline).await
            }
            answer => answer,
        };
        self.note_failure(answer.as_ref().err());
        let received = Instant::now();
        let Some(decision) = answer.ok().and_then(|answer| self.script.decision(limit, &answer)) else {
            self.counts.by_stand_in.fetch_add(1, Ordering::Relaxed);
            return self.stand_in.check(group, address, limit, received);
        };
        self.counts.by_redis.fetch_add(1, Ordering::Relaxed);
        if let Decision::Refused { scope, retry_after, .. } = decision {
            self.refusals.remember(group, address, (scope, retry_after), (check.begun, received));
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

    /// How many decisions came from where.
    #[must_use]
    pub fn counts(&self) -> DecisionCounts {
        DecisionCounts {
            from_memory: self.counts.from_memory.load(Ordering::Relaxed),
            by_redis: self.counts.by_redis.load(Ordering::Relaxed),
            by_stand_in: self.counts.by_stand_in.load(Ordering::Relaxed),
        }
    }

    /// Logs the first error that Redis answers with, and none of the many that follow. That Redis is away is logged
    /// where it is found out.
    fn note_failure(&self, error: Option<&CommandError>) {
        match error {
            Some(error @ CommandError::ErrorReply(_)) => {
                if self.failures.failed(Instant::now()) {
                    let error = error as &dyn std::error::Error;
                    tracing::warn!(error, "redis cannot count requests: this replica limits on its own");
                }
            }
            Some(_) => {}
            None => {
                if self.failures.succeeded(Instant::now) {
                    tracing::info!("redis counts requests again");
                }
            }
        }
    }
}

fn is_unknown_script(error: &CommandError) -> bool {
    matches!(error, CommandError::ErrorReply(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript))
}
