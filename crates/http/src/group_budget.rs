//! What is left of a rate limit, as headers of a response (docs/api.md, "Rate limits").

use std::num::NonZeroU32;

use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use chart_index_ratelimit::{Budget, Group, Scope};

/// What a client may still request of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupBudget {
    group: Group,
    budget: Budget,
}

impl GroupBudget {
    pub(crate) const fn new(group: Group, budget: Budget) -> Self {
        Self { group, budget }
    }

    /// Adds the budget to a response, unless a shared cache may keep it, or it is a 429.
    pub(crate) fn add_to(self, response: &mut Response) {
        let headers = response.headers_mut();
        let is_kept = headers.get(CACHE_CONTROL).is_some_and(|value| value != "no-store");
        if is_kept || headers.contains_key(RATE_LIMIT) {
            return;
        }
        let Budget { limit, remaining, .. } = self.budget;
        let seconds = self.budget.renewed_after_seconds();
        headers.extend(rate_limit_headers(self.group, Scope::Address, limit, (remaining, seconds)));
    }
}

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The headers `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers): a quota of `q`
/// requests in `w` seconds, `r` remaining, one more in `t` seconds.
pub(crate) fn rate_limit_headers(
    group: Group,
    scope: Scope,
    limit: NonZeroU32,
    (remaining, seconds): (u32, u64),
) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let suffix = match scope {
        Scope::Address => "",
        Scope::Network => "-network",
    };
    let name = format!("\"{}{suffix}\"", group.as_str());
    let policy = format!("{name};q={limit};w=60");
    let state = format!("{name};r={remaining};t={seconds}");
    let headers = [(RATE_LIMIT_POLICY, policy), (RATE_LIMIT, state)];
    headers.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::try_from(value).ok()?)))
}
