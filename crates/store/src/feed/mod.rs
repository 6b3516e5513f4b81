//! The change feed: numbers of changes, pages, polls of replicas, exports, and who follows it.

pub(crate) mod catalogue_poll;
pub(crate) mod catalogue_watch;
pub(crate) mod cdn_purges;
pub(crate) mod change_feed;
pub(crate) mod change_feed_check;
pub(crate) mod change_feed_pages;
pub(crate) mod export_snapshot;
pub(crate) mod mirror;
pub(crate) mod mirror_refusals;
pub(crate) mod standby_polls;
