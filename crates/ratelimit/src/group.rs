//! Groups of endpoints, and the rate limit of each.

use std::num::NonZeroU32;

use strum::{IntoStaticStr, VariantArray};

/// A group of endpoints that share a rate limit (docs/api.md, "Rate limits").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Group {
    /// Chart lookups.
    Lookup,
    /// ROX files.
    Rox,
    /// Chartset lists.
    List,
    /// Chartset details and redirects to sources.
    Detail,
    /// Previews of charts.
    Preview,
    /// Batch lookups, the hash filter and exports.
    Bulk,
    /// The change feed.
    Feed,
    /// Pages of the web site.
    Page,
    /// Requests that no endpoint handles (404, 405, 414, invalid `Host`).
    Other,
}

impl Group {
    /// Every group.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Whether admissions report the budget that is left. It takes Redis more time, and a response that a
    /// shared cache may keep must not name the budget of one client.
    #[must_use]
    pub const fn reports_budget(self) -> bool {
        matches!(self, Self::Bulk | Self::Feed)
    }

    /// The name of the group in headers and error messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The maximum number of requests per client address in any window, for each group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For chart lookups.
    pub lookup: NonZeroU32,
    /// For ROX files.
    pub rox: NonZeroU32,
    /// For chartset lists.
    pub list: NonZeroU32,
    /// For chartset details and redirects to sources.
    pub detail: NonZeroU32,
    /// For previews of charts.
    pub preview: NonZeroU32,
    /// For batch lookups, hash filters and exports.
    pub bulk: NonZeroU32,
    /// For the change feed.
    pub feed: NonZeroU32,
    /// For pages of the web site.
    pub page: NonZeroU32,
    /// For requests that no endpoint handles.
    pub other: NonZeroU32,
}

/// The limit of an IPv6 /48 as a multiple of the limit of an address (docs/api.md, "Rate limits").
const NETWORK_FACTOR: NonZeroU32 = NonZeroU32::new(16).unwrap();

/// The limit of a network whose addresses have this limit.
#[must_use]
pub const fn network_limit(limit: NonZeroU32) -> NonZeroU32 {
    limit.saturating_mul(NETWORK_FACTOR)
}

impl Limits {
    /// The default limit of every group (docs/api.md, "Rate limits").
    pub const DEFAULT: NonZeroU32 = NonZeroU32::new(240).unwrap();

    /// The same limit for every group.
    #[must_use]
    pub const fn all(limit: NonZeroU32) -> Self {
        Self {
            lookup: limit,
            rox: limit,
            list: limit,
            detail: limit,
            preview: limit,
            bulk: limit,
            feed: limit,
            page: limit,
            other: limit,
        }
    }

    /// The maximum number of requests of this group.
    #[must_use]
    pub const fn get(&self, group: Group) -> NonZeroU32 {
        match group {
            Group::Lookup => self.lookup,
            Group::Rox => self.rox,
            Group::List => self.list,
            Group::Detail => self.detail,
            Group::Preview => self.preview,
            Group::Bulk => self.bulk,
            Group::Feed => self.feed,
            Group::Page => self.page,
            Group::Other => self.other,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::all(Self::DEFAULT)
    }
}
