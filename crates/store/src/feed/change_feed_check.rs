//! Compares the [change feed](crate::feed::change_feed) with the catalogue, for `chart-indexer verify`.

use chart_index_domain::Entity;

use crate::schema::column_values::parse_entity;
use crate::{Store, StoreError};

/// Maximum number of differences that are returned.
const MAX_MISMATCHES: i64 = 1_000;

/// A difference between the feed and the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedMismatch {
    /// The chart or chartset.
    pub entity: Entity,
    /// Whether the chart is known or the chartset shown, so that the feed lacks it. Otherwise only the feed has
    /// it.
    pub is_shown: bool,
}

impl Store {
    /// Returns the first 1,000 differences between the feed and the catalogue.
    pub async fn feed_mismatches(&self) -> Result<Vec<FeedMismatch>, StoreError> {
        self.run_once("check the change feed", |mut connection| async move {
            // One statement and therefore one snapshot of the catalogue and the feed.
            let rows: Vec<(Vec<u8>, bool)> = sqlx::query_as(
                "WITH catalogue AS (
                     SELECT hash AS entity FROM known_charts
                     UNION ALL
                     SELECT decode(id, 'hex') FROM chartsets WHERE shown
                 ), feed AS (
                     SELECT entity FROM catalogue_changes WHERE change <> 'removed'
                 ), mismatches AS (
                     SELECT entity, catalogue.entity IS NOT NULL AS is_shown
                     FROM catalogue FULL JOIN feed USING (entity)
                     WHERE catalogue.entity IS NULL OR feed.entity IS NULL
                 )
                 SELECT entity, is_shown FROM mismatches
                 ORDER BY entity LIMIT $1",
            )
            .bind(MAX_MISMATCHES)
            .fetch_all(&mut *connection)
            .await?;
            let mismatch = |(entity, is_shown): (Vec<u8>, bool)| {
                Ok(FeedMismatch { entity: parse_entity(&entity)?, is_shown })
            };
            rows.into_iter().map(mismatch).collect()
        })
        .await
    }
}
