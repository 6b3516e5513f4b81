//! Tries refused changes again.

use std::collections::HashMap;

use anyhow::Result;
use chart_index_domain::Entity;
use chart_index_store::{MirrorState, RefusedChange};
use tokio::time::Instant;

use super::Mirror;
use super::charts::Refusal;
use super::upstream::PageRequest;
use crate::clock::now_ms;
use crate::import::Erased;

/// The number of changes that are tried together. The feed is followed in between.
const TOGETHER: u32 = 64;

impl Mirror<'_> {
    /// Reports changes that are refused, and records them.
    pub(super) async fn refuse(&self, refused: &[(RefusedChange, Refusal)]) -> Result<()> {
        for (RefusedChange { entity, .. }, refusal) in refused {
            self.report_refusal(entity, &refusal.reason);
        }
        let changes: Vec<RefusedChange> = refused.iter().map(|(change, _)| *change).collect();
        Ok(self.store.record_refusals(&changes, now_ms()).await?)
    }

    /// Tries refused changes again that are due. Returns whether there may be more.
    pub(super) async fn retry_refused(&self, next: PageRequest, state: &MirrorState) -> Result<bool> {
        let due = self.store.due_refusals(now_ms(), TOGETHER).await?;
        self.metrics.record_refusals(self.store.count_refusals().await?);
        let Some(RefusedChange { after, .. }) = due.first().copied() else { return Ok(false) };
        let page = self.upstream.current_page(PageRequest { after, ..next }).await?;
        // If it is lost, so is the position of the mirror, which starts again.
        let Some(mut page) = page else { return Ok(false) };
        // The page may be shorter than it was.
        let (due, unseen): (Vec<_>, Vec<_>) = due.into_iter().partition(|due| due.sequence <= page.next);
        let unseen: Vec<_> =
            unseen.into_iter().map(|due| RefusedChange { after: page.next, ..due }).collect();
        self.store.record_refusals(&unseen, now_ms()).await?;
        let sequences: HashMap<Entity, u64> = due.iter().map(|due| (due.entity, due.sequence)).collect();
        let is_due = |entity: Entity, sequence: u64| sequences.get(&entity) == Some(&sequence);
        page.charts.retain(|chart| is_due(chart.hash.into(), chart.sequence));
        page.chartsets.retain(|chartset| is_due(chartset.id().into(), chartset.sequence));
        let tried = page.charts.len() + page.chartsets.len();
        // It has waited for late replicas, and those that are still refused are tried again.
        let mut refused = self.replace_files(page.charts, after, state, Instant::now()).await?;
        let erased = Erased::new(&self.store.removals().await?);
        page.chartsets.retain(|chartset| !erased.chartsets.contains(&chartset.id()));
        let chartsets = self.try_store(page.chartsets, &erased).await?;
        refused.extend(chartsets.into_iter().map(|(chartset, refusal)| (chartset.refused(after), refusal)));
        // The others are stored, or have changed since: then the change is further on in the feed.
        let is_over = |due: &&RefusedChange| !refused.iter().any(|(change, _)| change == *due);
        let over: Vec<RefusedChange> = due.iter().filter(is_over).copied().collect();
        self.refuse(&refused).await?;
        self.store.forget_refusals(&over).await?;
        self.record_applied((tried - refused.len()) as u64);
        Ok(true)
    }
}
