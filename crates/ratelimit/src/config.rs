//! The configuration of the limiter.

use std::time::Duration;

use crate::Limits;

/// The length of the sliding window: from 1 ms to a day.
///
/// The upper bound keeps two admission times that live together unambiguous (see `window.lua`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window(Duration);

impl Window {
    /// 60 seconds, the window of the contract.
    pub const MINUTE: Self = Self(Duration::from_mins(1));

    /// The length.
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

/// A window outside 1 ms to a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a window of {0:?}, where 1 ms to 24 hours are possible")]
pub struct InvalidWindow(pub Duration);

/// The configuration of a [`Limiter`](crate::Limiter).
#[derive(Debug, Clone)]
pub struct LimiterConfig {
    /// The limit of each group.
    pub limits: Limits,
    /// The sliding window.
    pub window: Window,
    /// What the keys in Redis begin with: `rl2:`. The digit is the version of the format of the values.
    pub key_prefix: String,
    /// The refusals that are remembered: 100,000, some 10 MB. Beyond, the least useful are forgotten, and Redis is
    /// asked instead.
    pub remembered_refusals: usize,
    /// The admissions in one window that a replica remembers while Redis is away: 2^20, up to some 100 MB, taken
    /// only then. Beyond, the oldest are forgotten.
    pub stand_in_admissions: usize,
}

impl Default for LimiterConfig {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            window: Window::MINUTE,
            key_prefix: "rl2:".to_owned(),
            remembered_refusals: 100_000,
            stand_in_admissions: 1 << 20,
        }
    }
}
