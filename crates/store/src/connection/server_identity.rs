//! Which server a connection has reached, and how much of the log of changes (WAL) it has applied.

use std::sync::{Mutex, PoisonError};

use sqlx::PgConnection;

/// A running server, and a position in the WAL that it has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerPosition {
    /// A digest of the cluster and of the start of the server (the view `server_state`).
    pub(crate) server: i64,
    pub(crate) wal: i64,
}

/// The server that connections of a pool must reach: one name may lead to several standbys, and a standby that
/// was restarted may be behind what it had replayed before.
#[derive(Debug, Default)]
pub(crate) struct ExpectedServer(Mutex<Option<ServerPosition>>);

/// The connection has reached another server.
#[derive(Debug, thiserror::Error)]
#[error("not the standby that was polled")]
struct UnexpectedServer;

impl ExpectedServer {
    /// Whether another server is expected.
    pub(crate) fn is_other(&self, position: ServerPosition) -> bool {
        let expected = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        expected.is_some_and(|expected| expected.server != position.server)
    }

    /// Sets the server. Returns whether it was another one before.
    pub(crate) fn set(&self, position: ServerPosition) -> bool {
        let previous = self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(position);
        previous.is_some_and(|previous| previous.server != position.server)
    }

    /// Fails unless the connection has reached the server, and the server at least its position.
    pub(crate) async fn check(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let read = sqlx::query_as("SELECT origin, wal FROM server_state").fetch_one(connection);
        let (server, wal): (i64, i64) = read.await?;
        let expected = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_expected = expected.is_some_and(|expected| expected.server == server && expected.wal <= wal);
        if is_expected { Ok(()) } else { Err(sqlx::Error::Configuration(UnexpectedServer.into())) }
    }
}

/// Whether the error is that of [`ExpectedServer::check`].
pub(crate) fn is_unexpected_server(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Configuration(error) if error.is::<UnexpectedServer>())
}

#[cfg(test)]
mod tests {
    use chart_index_tests::TestDatabase;

    use super::*;
    use crate::{Store, StoreConfig};

    #[tokio::test]
    async fn only_the_server_that_was_polled_is_expected() {
        let database = TestDatabase::migrated().await;
        let store = Store::new(&StoreConfig::new(database.url().parse().unwrap()));
        let polled = store.poll_server(0).await.unwrap().server;
        let mut connection = store.connect(store.unlimited_options()).await.unwrap();
        let expected = ExpectedServer::default();
        assert!(is_unexpected_server(&expected.check(&mut connection).await.unwrap_err()), "none was polled");
        assert!(!expected.set(polled));
        expected.check(&mut connection).await.unwrap();
        assert!(!expected.set(ServerPosition { wal: i64::MAX, ..polled }));
        assert!(expected.check(&mut connection).await.is_err(), "it is behind");
        assert!(expected.set(ServerPosition { server: polled.server ^ 1, wal: 0 }));
        assert!(expected.check(&mut connection).await.is_err(), "another one was polled");
    }
}
