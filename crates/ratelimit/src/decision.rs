//! Decisions of the limiter.

use std::num::NonZeroU32;
use std::time::Duration;

/// The limit that a request exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The limit of the address: an IPv4 address or an IPv6 /64.
    Address,
    /// The limit of the IPv6 /48 of the address.
    Network,
}

/// Whether a request is admitted, with the values of the headers `RateLimit-Policy`, `RateLimit` and
/// `Retry-After`.
///
/// In the terms of the IETF draft (`draft-ietf-httpapi-ratelimit-headers`), `q` is the limit, `w` the
/// configured window, `r` is [`remaining`](Self::remaining), and `t` is [`reset_seconds`](Self::reset_seconds).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// The request is admitted and counted.
    Admitted {
        /// The maximum number of requests in any window.
        limit: NonZeroU32,
        /// The number of further requests that would be admitted now, by the address and its network.
        remaining: u32,
        /// The time until the oldest counted request leaves the window.
        reset_after: Duration,
    },
    /// The request is refused. It is counted neither for its address nor for its network.
    Refused {
        /// The limit that is reached; if both are, the one with the longer wait.
        scope: Scope,
        /// The maximum number of requests in any window within that scope.
        limit: NonZeroU32,
        /// The time until a request would be admitted, if no other request of the address or network is
        /// admitted first.
        retry_after: Duration,
    },
}

impl Decision {
    /// Whether the request is within the limits of its address and network.
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted { .. })
    }

    /// The maximum number of requests in any window: of the address, or of the scope of the refusal.
    #[must_use]
    pub const fn limit(&self) -> NonZeroU32 {
        match self {
            Self::Admitted { limit, .. } | Self::Refused { limit, .. } => *limit,
        }
    }

    /// The number of further requests that would be admitted now.
    #[must_use]
    pub const fn remaining(&self) -> u32 {
        match self {
            Self::Admitted { remaining, .. } => *remaining,
            Self::Refused { .. } => 0,
        }
    }

    /// `Retry-After`: whole seconds, rounded up, at least 1. `None` if the request is admitted.
    #[must_use]
    pub const fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::Admitted { .. } => None,
            Self::Refused { retry_after, .. } => Some(whole_seconds(*retry_after)),
        }
    }

    /// The `t` of `RateLimit`: the time until a further request would be admitted in whole seconds, rounded up,
    /// at least 1.
    #[must_use]
    pub const fn reset_seconds(&self) -> u64 {
        match self {
            Self::Admitted { reset_after: wait, .. } | Self::Refused { retry_after: wait, .. } => {
                whole_seconds(*wait)
            }
        }
    }
}

const fn whole_seconds(wait: Duration) -> u64 {
    let seconds = wait.as_secs() + (wait.subsec_nanos() > 0) as u64;
    if seconds == 0 { 1 } else { seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_rounded_up_to_at_least_1() {
        for (micros, seconds) in
            [(0, 1), (1, 1), (999_999, 1), (1_000_000, 1), (1_000_001, 2), (60_000_000, 60)]
        {
            let retry_after = Duration::from_micros(micros);
            let refused = Decision::Refused { scope: Scope::Address, limit: NonZeroU32::MIN, retry_after };
            assert_eq!(refused.retry_after_seconds(), Some(seconds), "{micros} us");
            assert_eq!(refused.reset_seconds(), seconds, "{micros} us");
        }
    }
}
