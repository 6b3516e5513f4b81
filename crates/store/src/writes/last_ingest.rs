//! When the last ingest began, and when one was last complete.

use chart_index_domain::ReadError;

use crate::connection::server::ReadLength;
use crate::{Store, StoreError};

/// The times of ingests by the clock of the server, in Unix epoch milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastIngest {
    /// When the last one began.
    pub began_at_ms: i64,
    /// When one was last complete; `None` before the first.
    pub completed_at_ms: Option<i64>,
}

impl Store {
    /// The times of ingests; `None` before the first.
    pub async fn last_ingest(&self) -> Result<Option<LastIngest>, ReadError> {
        let query = || sqlx::query_as("SELECT began_at_ms, completed_at_ms FROM last_ingest");
        let parse = |(began_at_ms, completed_at_ms)| Ok(LastIngest { began_at_ms, completed_at_ms });
        self.read_row("read the times of ingests", ReadLength::Short, query, parse).await
    }

    /// Records that an ingest begins.
    pub async fn record_ingest_start(&self) -> Result<(), StoreError> {
        let query = sqlx::query(
            "INSERT INTO last_ingest (began_at_ms)
             VALUES ((extract(epoch FROM clock_timestamp()) * 1000)::bigint)
             ON CONFLICT (only_row) DO UPDATE SET began_at_ms = excluded.began_at_ms",
        );
        self.execute("record the start of an ingest", query).await
    }

    /// Records that an ingest is complete.
    pub async fn record_ingest_end(&self) -> Result<(), StoreError> {
        let query = sqlx::query(
            "UPDATE last_ingest SET completed_at_ms = (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
        );
        self.execute("record the end of an ingest", query).await
    }
}
