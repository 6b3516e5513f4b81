//! The change feed: the latest change of each chart and chartset, in the order of a number (docs/api.md, "Changes").

use chart_index_domain::ReadError;

use crate::Store;

impl Store {
    /// Returns the number of the latest change of the feed; 0 before the first one.
    pub async fn last_sequence(&self) -> Result<u64, ReadError> {
        self.short_read("read the last sequence", |mut connection| async move {
            let last: i64 = sqlx::query_scalar("SELECT last_sequence FROM change_feed")
                .fetch_one(&mut *connection)
                .await?;
            Ok(last.unsigned_abs())
        })
        .await
    }
}
