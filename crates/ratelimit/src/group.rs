//! What is limited: four groups of routes, each with a limit of its own.

use std::num::NonZeroU32;

/// A group of routes that share one limit (decisions, "Limits").
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
}

impl Group {
    /// Every group.
    pub const ALL: [Self; 4] = [Self::Lookup, Self::Rox, Self::List, Self::Detail];

    /// The name of the group in headers, metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lookup => "lookup",
            Self::Rox => "rox",
            Self::List => "list",
            Self::Detail => "detail",
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
}

impl Limits {
    /// The limit of every group where nothing else is configured (contract, "Limits").
    pub const DEFAULT: NonZeroU32 = NonZeroU32::new(240).unwrap();

    /// The same limit for every group.
    #[must_use]
    pub const fn all(limit: NonZeroU32) -> Self {
        Self { lookup: limit, rox: limit, list: limit, detail: limit }
    }

    /// The limit of a group.
    #[must_use]
    pub const fn of(&self, group: Group) -> NonZeroU32 {
        match group {
            Group::Lookup => self.lookup,
            Group::Rox => self.rox,
            Group::List => self.list,
            Group::Detail => self.detail,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::all(Self::DEFAULT)
    }
}
