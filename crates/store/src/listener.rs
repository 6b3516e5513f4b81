//! Hearing of changes as they are made.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::Store;

/// What the trigger on the outbox notifies.
const CHANNEL: &str = "search_changes";
/// How long nothing may be received before the connection is checked. A connection that goes silent without being
/// closed delivers no notifications, and no error either.
const CHECK_AFTER: Duration = Duration::from_secs(2);
/// How long such a check, and each step of connecting, may take.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long to wait before PostgreSQL is tried again.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// Hears when the catalogue changes. Clones share a connection and hear each on their own.
#[derive(Debug, Clone)]
pub struct ChangesListener {
    heard: watch::Receiver<()>,
    /// Ends with the last clone.
    _task: Arc<AbortOnDropHandle<()>>,
}

impl Store {
    /// Begins to listen for changes, on a connection of its own. While PostgreSQL is away it is tried again and
    /// again.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    #[must_use]
    pub fn changes_listener(&self) -> ChangesListener {
        let (sender, heard) = watch::channel(());
        let task = tokio::spawn(listen(self.clone(), sender));
        ChangesListener { heard, _task: Arc::new(AbortOnDropHandle::new(task)) }
    }
}

impl ChangesListener {
    /// Waits until something changed since the last call, but no longer than that. Many changes are one, and
    /// there may be none: a connection that was lost may have missed some.
    pub async fn changed(&mut self, at_most: Duration) {
        // It is only over with the task, which ends with the last listener.
        let _ = timeout(at_most, self.heard.changed()).await;
        self.heard.mark_unchanged();
    }
}

async fn listen(store: Store, sender: watch::Sender<()>) {
    loop {
        if let Err(error) = tell_each(&store, &sender).await {
            tracing::debug!(%error, "changes cannot be heard");
        }
        tokio::time::sleep(RECONNECT_PAUSE).await;
    }
}

/// Tells of every notification until the connection is lost.
async fn tell_each(store: &Store, sender: &watch::Sender<()>) -> Result<(), sqlx::Error> {
    // A pool of its own: that of the store would wait for this connection to come back.
    let options = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
    let pool = options.connect_lazy_with(store.unlimited_options().clone());
    let mut listener = bounded(PgListener::connect_with(&pool)).await?;
    listener.eager_reconnect(false);
    bounded(listener.listen(CHANNEL)).await?;
    // From here on nothing is missed; what was before is unknown.
    sender.send_replace(());
    loop {
        match timeout(CHECK_AFTER, listener.try_recv()).await {
            Ok(received) => {
                if received?.is_none() {
                    return Ok(());
                }
                sender.send_replace(());
            }
            Err(_) => {
                bounded(sqlx::query("SELECT 1").execute(&mut listener)).await?;
            }
        }
    }
}

async fn bounded<T>(step: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    timeout(STATEMENT_TIMEOUT, step).await.map_err(|_| sqlx::Error::Io(ErrorKind::TimedOut.into()))?
}
