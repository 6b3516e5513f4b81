//! One node as searches see it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chart_index_domain::search::{CatalogueChanges, ChartsetPage, Checkpoint};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use crate::http::Failure;
use crate::node::Node;
use crate::request::PageSearch;
use crate::standing::{Report, Standing};
use crate::{NodeConfig, SearchConfig, SearchError, Target};

/// Reads from one node: so many searches at once, and none while it is known to be away.
#[derive(Debug)]
pub(crate) struct Reader {
    node: Node,
    permits: Semaphore,
    deadline: Duration,
    deep_from: u64,
    standing: Mutex<Standing>,
}

impl Reader {
    pub(crate) fn new(node: &NodeConfig, config: &SearchConfig) -> Result<Self, SearchError> {
        Ok(Self {
            node: Node::new(node, config.deadline)?,
            permits: Semaphore::new(config.concurrency.get()),
            deadline: config.deadline,
            deep_from: config.deep_from,
            standing: Mutex::default(),
        })
    }

    /// What is known of the node now.
    pub(crate) fn standing(&self) -> Standing {
        *self.lock()
    }

    /// Searches, and remembers how it went.
    pub(crate) async fn search(
        &self,
        search: &PageSearch<'_>,
        deadline: Instant,
    ) -> Result<ChartsetPage, SearchError> {
        // That all turns are taken says nothing of the node.
        let turn = timeout_at(deadline, self.permits.acquire()).await.map_err(|_| SearchError::Crowded)?;
        let _turn = turn.map_err(|_| SearchError::Crowded)?;
        let outcome =
            timeout_at(deadline, search.run(&self.node, self.deep_from)).await.unwrap_or_else(|_| {
                self.node.transport.discard_connections();
                let source = Failure::TimedOut(self.deadline).into();
                Err(SearchError::Unreachable { operation: "search chartsets", source })
            });
        match &outcome {
            Ok(_) => self.lock().succeeded(),
            Err(error) => self.failed(error),
        }
        outcome
    }

    /// Holds a failed search against the node. Whoever searched tells of the failure itself.
    fn failed(&self, error: &SearchError) {
        let now = Instant::now();
        let mut standing = self.lock();
        let before = standing.usable(now);
        standing.failed(error, now);
        let left_alone = before.is_some() && standing.usable(now).is_none();
        drop(standing);
        if left_alone {
            let error: &dyn std::error::Error = error;
            tracing::warn!(node = %self.node.config.url, error, "a search node is left alone for a while");
        }
    }

    /// Asks the node how it is. `newest` is the newest checkpoint that anybody was given. Ends in bounded time, whatever
    /// goes silent.
    pub(crate) async fn probe(&self, changes: &dyn CatalogueChanges, max_lag: Duration, newest: Checkpoint) {
        let before = self.standing();
        match self.report(changes, max_lag, newest).await {
            Ok(report) => {
                self.lock().heard(report);
                self.log_change(before, report.fault(), None);
            }
            Err(error) => {
                self.lock().silent();
                self.log_change(before, Some("it cannot be asked how it is"), Some(&error));
            }
        }
    }

    async fn report(
        &self,
        changes: &dyn CatalogueChanges,
        max_lag: Duration,
        newest: Checkpoint,
    ) -> Result<Report, SearchError> {
        let features = self.node.features().await?;
        let contains = features.map(|features| features.get("containsFilter") == Some(&true));
        let Some(mut state) = self.node.state(Target::Live).await? else {
            return Ok(Report { state: None, lags: false, contains });
        };
        let oldest = timeout(self.deadline, changes.oldest_unapplied_ms(state.recorded())).await;
        let lags = match oldest {
            Ok(Ok(None)) => {
                // It holds all there is, and so all that was there when the newest checkpoint was given.
                state.checkpoint = state.checkpoint.max(newest);
                false
            }
            Ok(Ok(Some(changed_at_ms))) => age(changed_at_ms) > max_lag,
            // The record of changes is unavailable. What was known then still counts for more than nothing.
            Ok(Err(_)) | Err(_) => self.standing().lags(),
        };
        Ok(Report { state: Some(state), lags, contains })
    }

    /// Logs when the node comes into use or goes out of it, and why it is not used from the start.
    fn log_change(&self, before: Standing, fault: Option<&'static str>, error: Option<&SearchError>) {
        let (now, after) = (Instant::now(), self.standing());
        let (node, was_usable) = (&self.node.config.url, before.usable(now).is_some());
        if after.hides_features() && !before.hides_features() {
            tracing::warn!(%node, "the key may not read the experimental features of a search node");
        }
        let error = error.map(|error| error as &dyn std::error::Error);
        match fault {
            None if !was_usable && after.usable(now).is_some() => {
                tracing::info!(%node, "a search node is in use");
            }
            Some(reason) if was_usable || before.is_new() => {
                tracing::warn!(%node, reason, error, "a search node is out of use");
            }
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long ago that was; nothing for what lies in the future of this clock.
fn age(at_ms: i64) -> Duration {
    let at = Duration::from_millis(u64::try_from(at_ms).unwrap_or(0));
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(at)
}
