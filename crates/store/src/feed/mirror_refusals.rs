//! Changes of the other index that a mirror has refused, and tries again (docs/operations/mirrors.md).

use chart_index_domain::Entity;

use crate::schema::column_values::{entity_bytes, parse_entity};
use crate::{Store, StoreError};

/// A change that a mirror has refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedChange {
    /// What has changed.
    pub entity: Entity,
    /// The sequence of the change.
    pub sequence: u64,
    /// The sequence after which the page with the change begins.
    pub after: u64,
}

impl Store {
    /// Records that these changes were refused: each is due after a minute, and after twice as long each time
    /// that it is refused again, up to a day.
    pub async fn record_refusals(&self, refusals: &[RefusedChange], now_ms: i64) -> Result<(), StoreError> {
        if refusals.is_empty() {
            return Ok(());
        }
        let entities: Vec<&[u8]> = refusals.iter().map(|refusal| entity_bytes(&refusal.entity)).collect();
        let sequences: Vec<i64> = refusals.iter().map(|refusal| refusal.sequence.cast_signed()).collect();
        let after: Vec<i64> = refusals.iter().map(|refusal| refusal.after.cast_signed()).collect();
        let record = sqlx::query(
            "INSERT INTO mirror_refusals AS refusal (entity, sequence, after_sequence, retry_at_ms)
             SELECT *, $4 + 60000 FROM unnest($1::bytea[], $2::bigint[], $3::bigint[])
             ON CONFLICT (entity) DO UPDATE SET
                 sequence = excluded.sequence, after_sequence = excluded.after_sequence,
                 tries = least(refusal.tries + 1, 11),
                 retry_at_ms = $4 + least(60000 * (2 << refusal.tries), 86400000)",
        );
        let record = record.bind(entities).bind(sequences).bind(after).bind(now_ms);
        self.execute("record refusals", record).await
    }

    /// Returns up to `limit` refused changes of one page that are due.
    pub async fn due_refusals(&self, now_ms: i64, limit: u32) -> Result<Vec<RefusedChange>, StoreError> {
        let query = sqlx::query_as(
            "SELECT entity, sequence, after_sequence FROM mirror_refusals
             WHERE retry_at_ms <= $1 AND after_sequence = (
                 SELECT min(after_sequence) FROM mirror_refusals WHERE retry_at_ms <= $1
             ) ORDER BY sequence LIMIT $2",
        );
        let refusal = |(entity, sequence, after): (Vec<u8>, i64, i64)| {
            let [sequence, after] = [sequence, after].map(i64::unsigned_abs);
            Ok(RefusedChange { entity: parse_entity(&entity)?, sequence, after })
        };
        self.fetch_rows("read refusals", query.bind(now_ms).bind(i64::from(limit)), refusal).await
    }

    /// Deletes the refusals of these changes, which are stored or have changed.
    pub async fn forget_refusals(&self, refusals: &[RefusedChange]) -> Result<(), StoreError> {
        let entities: Vec<&[u8]> = refusals.iter().map(|refusal| entity_bytes(&refusal.entity)).collect();
        let forget = sqlx::query("DELETE FROM mirror_refusals WHERE entity = ANY($1)").bind(entities);
        self.execute("forget refusals", forget).await
    }

    /// Makes all refused changes due, as after a change of a setting.
    pub async fn retry_refusals(&self) -> Result<(), StoreError> {
        self.execute_for_mirror("UPDATE mirror_refusals SET tries = 0, retry_at_ms = 0").await
    }

    /// Returns the number of refused changes.
    pub async fn count_refusals(&self) -> Result<u64, StoreError> {
        let count = sqlx::query_as("SELECT count(*) FROM mirror_refusals");
        let count = self.fetch_row("count refusals", count, |(count,)| Ok(i64::unsigned_abs(count))).await?;
        Ok(count.unwrap_or_default())
    }
}
