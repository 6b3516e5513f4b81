//! The PostgreSQL search engine, and what Meilisearch needs of the catalogue.

pub(crate) mod chartset_changes;
pub(crate) mod filterable_charts;
pub(crate) mod indexed_chartsets;
pub(crate) mod postgres_search;
pub(crate) mod search_order;
#[cfg(test)]
pub(crate) mod search_plan_tests;
pub(crate) mod search_sql;
pub(crate) mod total_cache;
