//! Follows the catalogue for a replica: polls what has changed, and decides whether a standby serves reads.

use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chart_index_domain::CataloguePoll;
use chart_index_instrumentation::metrics;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval_at};
use tokio_util::task::AbortOnDropHandle;

use crate::connection::server::ReadLength;
use crate::feed::catalogue_poll::ServerPoll;
use crate::feed::standby_polls::{PrimaryPolls, Unusable, check_standby};
use crate::{Standby, Store};

/// PostgreSQL counts as available for this time after a poll.
const AVAILABLE_AFTER_POLL: Duration = Duration::from_secs(5);

/// Polls the catalogue at an interval. Clones share the task, which ends with the last of them.
#[derive(Clone)]
pub struct CatalogueWatch {
    last: Arc<LastPoll>,
    _task: Option<Arc<AbortOnDropHandle<()>>>,
}

#[derive(Debug, Default)]
struct LastPoll {
    sequence: watch::Sender<u64>,
    at: Mutex<Option<Instant>>,
}

impl CatalogueWatch {
    /// A watch that never polls, for programs that cache nothing.
    #[must_use]
    pub fn disabled() -> Self {
        Self { last: Arc::default(), _task: None }
    }

    /// Polls once, waiting up to `interval` for it, and then once per interval. Calls `on_poll` with each
    /// result and the time at which the poll began.
    ///
    /// With a standby both servers are polled, twice per interval. While the standby is current, `on_poll` gets
    /// what it has, with the time from which on changes may be missing.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub async fn start(
        store: &Store,
        standby: Option<Standby>,
        interval: Duration,
        on_poll: impl Fn(CataloguePoll, Instant) + Send + Sync + 'static,
    ) -> Self {
        let interval = if standby.is_some() { interval / 2 } else { interval };
        let last = Arc::<LastPoll>::default();
        metrics().observe(&last, |last, metrics| {
            metrics.chart_index_postgresql_available.set_known([], last.is_recent());
        });
        let mut poller = Poller {
            store: store.clone(),
            standby: standby.map(|standby| StandbyPoller {
                standby,
                primary: PrimaryPolls::default(),
                of_primary: None,
                unusable: Some(Unusable::NotPolled),
                limit: interval,
            }),
            last: Arc::clone(&last),
            on_poll,
        };
        let _ = tokio::time::timeout(interval * 2, poller.poll()).await;
        let task = tokio::spawn(async move {
            let mut ticks = interval_at(tokio::time::Instant::now() + interval, interval);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                poller.poll().await;
            }
        });
        Self { last, _task: Some(Arc::new(AbortOnDropHandle::new(task))) }
    }

    /// The last sequence of the change feed when it was last polled; 0 before that.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        *self.last.sequence.borrow()
    }

    /// The same, and its changes.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.last.sequence.subscribe()
    }
}

impl fmt::Debug for CatalogueWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CatalogueWatch").field(&self.last).finish()
    }
}

impl LastPoll {
    /// Whether PostgreSQL counts as available; `None` before the first poll.
    fn is_recent(&self) -> Option<bool> {
        let at = *self.at.lock().unwrap_or_else(PoisonError::into_inner);
        at.map(|at| at.elapsed() < AVAILABLE_AFTER_POLL)
    }
}

struct Poller<F> {
    store: Store,
    standby: Option<StandbyPoller>,
    last: Arc<LastPoll>,
    on_poll: F,
}

/// Compares a standby with the primary.
struct StandbyPoller {
    standby: Standby,
    /// The last polls of the primary.
    primary: PrimaryPolls,
    /// The server that was a standby of the primary when both were last polled.
    of_primary: Option<i64>,
    /// Why it is not used, as was logged last.
    unusable: Option<Unusable>,
    /// Timeout of a poll of the standby, after which the primary is polled.
    limit: Duration,
}

impl<F: Fn(CataloguePoll, Instant) + Sync> Poller<F> {
    async fn poll(&mut self) {
        let after = *self.last.sequence.borrow();
        // Before the primary, which must then have what the standby has.
        let polled = match &self.standby {
            Some(standby) => standby.poll(after).await,
            None => None,
        };
        let began = Instant::now();
        match self.store.poll_server(after).await {
            Ok(primary) => {
                *self.last.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(began);
                let of_standby = self.standby.as_mut();
                let of_standby =
                    of_standby.and_then(|standby| standby.compare(polled, &primary, began, after));
                let (poll, began) = of_standby.unwrap_or((primary.poll, began));
                let sequence = poll.position.sequence;
                (self.on_poll)(poll, began);
                self.last.sequence.send_if_modified(|last| mem::replace(last, sequence) != sequence);
            }
            // Requests report an outage; this task only misses changes.
            Err(error) => tracing::debug!(%error, "polling the catalogue failed"),
        }
    }
}

impl StandbyPoller {
    /// Polls the standby, and decides whether it may replace the primary.
    async fn poll(&self, after: u64) -> Option<ServerPoll> {
        let read = self
            .standby
            .monitoring()
            .read(ReadLength::Short, |connection| ServerPoll::read(connection, after));
        let read = tokio::time::timeout(self.limit, read).await;
        let Ok(Ok(polled)) = read else {
            self.standby.suspend();
            return None;
        };
        let reached = self.primary.reached_by(&polled);
        let has_last = reached.is_some() && reached.as_ref() == self.primary.last();
        // It may have been promoted since; another server behind its name must not have been.
        let is_same = self.of_primary == Some(polled.server.server);
        let is_of_primary = self.of_primary.is_some() && (is_same || polled.is_standby);
        let may_replace = is_of_primary && has_last;
        if let Some(reached) = reached {
            self.standby.record_caught_up(reached.began, polled.server, may_replace);
        }
        self.standby.set_replaces_primary(may_replace);
        Some(polled)
    }

    /// Decides whether reads use the standby, whose poll was followed by this one of the primary. Returns its
    /// poll if they do.
    fn compare(
        &mut self,
        standby: Option<ServerPoll>,
        primary: &ServerPoll,
        began: Instant,
        known: u64,
    ) -> Option<(CataloguePoll, Instant)> {
        self.primary.push(began, primary);
        let applied = self.applied(standby, primary, known);
        let unusable = applied.as_ref().err().copied();
        if unusable.is_some() {
            // Before the poll of the primary is applied: reads that know of it must see what it found.
            self.standby.suspend();
        }
        if mem::replace(&mut self.unusable, unusable) != unusable {
            if let Some(reason) = unusable {
                tracing::warn!(%reason, "reads do not use the standby");
            } else {
                tracing::info!("reads use the standby");
            }
        }
        applied.ok()
    }

    /// The poll of the standby as that of the primary, if reads may use the standby from now on.
    fn applied(
        &mut self,
        standby: Option<ServerPoll>,
        primary: &ServerPoll,
        known: u64,
    ) -> Result<(CataloguePoll, Instant), Unusable> {
        let polled = standby.ok_or(Unusable::Silent)?;
        let checked = check_standby(&polled, primary);
        self.of_primary = checked.is_ok().then_some(polled.server.server);
        checked?;
        let reached = self.primary.reached_by(&polled).ok_or(Unusable::Behind)?;
        // A read that begins now must see what is known.
        let has_known = polled.poll.position.sequence >= known;
        let may_be_read = has_known && Standby::is_recent(reached.began);
        self.standby.record_caught_up(reached.began, polled.server, may_be_read);
        if !may_be_read || !self.standby.resume() {
            return Err(Unusable::Behind);
        }
        Ok((reached.applied_to(polled.poll), reached.began))
    }
}
