//! The configuration of the limiter.

use std::time::Duration;

use crate::Limits;

/// The configuration of a [`Limiter`](crate::Limiter).
#[derive(Debug, Clone)]
pub struct LimiterConfig {
    /// Maximum requests per client in the window, for each group.
    pub limits: Limits,
    /// The time in which requests are counted: 60 seconds (docs/api.md, "Rate limits"). Between 1 ms and 24
    /// hours.
    pub window: Duration,
    /// The prefix of the keys in Redis: `rl3:`. The digit is the version of the format.
    pub key_prefix: String,
    /// The capacity for cached refusals: 100,000, about 10 MB. Above that, refusals are evicted, and Redis is
    /// asked again.
    pub cached_refusals: usize,
    /// The capacity of the local window in admissions: 2^20, up to about 150 MB, allocated while Redis is
    /// unavailable. Above that, the oldest half of the admissions is dropped.
    pub local_window_admissions: usize,
}

impl Default for LimiterConfig {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            window: Duration::from_mins(1),
            key_prefix: "rl3:".to_owned(),
            cached_refusals: 100_000,
            local_window_admissions: 1 << 20,
        }
    }
}
