//! Notifications about changes of the catalogue (`LISTEN`/`NOTIFY`).

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::Store;
use crate::time_limit::{STATEMENT_TIMEOUT, with_time_limit};

/// The channel that the trigger on the [outbox](crate::outbox) notifies.
const CHANNEL: &str = "search_changes";
/// Time without a notification after which the connection is checked. A half-open connection delivers neither
/// notifications nor an error.
const CHECK_AFTER: Duration = Duration::from_secs(2);
/// Pause before reconnecting.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// Receives a notification when the catalogue changes. Clones share a connection; each receives every
/// notification.
#[derive(Debug, Clone)]
pub struct ChangesListener {
    notifications: watch::Receiver<()>,
    /// Aborted with the last clone.
    _task: Arc<AbortOnDropHandle<()>>,
}

impl Store {
    /// Starts listening for changes on a connection of its own, which reconnects until PostgreSQL is available.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    #[must_use]
    pub fn changes_listener(&self) -> ChangesListener {
        let (sender, notifications) = watch::channel(());
        let task = tokio::spawn(listen(self.clone(), sender));
        ChangesListener { notifications, _task: Arc::new(AbortOnDropHandle::new(task)) }
    }
}

impl ChangesListener {
    /// Waits until something has changed since the last call, up to the timeout. Many changes may be one
    /// notification, and there may be a notification without a change: after reconnecting, changes may have
    /// been missed.
    pub async fn changed(&mut self, timeout_after: Duration) {
        // The sender lives as long as the task, which lives as long as the last listener.
        let _ = timeout(timeout_after, self.notifications.changed()).await;
        self.notifications.mark_unchanged();
    }
}

async fn listen(store: Store, sender: watch::Sender<()>) {
    loop {
        if let Err(error) = forward_notifications(&store, &sender).await {
            tracing::debug!(%error, "listening for changes failed");
        }
        tokio::time::sleep(RECONNECT_PAUSE).await;
    }
}

/// Forwards notifications until the connection is lost.
async fn forward_notifications(store: &Store, sender: &watch::Sender<()>) -> Result<(), sqlx::Error> {
    // `PgListener` needs a pool of sqlx.
    let options = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
    let pool = options.connect_lazy_with(store.unlimited_options().clone());
    let mut listener = with_time_limit(STATEMENT_TIMEOUT, PgListener::connect_with(&pool)).await?;
    listener.eager_reconnect(false);
    with_time_limit(STATEMENT_TIMEOUT, listener.listen(CHANNEL)).await?;
    // No change is missed from here on, but some may have been missed before.
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
                with_time_limit(STATEMENT_TIMEOUT, sqlx::query("SELECT 1").execute(&mut listener)).await?;
            }
        }
    }
}
