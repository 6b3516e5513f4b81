//! What is limited: groups of requests, each with a limit of its own.

use std::num::NonZeroU32;

/// A group of requests that share one limit (docs/api.md, "Limits").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Chart lookups.
    Lookup,
    /// ROX files.
    Rox,
    /// The chartset list.
    List,
    /// The chartset detail and the redirect to its source.
    Detail,
    /// What no route answers: unknown paths, other methods than GET and HEAD, and malformed requests.
    Other,
}

impl Group {
    /// Every group.
    pub const ALL: [Self; 5] = [Self::Lookup, Self::Rox, Self::List, Self::Detail, Self::Other];

    /// The name of the group in headers, metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lookup => "lookup",
            Self::Rox => "rox",
            Self::List => "list",
            Self::Detail => "detail",
            Self::Other => "other",
        }
    }

    /// The environment variable that sets the limit of the group.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Lookup => "RATE_LIMIT_LOOKUP",
            Self::Rox => "RATE_LIMIT_ROX",
            Self::List => "RATE_LIMIT_LIST",
            Self::Detail => "RATE_LIMIT_DETAIL",
            Self::Other => "RATE_LIMIT_OTHER",
        }
    }
}

/// The most requests of one address in any window, for each group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Chart lookups.
    pub lookup: NonZeroU32,
    /// ROX files.
    pub rox: NonZeroU32,
    /// The chartset list.
    pub list: NonZeroU32,
    /// The chartset detail and the redirect.
    pub detail: NonZeroU32,
    /// What no route answers.
    pub other: NonZeroU32,
}

/// How many times the limit of an address an IPv6 /48 as a whole has (docs/api.md, "Limits").
const NETWORK_FACTOR: NonZeroU32 = NonZeroU32::new(16).unwrap();

/// The limit of a whole network, where an address in it has this one.
pub(crate) const fn network_limit(limit: NonZeroU32) -> NonZeroU32 {
    limit.saturating_mul(NETWORK_FACTOR)
}

impl Limits {
    /// The limit of every group where nothing else is configured (contract, "Limits").
    pub const DEFAULT: NonZeroU32 = NonZeroU32::new(240).unwrap();

    /// The same limit for every group.
    #[must_use]
    pub const fn all(limit: NonZeroU32) -> Self {
        Self { lookup: limit, rox: limit, list: limit, detail: limit, other: limit }
    }

    /// The limit of a group.
    #[must_use]
    pub const fn of(&self, group: Group) -> NonZeroU32 {
        match group {
            Group::Lookup => self.lookup,
            Group::Rox => self.rox,
            Group::List => self.list,
            Group::Detail => self.detail,
            Group::Other => self.other,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::all(Self::DEFAULT)
    }
}
