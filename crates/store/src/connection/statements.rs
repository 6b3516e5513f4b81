//! Runs a single statement: what most functions of [`Store`] do.

use chart_index_domain::ReadError;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::{Query, QueryAs};
use sqlx::{FromRow, Postgres};

use crate::connection::pooled_connection::PooledConnection;
use crate::connection::server::ReadLength;
use crate::{Store, StoreError};

/// A statement with its values, which returns rows.
type RowQuery<'q, R> = QueryAs<'q, Postgres, R, PgArguments>;

/// What the columns of a row are read into.
pub(crate) trait Row: Send + Unpin + for<'r> FromRow<'r, PgRow> {}

impl<R: Send + Unpin + for<'r> FromRow<'r, PgRow>> Row for R {}

impl Store {
    /// Reads and parses rows, with the retries of [`short_read`](Self::short_read) or
    /// [`long_read`](Self::long_read).
    pub(crate) async fn read_rows<'q, R: Row, T, C: FromIterator<T>>(
        &self,
        operation: &'static str,
        length: ReadLength,
        query: impl Fn() -> RowQuery<'q, R>,
        parse: impl Fn(R) -> Result<T, sqlx::Error>,
    ) -> Result<C, ReadError> {
        let (query, parse) = (&query, &parse);
        let read = |mut connection: PooledConnection| async move {
            let rows = query().fetch_all(&mut *connection).await?;
            connection.release();
            rows.into_iter().map(parse).collect()
        };
        self.read(operation, length, read).await
    }

    /// The same of a statement that returns at most one row.
    pub(crate) async fn read_row<'q, R: Row, T>(
        &self,
        operation: &'static str,
        length: ReadLength,
        query: impl Fn() -> RowQuery<'q, R>,
        parse: impl Fn(R) -> Result<T, sqlx::Error>,
    ) -> Result<Option<T>, ReadError> {
        let rows: Vec<T> = self.read_rows(operation, length, query, parse).await?;
        Ok(rows.into_iter().next())
    }

    /// Runs a statement [once](Self::run_once), and parses its rows.
    pub(crate) async fn fetch_rows<R: Row, T, C: FromIterator<T>>(
        &self,
        operation: &'static str,
        query: RowQuery<'_, R>,
        parse: impl Fn(R) -> Result<T, sqlx::Error>,
    ) -> Result<C, StoreError> {
        let run = |mut connection: PooledConnection| async move {
            let rows = query.fetch_all(&mut *connection).await?;
            connection.release();
            rows.into_iter().map(parse).collect()
        };
        self.run_once(operation, run).await
    }

    /// The same of a statement that returns at most one row.
    pub(crate) async fn fetch_row<R: Row, T>(
        &self,
        operation: &'static str,
        query: RowQuery<'_, R>,
        parse: impl Fn(R) -> Result<T, sqlx::Error>,
    ) -> Result<Option<T>, StoreError> {
        let rows: Vec<T> = self.fetch_rows(operation, query, parse).await?;
        Ok(rows.into_iter().next())
    }

    /// Runs a statement [once](Self::run_once) that returns no rows.
    pub(crate) async fn execute(
        &self,
        operation: &'static str,
        query: Query<'static, Postgres, PgArguments>,
    ) -> Result<(), StoreError> {
        let run = |mut connection: PooledConnection| async move {
            query.execute(&mut *connection).await?;
            connection.release();
            Ok(())
        };
        self.run_once(operation, run).await
    }
}
