//! The charts and chartsets with pages, in the order of their last changes, for sitemaps.
//!
//! A part has the entries of the change feed with sequences of one range of [`PART_SEQUENCES`]. Entries move to
//! the last part when they change, so the others only lose entries, and all replicas have the same parts.

use chart_index_domain::{Entity, ReadError};

use crate::Store;
use crate::connection::server::ReadLength;
use crate::schema::column_values::parse_entity;

/// Number of sequences of a part, and therefore at least that of its entries. A sitemap may have 50,000 URLs.
const PART_SEQUENCES: i64 = 5_000;
/// Maximum number of parts of an index of sitemaps: 250 million entries.
const MAX_PARTS: i64 = 50_000;

/// A part of the charts and chartsets that have pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct SitemapPart {
    /// Names the part: the parts are in the order of their numbers, with gaps.
    pub number: i64,
    /// The time of its last change, in Unix epoch milliseconds.
    pub changed_at_ms: i64,
}

impl Store {
    /// Returns the parts, in order. It takes two probes of an index for each of them.
    pub async fn sitemap_parts(&self) -> Result<Vec<SitemapPart>, ReadError> {
        let query = || {
            sqlx::query_as(
                "WITH RECURSIVE part (number) AS (
                     (SELECT sequence / $1 FROM catalogue_changes ORDER BY sequence LIMIT 1)
                     UNION ALL
                     SELECT (SELECT sequence / $1 FROM catalogue_changes WHERE sequence >= (number + 1) * $1
                             ORDER BY sequence LIMIT 1)
                     FROM part WHERE number IS NOT NULL
                 )
                 SELECT number, (SELECT changed_at_ms FROM catalogue_changes WHERE sequence < (number + 1) * $1
                                 ORDER BY sequence DESC LIMIT 1) AS changed_at_ms
                 FROM part WHERE number IS NOT NULL LIMIT $2",
            )
            .bind(PART_SEQUENCES)
            .bind(MAX_PARTS)
        };
        self.read_rows("read parts of the sitemap", ReadLength::Long, query, Ok).await
    }

    /// Returns the charts and chartsets of a part that are known or shown, with the times of their last
    /// changes in Unix epoch milliseconds.
    pub async fn sitemap_part(&self, number: u64) -> Result<Vec<(Entity, i64)>, ReadError> {
        let first = i64::try_from(number).unwrap_or(i64::MAX).saturating_mul(PART_SEQUENCES);
        let query = || {
            sqlx::query_as(
                "SELECT entity, changed_at_ms FROM catalogue_changes
                 WHERE sequence >= $1 AND sequence < $2 AND change <> 'removed' ORDER BY sequence",
            )
            .bind(first)
            .bind(first.saturating_add(PART_SEQUENCES))
        };
        let parse = |(entity, changed): (Vec<u8>, i64)| Ok((parse_entity(&entity)?, changed));
        self.read_rows("read part of the sitemap", ReadLength::Long, query, parse).await
    }
}
