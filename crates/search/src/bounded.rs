//! An engine that stands in for another must not be run over by what that one carried.

use std::num::NonZeroUsize;
use std::time::Duration;

use async_trait::async_trait;
use chart_index_domain::ReadError;
use chart_index_domain::search::{ChartsetPage, Engine, Generation, SearchIndex, SearchQuery};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// An engine with a bound on the searches that are under way at once. What is above it waits for a moment, and is then
/// [`ReadError::Unavailable`].
#[derive(Debug)]
pub struct Bounded<S> {
    engine: S,
    places: Semaphore,
}

/// Every place was taken.
#[derive(Debug, thiserror::Error)]
#[error("as many searches are under way as the engine may have")]
struct Full;

/// How long a search waits for a place: a few times as long as one takes.
const PATIENCE: Duration = Duration::from_millis(500);

impl<S> Bounded<S> {
    /// Lets at most so many searches run at once.
    #[must_use]
    pub fn new(engine: S, at_once: NonZeroUsize) -> Self {
        Self { engine, places: Semaphore::new(at_once.get().min(Semaphore::MAX_PERMITS)) }
    }
}

#[async_trait]
impl<S: SearchIndex> SearchIndex for Bounded<S> {
    fn engine(&self) -> Engine {
        self.engine.engine()
    }

    fn generation(&self) -> Generation {
        self.engine.generation()
    }

    async fn search(&self, query: &SearchQuery, generation: Generation) -> Result<ChartsetPage, ReadError> {
        match timeout(PATIENCE, self.places.acquire()).await {
            Ok(Ok(_place)) => self.engine.search(query, generation).await,
            Ok(Err(_)) | Err(_) => {
                Err(ReadError::Unavailable { operation: "search chartsets", source: Full.into() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Notify;

    use super::*;

    /// An engine whose searches last until they are let go.
    #[derive(Clone, Default)]
    struct Slow {
        let_go: Arc<Notify>,
    }

    #[async_trait]
    impl SearchIndex for Slow {
        fn engine(&self) -> Engine {
            Engine::Postgres
        }

        fn generation(&self) -> Generation {
            Generation(7)
        }

        async fn search(&self, _: &SearchQuery, _: Generation) -> Result<ChartsetPage, ReadError> {
            self.let_go.notified().await;
            Ok(ChartsetPage { items: Vec::new(), total: 0 })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_above_the_bound_waits_for_a_moment_and_is_then_unavailable() {
        let slow = Slow::default();
        let engine = Arc::new(Bounded::new(slow.clone(), NonZeroUsize::MIN));
        let search = || {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move { engine.search(&SearchQuery::default(), Generation(7)).await })
        };
        let first = search();
        tokio::task::yield_now().await;
        let refused = search().await.unwrap();
        assert!(matches!(refused, Err(ReadError::Unavailable { .. })), "{refused:?}");
        let waiting = search();
        tokio::task::yield_now().await;
        slow.let_go.notify_one();
        assert!(first.await.unwrap().is_ok());
        slow.let_go.notify_one();
        assert!(waiting.await.unwrap().is_ok());
    }
}
