//! Applies a page of changes.

use std::collections::{HashMap, HashSet};
use std::slice;

use anyhow::Result;
use chart_index_domain::{ChartDraft, ChartsetId, Entity, NoteHash};
use chart_index_store::{MirrorState, Precedence, RefusedChange};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::time::{Instant, sleep};
use tracing::Level;

use super::Mirror;
use super::ahead::DELETED_TOGETHER;
use super::charts::{LATE_FOR, RETRY_PAUSE, Refusal};
use super::page::{ChangedChartset, Page};
use super::upstream::PageRequest;
use crate::clock::now_ms;
use crate::import::{CheckedChartset, Erased, Removals, check_chart};

/// The number of chartsets that are checked together.
const BATCH_CHARTSETS: usize = 128;
/// The number of chartsets that are stored at once, as in an ingest.
const WRITERS: usize = 4;

impl Mirror<'_> {
    /// Applies the page of a request, and stores the position after it. To apply a page twice has the same
    /// result.
    pub(super) async fn apply(&self, page: Page, request: PageRequest, state: &MirrorState) -> Result<()> {
        let Page { mut chartsets, charts, removed, refused, next, lineage, .. } = page;
        let count = (chartsets.len() + charts.len() + removed.len()) as u64;
        for (name, reason) in &refused {
            self.report_refusal(name, reason);
        }
        let (by_operator, removed): (Vec<_>, Vec<_>) =
            removed.into_iter().partition(|removed| removed.by_operator);
        self.apply_removals(&by_operator).await?;
        // Before the chartsets, since the records have the numbers of the new files.
        let deadline = Instant::now() + LATE_FOR;
        let not_replaced = self.replace_files(charts, request.after, state, deadline).await?;
        let mut refused = not_replaced.len();
        self.refuse(&not_replaced).await?;
        let erased = Erased::new(&self.store.removals().await?);
        chartsets.retain(|chartset| !erased.chartsets.contains(&chartset.id()));
        while !chartsets.is_empty() {
            let batch = chartsets.drain(..chartsets.len().min(BATCH_CHARTSETS)).collect();
            refused += self.store_chartsets(batch, request, &erased).await?;
        }
        // Last, since a chart of a deleted chartset may be in another one, and is not fetched again then.
        self.delete(removed.iter(), false).await?;
        self.store.advance_mirror(Some(request.after), next, lineage).await?;
        self.forget_removals(next).await;
        self.record_applied(count.saturating_sub(refused as u64));
        Ok(())
    }

    /// Stores chartsets with their charts, and returns the number of those that are refused. If the files of
    /// one are missing or wrong, a replica or cache of the upstream may be late: then waits for them, unless
    /// the chartset has changed since, and is further on in the feed.
    async fn store_chartsets(
        &self,
        mut batch: Vec<ChangedChartset>,
        request: PageRequest,
        erased: &Erased,
    ) -> Result<usize> {
        let started = Instant::now();
        let mut count = 0;
        loop {
            let mut refused = self.try_store(batch, erased).await?;
            // Each time: a removal takes effect before it has a number.
            self.skip_changed(&mut refused, request).await?;
            let is_early = started.elapsed() < LATE_FOR;
            let (again, failed): (Vec<_>, Vec<_>) =
                refused.into_iter().partition(|(_, refusal)| is_early && refusal.may_be_late);
            count += failed.len();
            // They are there: what is stored of them stays when the mirror starts again.
            let ids: Vec<ChartsetId> = failed.iter().map(|(chartset, _)| chartset.id()).collect();
            self.store.confirm_chartsets(&ids).await?;
            let failed: Vec<_> = failed
                .into_iter()
                .map(|(chartset, refusal)| (chartset.refused(request.after), refusal))
                .collect();
            self.refuse(&failed).await?;
            if again.is_empty() {
                return Ok(count);
            }
            batch = again.into_iter().map(|(chartset, _)| chartset).collect();
            sleep(RETRY_PAUSE).await;
        }
    }

    /// Leaves out the chartsets that have changed since the page was read.
    async fn skip_changed(
        &self,
        refused: &mut Vec<(ChangedChartset, Refusal)>,
        request: PageRequest,
    ) -> Result<()> {
        if refused.is_empty() {
            return Ok(());
        }
        let Some(current) = self.upstream.current_page(request).await? else {
            return Ok(());
        };
        let sequences: HashSet<u64> = current.sequences.into_iter().collect();
        let is_changed = |sequence: u64| sequence <= current.next && !sequences.contains(&sequence);
        for (chartset, refusal) in refused.extract_if(.., |(chartset, _)| is_changed(chartset.sequence)) {
            let id = chartset.id();
            self.print(Level::WARN, format_args!("chartset {id} has changed since: {}", refusal.reason));
        }
        Ok(())
    }

    /// Stores the chartsets that match their charts, and returns the others.
    pub(super) async fn try_store(
        &self,
        mut batch: Vec<ChangedChartset>,
        erased: &Erased,
    ) -> Result<Vec<(ChangedChartset, Refusal)>> {
        leave_out_removed(&mut batch, &*self.later_removals.read().await);
        let hashes: Vec<NoteHash> =
            batch.iter().flat_map(|chartset| chartset.charts(erased)).map(|(chart, _)| chart.hash).collect();
        let mut stored = self.store.stored_values(&hashes).await?;
        let mut wanted = HashMap::new();
        for (chart, rox_bytes) in batch.iter().flat_map(|chartset| chartset.charts(erased)) {
            match stored.get(&chart.hash) {
                Some(stored) if check_chart(&chart.numbers, rox_bytes, stored).is_ok() => (),
                stored => drop(wanted.insert(chart.hash, stored.is_some())),
            }
        }
        let mut refusals = HashMap::new();
        if !wanted.is_empty() {
            refusals = self.fetch_charts(wanted).await?;
            stored = self.store.stored_values(&hashes).await?;
        }
        let check = |(chart, rox_bytes): (&ChartDraft, u64)| {
            let hash = chart.hash;
            let Some(stored) = stored.get(&hash) else {
                return Err(refusals.get(&hash).cloned().unwrap_or_else(|| Refusal::missing(hash)));
            };
            check_chart(&chart.numbers, rox_bytes, stored).map_err(|error| {
                Refusal::late(format!("chart {hash} does not match its ROX file: {error:#}"))
            })
        };
        let (mut valid, mut refused) = (Vec::new(), Vec::new());
        for chartset in batch {
            let checked = chartset.charts(erased).try_for_each(check);
            match checked {
                Ok(()) => valid.push(chartset),
                Err(refusal) => refused.push((chartset, refusal)),
            }
        }
        refused.extend(self.put(valid).await?);
        Ok(refused)
    }

    /// Stores chartsets with the times of the original. Returns those whose values PostgreSQL rejects.
    async fn put(&self, mut chartsets: Vec<ChangedChartset>) -> Result<Vec<(ChangedChartset, Refusal)>> {
        let removals = self.later_removals.read().await;
        leave_out_removed(&mut chartsets, &removals);
        let ids: Vec<ChartsetId> = chartsets.iter().map(ChangedChartset::id).collect();
        let put = async |chartset: ChangedChartset| {
            let CheckedChartset { chartset: imported, .. } = &chartset.checked;
            match self.store.import_chartsets(slice::from_ref(imported), Precedence::Imported, now_ms()).await
            {
                Ok(_) => Ok(None),
                Err(error) if error.is_rejected() => Ok(Some((chartset, Refusal::rejected(&error)))),
                Err(error) => Err(error),
            }
        };
        let puts = stream::iter(chartsets).map(put).buffer_unordered(WRITERS);
        let rejected: Vec<Option<_>> = puts.try_collect().await?;
        self.store.confirm_chartsets(&ids).await?;
        Ok(rejected.into_iter().flatten().collect())
    }

    /// Deletes what was stored when the mirror started again, and was not in the feed since.
    pub(super) async fn delete_unconfirmed(&self) -> Result<()> {
        loop {
            let entities = self.store.unconfirmed(u32::try_from(DELETED_TOGETHER)?).await?;
            if entities.is_empty() {
                return Ok(());
            }
            self.store.delete(&entities, true).await?;
            let id = |entity: &Entity| if let Entity::Chartset(id) = entity { Some(*id) } else { None };
            let ids: Vec<ChartsetId> = entities.iter().filter_map(id).collect();
            self.store.confirm_chartsets(&ids).await?;
        }
    }
}

/// Leaves out what was removed later, and the charts that were.
fn leave_out_removed(chartsets: &mut Vec<ChangedChartset>, removals: &Removals) {
    chartsets.retain_mut(|ChangedChartset { sequence, checked }| checked.leave_out(removals, *sequence));
}

impl ChangedChartset {
    pub(super) fn id(&self) -> ChartsetId {
        self.checked.chartset.draft.id
    }

    /// The change, in the page after a sequence, if it is refused.
    pub(super) fn refused(&self, after: u64) -> RefusedChange {
        RefusedChange { entity: self.id().into(), sequence: self.sequence, after }
    }

    /// The charts that are not erased here, with the sizes of their ROX files.
    fn charts<'a>(&'a self, erased: &'a Erased) -> impl Iterator<Item = (&'a ChartDraft, u64)> {
        let CheckedChartset { chartset, rox_bytes } = &self.checked;
        let charts = chartset.draft.charts.iter().zip(rox_bytes.iter().copied());
        charts.filter(|(chart, _)| !erased.charts.contains(&chart.hash))
    }
}
