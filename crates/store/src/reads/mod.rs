//! The reads of the API and of the pages.

pub(crate) mod chart_aliases;
pub(crate) mod chart_occurrences;
pub(crate) mod chart_variants;
pub(crate) mod chartset_records;
pub(crate) mod creators;
pub(crate) mod hash_filters;
pub(crate) mod lookups;
pub(crate) mod newest_chart;
pub(crate) mod packs;
pub(crate) mod page_reads;
pub(crate) mod percentiles;
pub(crate) mod similar_charts;
pub(crate) mod sitemap;
pub(crate) mod updated_times;
