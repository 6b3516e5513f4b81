//! Looks ahead in the change feed for what an operator has removed, and deletes it before what was added
//! earlier is downloaded.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::Result;
use chart_index_domain::Entity;
use tokio::time::sleep;
use tracing::Level;

use super::Mirror;
use super::page::Removed;
use super::upstream::PageRequest;

/// Pause before the first look: pages without files to request are applied sooner, and need none.
const DELAY: Duration = Duration::from_secs(1);
/// Pause at the end of the feed.
const PAUSE: Duration = Duration::from_secs(10);
/// The number of entries that are deleted in a transaction, which other writers wait for.
pub(super) const DELETED_TOGETHER: usize = 200;

impl Mirror<'_> {
    /// Runs `work`, and deletes meanwhile what is removed on this page and those after it.
    pub(super) async fn while_looking_ahead<T>(&self, next: PageRequest, work: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            result = work => result,
            never = self.look_ahead(next) => match never {},
        }
    }

    async fn look_ahead(&self, next: PageRequest) -> Infallible {
        sleep(DELAY).await;
        self.looked_to.set(self.looked_to.get().max(next.after));
        loop {
            match self.look(PageRequest { after: self.looked_to.get(), ..next }).await {
                Ok(true) => (),
                Ok(false) => sleep(PAUSE).await,
                Err(error) => {
                    self.print(Level::WARN, format_args!("cannot look ahead for removals: {error:#}"));
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Deletes what a page removes. Returns whether the feed continues after it.
    async fn look(&self, request: PageRequest) -> Result<bool> {
        let Some(page) = self.upstream.page(request, Duration::ZERO).await? else {
            // The next page to be applied is lost as well.
            return Ok(false);
        };
        let removed: Vec<Removed> = page.removed.into_iter().filter(|removed| removed.by_operator).collect();
        if !removed.is_empty() {
            let mut later = self.later_removals.write().await;
            self.delete(removed.iter(), true).await?;
            later.extend(removed.iter().map(|removed| (removed.entity, removed.sequence)));
        }
        self.looked_to.set(page.next);
        Ok(page.has_more)
    }

    /// Deletes what an operator has removed, as far as it is not deleted yet.
    pub(super) async fn apply_removals(&self, removed: &[Removed]) -> Result<()> {
        let later = self.later_removals.write().await;
        let is_known = |removed: &&Removed| later.get(&removed.entity) == Some(&removed.sequence);
        // Again, since ROX files may have been stored since. Exports after the first time have none of them.
        self.delete(removed.iter().filter(is_known), false).await?;
        self.delete(removed.iter().filter(|removed| !is_known(removed)), true).await
    }

    /// Forgets the removals up to a sequence, up to which everything is applied.
    pub(super) async fn forget_removals(&self, sequence: u64) {
        self.later_removals.write().await.retain(|_, removed| *removed > sequence);
    }

    /// Deletes what was removed. It gets no entry in the list of removals: it may be restored.
    pub(super) async fn delete(
        &self,
        removed: impl Iterator<Item = &Removed>,
        by_operator: bool,
    ) -> Result<()> {
        let entities: Vec<Entity> = removed.map(|removed| removed.entity).collect();
        for batch in entities.chunks(DELETED_TOGETHER) {
            self.store.delete(batch, by_operator).await?;
        }
        Ok(())
    }
}
