//! Decisions of the limiter.

use std::num::NonZeroU32;
use std::time::Duration;

/// Whether a request is admitted, which counts it, or refused. With the [`Budget`] that is left, in groups that
/// [report](crate::Group::reports_budget) it.
pub type Decision = Result<Option<Budget>, Refusal>;

/// What a client may still request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The maximum number of requests of the address in any window.
    pub limit: NonZeroU32,
    /// The number of requests that would be admitted now: by the address, or by its network if those are fewer.
    pub remaining: u32,
    /// The time until there is one more.
    pub renewed_after: Duration,
}

impl Budget {
    /// The time until there is one more: whole seconds, rounded up, at least 1.
    #[must_use]
    pub const fn renewed_after_seconds(&self) -> u64 {
        whole_seconds(self.renewed_after)
    }
}

/// The limit that a request exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The limit of the address: an IPv4 address or an IPv6 /64.
    Address,
    /// The limit of the IPv6 /48 of the address.
    Network,
}

/// A request is refused. It is counted neither for its address nor for its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The limit that is reached; if both are, the one with the longer wait.
    pub scope: Scope,
    /// The maximum number of requests in any window within that scope.
    pub limit: NonZeroU32,
    /// The time until a request would be admitted, if no other request of the address or network is admitted
    /// first.
    pub retry_after: Duration,
}

impl Refusal {
    /// `Retry-After`: whole seconds, rounded up, at least 1.
    #[must_use]
    pub const fn retry_after_seconds(&self) -> u64 {
        whole_seconds(self.retry_after)
    }
}

const fn whole_seconds(time: Duration) -> u64 {
    let seconds = time.as_secs() + (time.subsec_nanos() > 0) as u64;
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
            let refusal = Refusal { scope: Scope::Address, limit: NonZeroU32::MIN, retry_after };
            assert_eq!(refusal.retry_after_seconds(), seconds, "{micros} us");
        }
    }
}
