//! The answer of the limiter.

use std::num::NonZeroU32;
use std::time::Duration;

/// Whose limit a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// That of the address: an IPv4 address or an IPv6 /64.
    Address,
    /// That of the IPv6 /48 which the address belongs to.
    Network,
}

/// Whether a request may pass, with what the headers `RateLimit-Policy`, `RateLimit` and `Retry-After` say of it.
///
/// The names of the IETF draft (`draft-ietf-httpapi-ratelimit-headers`): `q` is the limit, `w` the window of the
/// configuration, `r` is [`remaining`](Self::remaining) and `t` is [`reset_seconds`](Self::reset_seconds).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// The request passes, and is counted.
    Admitted {
        /// The most requests in any window.
        limit: NonZeroU32,
        /// How many more would pass now, as far as this address and its network are concerned.
        remaining: u32,
        /// How long until the oldest counted request leaves the window, so that one more would pass.
        reset_after: Duration,
    },
    /// The request does not pass. It is not counted, neither for its address nor for its network, and it prolongs
    /// nothing.
    Refused {
        /// Whose limit is reached; where both are, the one that is reached for longer.
        scope: Scope,
        /// The most requests in any window within that scope.
        limit: NonZeroU32,
        /// How long until a request passes, if no other request of the same address or network is admitted before it.
        retry_after: Duration,
    },
}

impl Decision {
    /// Whether the request passes.
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted { .. })
    }

    /// The most requests in any window: of the address, or of the scope that is refused.
    #[must_use]
    pub const fn limit(&self) -> NonZeroU32 {
        match self {
            Self::Admitted { limit, .. } | Self::Refused { limit, .. } => *limit,
        }
    }

    /// How many more requests would pass now.
    #[must_use]
    pub const fn remaining(&self) -> u32 {
        match self {
            Self::Admitted { remaining, .. } => *remaining,
            Self::Refused { .. } => 0,
        }
    }

    /// `Retry-After`: whole seconds, rounded up, at least 1. `None` for a request that passes.
    #[must_use]
    pub const fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::Admitted { .. } => None,
            Self::Refused { retry_after, .. } => Some(whole_seconds(*retry_after)),
        }
    }

    /// The `t` of `RateLimit`: whole seconds, rounded up, at least 1, until there is room for one more.
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
    fn retry_after_is_rounded_up_and_at_least_one() {
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
