//! The configuration of the limiter.

use std::time::Duration;

use crate::Limits;

/// The length of the sliding window: 1 ms to 24 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window(Duration);

impl Window {
    /// 60 seconds, the default (docs/api.md, "Rate limits").
    pub const MINUTE: Self = Self(Duration::from_mins(1));

    /// Between 1 ms and 24 hours.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl TryFrom<Duration> for Window {
    type Error = InvalidWindow;

    fn try_from(length: Duration) -> Result<Self, Self::Error> {
        let allowed = Duration::from_millis(1)..=Duration::from_hours(24);
        if allowed.contains(&length) { Ok(Self(length)) } else { Err(InvalidWindow(length)) }
    }
}

/// The length of the window is out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a window of {0:?} is not between 1 ms and 24 hours")]
pub struct InvalidWindow(pub Duration);

/// The configuration of a [`Limiter`](crate::Limiter).
#[derive(Debug, Clone)]
pub struct LimiterConfig {
    /// Maximum requests per client in the window, for each group.
    pub limits: Limits,
    /// The time in which requests are counted.
    pub window: Window,
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
            window: Window::MINUTE,
            key_prefix: "rl3:".to_owned(),
            cached_refusals: 100_000,
            local_window_admissions: 1 << 20,
        }
    }
}
