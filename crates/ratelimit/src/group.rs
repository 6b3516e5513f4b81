//! Groups of endpoints, and the rate limit of each.

use std::num::NonZeroU32;

use clap::Args;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct Limits {
    /// Maximum chart lookups per client per 60 s.
    #[arg(long, env, default_value = "240")]
    pub rate_limit_lookup: NonZeroU32,

    /// Maximum ROX file requests per client per 60 s.
    #[arg(long, env, default_value = "240")]
    pub rate_limit_rox: NonZeroU32,

    /// Maximum list requests per client per 60 s.
    #[arg(long, env, default_value = "240")]
    pub rate_limit_list: NonZeroU32,

    /// Maximum chartset detail and redirect requests per client per 60 s.
    #[arg(long, env, default_value = "240")]
    pub rate_limit_detail: NonZeroU32,

    /// Maximum chart previews per client per 60 s.
    #[arg(long, env, default_value = "240")]
    pub rate_limit_preview: NonZeroU32,

    /// Maximum batch lookups, of up to 1,000 charts each, hash filters and requests of exports per client per
    /// 60 s.
    #[arg(long, env, default_value = "24")]
    pub rate_limit_bulk: NonZeroU32,

    /// Maximum pages of the change feed per client per 60 s.
    #[arg(long, env, default_value = "240")]
    pub rate_limit_feed: NonZeroU32,

    /// Maximum pages of the web site per client per 60 s. Assets are not limited.
    #[arg(long, env, default_value = "240")]
    pub rate_limit_page: NonZeroU32,

    /// Maximum requests that no endpoint handles (404, 405, 414, invalid `Host`) per client per 60 s.
    #[arg(long, env, default_value = "240")]
    pub rate_limit_other: NonZeroU32,
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
            rate_limit_lookup: limit,
            rate_limit_rox: limit,
            rate_limit_list: limit,
            rate_limit_detail: limit,
            rate_limit_preview: limit,
            rate_limit_bulk: limit,
            rate_limit_feed: limit,
            rate_limit_page: limit,
            rate_limit_other: limit,
        }
    }

    /// The maximum number of requests of this group.
    #[must_use]
    pub const fn get(&self, group: Group) -> NonZeroU32 {
        match group {
            Group::Lookup => self.rate_limit_lookup,
            Group::Rox => self.rate_limit_rox,
            Group::List => self.rate_limit_list,
            Group::Detail => self.rate_limit_detail,
            Group::Preview => self.rate_limit_preview,
            Group::Bulk => self.rate_limit_bulk,
            Group::Feed => self.rate_limit_feed,
            Group::Page => self.rate_limit_page,
            Group::Other => self.rate_limit_other,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::all(Self::DEFAULT)
    }
}
