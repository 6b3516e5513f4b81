//! Compares the [change feed](crate::feed::change_feed) with the catalogue, for `chart-indexer verify`.

use chart_index_domain::{ChartsetId, NoteHash};

use crate::schema::column_values::parse_hash;
use crate::{Store, StoreError};

/// Maximum number of differences that are returned.
const MAX_MISMATCHES: i64 = 1_000;

/// A difference between the feed and the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedMismatch {
    /// A known chart that the feed lacks, or a chart of the feed that is not known.
    Chart {
        /// Its note hash.
        hash: NoteHash,
        /// Whether the catalogue knows it, so that the feed lacks it.
        is_known: bool,
    },
    /// A shown chartset that the feed lacks, or a chartset of the feed that is not shown.
    Chartset {
        /// Its id.
        id: ChartsetId,
        /// Whether the catalogue shows it, so that the feed lacks it.
        is_shown: bool,
    },
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
            rows.iter().map(|(entity, is_shown)| mismatch(entity, *is_shown)).collect()
        })
        .await
    }
}

fn mismatch(entity: &[u8], is_shown: bool) -> Result<FeedMismatch, sqlx::Error> {
    Ok(match entity.try_into().map(ChartsetId::from_bytes) {
        Ok(id) => FeedMismatch::Chartset { id, is_shown },
        Err(_) => FeedMismatch::Chart { hash: parse_hash(entity)?, is_known: is_shown },
    })
}
