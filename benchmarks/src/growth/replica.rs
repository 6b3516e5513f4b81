//! A replica under measurement, with a Redis of its own, and the CPU time of all servers.

use std::time::Duration;

use anyhow::{Context, Result};
use chart_index_tests::{PrivateMeilisearch, PrivateRedis, Service, ServiceOptions};
use serde::Serialize;

use crate::catalogue::{Catalogue, Database};
use crate::wrk::{Run, Wrk};
use chart_index_benchmarks::processes::cpu_time;

/// Too few bytes for any response.
const NO_CACHE: &str = "4096";

/// What a replica is connected to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReplicaOptions<'a> {
    /// Whether it has a Redis.
    pub(crate) redis: bool,
    /// Whether memory holds no responses.
    pub(crate) uncached: bool,
    /// Whether Meilisearch answers lists.
    pub(crate) meilisearch: bool,
    /// Environment variables.
    pub(crate) variables: &'a [(&'a str, &'a str)],
}

/// A running replica.
pub(crate) struct Replica<'a> {
    pub(crate) service: Service,
    pub(crate) redis: Option<PrivateRedis>,
    catalogue: &'a Catalogue,
}

impl<'a> Replica<'a> {
    /// Starts a replica with the default limits, which trusts the addresses that the load names.
    pub(crate) fn start(catalogue: &'a Catalogue, database: &Database, options: ReplicaOptions<'_>) -> Self {
        let redis = options.redis.then(|| PrivateRedis::start(&[]));
        let redis_url = redis.as_ref().map(PrivateRedis::url);
        let node =
            catalogue.meilisearch.as_ref().filter(|_| options.meilisearch).map(PrivateMeilisearch::url);
        let mut variables = vec![
            ("TRUSTED_PROXIES", "127.0.0.1"),
            ("SEARCH_MAX_LAG_MS", "86400000"),
            ("RATE_LIMIT_LOOKUP", "240"),
            ("RATE_LIMIT_ROX", "240"),
            ("RATE_LIMIT_LIST", "240"),
        ];
        variables.extend(redis_url.as_deref().map(|url| ("REDIS_URL", url)));
        variables.extend(node.as_deref().map(|url| ("MEILISEARCH_URL", url)));
        variables.extend(options.uncached.then_some(("CACHE_BYTES", NO_CACHE)));
        variables.extend(options.variables);
        let options =
            ServiceOptions { variables: &variables, leave_log_unread: true, ..ServiceOptions::default() };
        Self { service: Service::start_with(&database.url, &options), redis, catalogue }
    }

    /// Sends requests with wrk, and returns its figures and the CPU time per request.
    pub(crate) fn load(&self, wrk: Wrk, requests: &[String]) -> Result<(Run, Cost)> {
        let before = self.times()?;
        let run = wrk.run(requests)?;
        Ok((run, self.times()?.since(before, run.requests)))
    }

    /// A load on the replica.
    pub(crate) fn wrk(&self, connections: u32, seconds: u32) -> Wrk {
        Wrk { address: self.service.address(), connections, seconds }
    }

    /// The CPU time of each server so far.
    pub(crate) fn times(&self) -> Result<Times> {
        let redis: Option<u32> = self.redis.as_ref().map(|redis| redis.process_id().parse()).transpose()?;
        let postgres = self.catalogue.postgres.process_id().context("PostgreSQL has ended")?;
        let meilisearch = self.catalogue.meilisearch.as_ref().map(PrivateMeilisearch::process_id);
        Ok(Times {
            service: cpu_time(self.service.process_id())?,
            redis: redis.map_or(Ok(Duration::ZERO), cpu_time)?,
            postgres: cpu_time(postgres)?,
            meilisearch: meilisearch.map_or(Ok(Duration::ZERO), cpu_time)?,
        })
    }

    /// The value of a metric without labels.
    pub(crate) async fn metric(&self, name: &str) -> Result<f64> {
        let text = self.service.private_client().get("/metrics").await.body;
        let text = String::from_utf8(text)?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.rsplit_once(' '));
        Ok(value.with_context(|| format!("no metric {name}"))?.1.parse()?)
    }
}

/// The CPU time of each server since its start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    service: Duration,
    redis: Duration,
    postgres: Duration,
    meilisearch: Duration,
}

/// CPU time per request in microseconds, which is also CPU-milliseconds per 1,000 requests.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Cost {
    pub(crate) service: f64,
    pub(crate) redis: f64,
    pub(crate) postgres: f64,
    pub(crate) meilisearch: f64,
}

impl Times {
    /// The time since `before`, per request.
    #[expect(clippy::cast_precision_loss, reason = "counts of requests")]
    pub(crate) fn since(self, before: Self, requests: u64) -> Cost {
        let each = |of: fn(&Self) -> Duration| {
            of(&self).saturating_sub(of(&before)).as_secs_f64() * 1e6 / requests as f64
        };
        Cost {
            service: each(|times| times.service),
            redis: each(|times| times.redis),
            postgres: each(|times| times.postgres),
            meilisearch: each(|times| times.meilisearch),
        }
    }
}

impl Cost {
    /// The median of each server.
    pub(crate) fn median(costs: &[Self]) -> Self {
        Self::combined(costs, |values| median(values.iter().copied()))
    }

    /// The mean of each server.
    #[expect(clippy::cast_precision_loss, reason = "few rounds")]
    pub(crate) fn mean(costs: &[Self]) -> Self {
        Self::combined(costs, |values| values.iter().sum::<f64>() / values.len() as f64)
    }

    fn combined(costs: &[Self], combine: impl Fn(&[f64]) -> f64) -> Self {
        let of = |server: fn(&Self) -> f64| combine(&costs.iter().map(server).collect::<Vec<_>>());
        Self {
            service: of(|cost| cost.service),
            redis: of(|cost| cost.redis),
            postgres: of(|cost| cost.postgres),
            meilisearch: of(|cost| cost.meilisearch),
        }
    }
}

/// The median; 0 of nothing.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
