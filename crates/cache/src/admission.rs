//! The rate limit and the cache in one round trip.

use chart_index_ratelimit::{Decision, Limiter, PreparedCheck};
use chart_index_redis::CommandError;
use redis::Value;

use crate::flights::Outcome;
use crate::inner::Source;
use crate::record::Record;
use crate::trust::Standing;
use crate::{Cache, CacheKey, CachedResponse, FillError, Kind, Lookup};

/// What became of a request that is limited and then answered.
#[derive(Debug)]
pub enum Admission<E> {
    /// It does not pass. Nothing was read for it.
    Refused(Decision),
    /// It passes.
    Admitted {
        /// What the limiter says of it.
        decision: Decision,
        /// The response.
        response: Result<CachedResponse, FillError<E>>,
    },
}

impl<E: Send + Sync + 'static> Cache<E> {
    /// Asks the limiter for a request, and reads its answer as [`read`](Self::read) does, in one round trip to Redis
    /// that the request waits for:
    ///
    /// - an answer in memory: one, for the limit;
    /// - otherwise: one, for the limit and the answer in one pipeline. A ROX file comes over its own connection at the
    ///   same time. While somebody else reads the same answer, the limit alone is asked for, and then waited.
    ///
    /// What is written to Redis after a fill is never waited for. A refused request reads nothing from the store.
    /// With Redis away, the stand-in of the limiter decides, and the fill follows at once.
    ///
    /// The limiter is to share its connection with [`CacheConnections::main`](crate::CacheConnections::main).
    pub async fn get_or_fill_rate_limited<F, Fut>(
        &self,
        limiter: &Limiter,
        check: PreparedCheck,
        key: CacheKey,
        fill: F,
    ) -> Admission<E>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        let kept = self.get(&key);
        if kept == Lookup::Miss {
            return self.read_both(limiter, check, key, fill).await;
        }
        let decision = limiter.decide(check).await;
        if !decision.is_admitted() {
            return Admission::Refused(decision);
        }
        let answer = match kept {
            Lookup::Fresh(answer) => Ok(answer),
            Lookup::Stale(answer) => {
                self.refresh_in_background(key, fill);
                Ok(answer)
            }
            Lookup::Miss => self.inner.fetch(key, Source::Store, fill).await,
        };
        Admission::Admitted { decision, response: answer }
    }

    /// Asks Redis for the limit and for the answer.
    async fn read_both<F, Fut>(
        &self,
        limiter: &Limiter,
        check: PreparedCheck,
        key: CacheKey,
        fill: F,
    ) -> Admission<E>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<CachedResponse, E>> + Send + 'static,
    {
        let Some(begun) = self.inner.begun(&key) else {
            let decision = limiter.decide(check).await;
            return self.admitted(decision, self.inner.fetch(key, Source::Store, fill)).await;
        };
        let (limit, record) = self.ask_both(limiter, &check, &key).await;
        let decision = limiter.finish(check, limit).await;
        if !decision.is_admitted() {
            return Admission::Refused(decision);
        }
        let inner = &self.inner;
        let answer = match record.map(|record| inner.keep_record(key, record, begun)) {
            Some((answer, Standing::Fresh)) => Ok(answer),
            Some((answer, Standing::Stale)) => {
                inner.refresh(key, Source::Store, fill);
                Ok(answer)
            }
            Some((_, Standing::Doubtful | Standing::Dead)) | None => {
                inner.fetch(key, Source::Store, fill).await
            }
        };
        Admission::Admitted { decision, response: answer }
    }

    async fn admitted(&self, decision: Decision, answer: impl Future<Output = Outcome<E>>) -> Admission<E> {
        if decision.is_admitted() {
            Admission::Admitted { decision, response: answer.await }
        } else {
            Admission::Refused(decision)
        }
    }

    async fn ask_both(
        &self,
        limiter: &Limiter,
        check: &PreparedCheck,
        key: &CacheKey,
    ) -> (Result<Value, CommandError>, Option<Record>) {
        let (tier, deadline) = (&self.inner.tier, check.deadline());
        let (limit, read) = (check.command(), tier.read_command(key));
        let (limit, value) = if key.kind() == Kind::Rox {
            tokio::join!(
                limiter.connection().run(limit, deadline),
                tier.connection(Kind::Rox).run(&read, deadline)
            )
        } else {
            match limiter.connection().run_all(vec![limit.clone(), read], deadline).await {
                Ok(answers) => both(answers),
                Err(error) => (Err(error), Err(CommandError::Unavailable)),
            }
        };
        (limit, tier.record(key, value))
    }
}

/// The two answers of a pipeline.
fn both(
    answers: Vec<Result<Value, CommandError>>,
) -> (Result<Value, CommandError>, Result<Value, CommandError>) {
    let mut answers = answers.into_iter();
    let mut next = || answers.next().unwrap_or(Err(CommandError::Unavailable));
    (next(), next())
}
