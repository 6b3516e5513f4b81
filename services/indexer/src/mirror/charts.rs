//! Fetches the ROX files of charts, and stores the charts.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Result;
use chart_index_cli::Causes;
use chart_index_domain::{ChartDraft, FileDigest, NoteHash};
use chart_index_store::{MirrorState, RefusedChange, StoreError};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::Mirror;
use super::page::ChangedChart;
use crate::clock::now_ms;
use crate::import::draft_of_rox;

/// The number of files that are fetched at once.
const FETCHES: usize = 4;
/// The number of charts from which on they are stored, and the size of their ROX files.
const BATCH_CHARTS: usize = 256;
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// A replica may be 5 seconds late (docs/api.md, "ROX file"). What a cache has stored for longer, or an outage,
/// is over when the refused change is tried again.
pub(super) const LATE_FOR: Duration = Duration::from_secs(6);
/// Pause between two requests for such a file, and for the changes since: half the rate limit of these.
pub(super) const RETRY_PAUSE: Duration = Duration::from_secs(5);
/// How far the clocks of both instances may differ.
const CLOCK_TOLERANCE_MS: i64 = 3_600_000;

/// Why something is not stored.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) reason: String,
    /// Whether a late replica may be why.
    pub(super) may_be_late: bool,
}

impl Refusal {
    pub(super) fn missing(hash: NoteHash) -> Self {
        Self::late(format!("there is no ROX file of chart {hash}"))
    }

    pub(super) const fn late(reason: String) -> Self {
        Self { reason, may_be_late: true }
    }

    /// The file is at an address that is not one of the settings.
    pub(super) fn elsewhere(hash: NoteHash, address: &str) -> Self {
        let reason = format!(
            "the ROX file of chart {hash} is at {address}, which is not below an address of MIRROR_OBJECTS_URL"
        );
        Self { reason, may_be_late: false }
    }

    /// PostgreSQL rejects its values.
    pub(super) fn rejected(error: &StoreError) -> Self {
        Self { reason: Causes(error).to_string(), may_be_late: false }
    }
}

impl Mirror<'_> {
    /// Stores charts, of which the second value is whether they are stored with another ROX file. Returns those
    /// that are not stored.
    pub(super) async fn fetch_charts(
        &self,
        charts: HashMap<NoteHash, bool>,
    ) -> Result<HashMap<NoteHash, Refusal>> {
        let hashes: Vec<NoteHash> = charts.keys().copied().collect();
        let replacements = self.store.replacements(&hashes).await?;
        let fetch = async |(hash, is_stored)| anyhow::Ok((is_stored, hash, self.upstream.rox(hash).await?));
        let mut fetched = stream::iter(charts).map(fetch).buffer_unordered(FETCHES);
        let (mut new, mut bytes, mut refused) = (Vec::new(), 0, HashMap::new());
        while let Some((is_stored, hash, file)) = fetched.try_next().await? {
            match check_digest(decode(hash, file).await?, &replacements) {
                Ok(chart) if is_stored => self.replace(&chart).await?,
                Ok(chart) => {
                    bytes += chart.rox.as_ref().map_or(0, Vec::len);
                    new.push(chart);
                }
                Err(refusal) => drop(refused.insert(hash, refusal)),
            }
            if new.len() >= BATCH_CHARTS || bytes >= BATCH_BYTES {
                self.store.put_charts(&std::mem::take(&mut new), now_ms()).await?;
                bytes = 0;
            }
        }
        if !new.is_empty() {
            self.store.put_charts(&new, now_ms()).await?;
        }
        Ok(refused)
    }

    /// Replaces the ROX files of stored charts that were replaced. While the mirror starts again, also of those
    /// that changed after they were stored: what the feed has lost may have been the file that is stored here.
    /// The charts are those of the page after a sequence. Waits for files of late replicas until `deadline`.
    /// Returns those that are refused.
    pub(super) async fn replace_files(
        &self,
        charts: Vec<ChangedChart>,
        after: u64,
        state: &MirrorState,
        deadline: Instant,
    ) -> Result<Vec<(RefusedChange, Refusal)>> {
        let is_restart = state.is_starting && state.restarts > 0;
        let suspects: Vec<ChangedChart> =
            charts.into_iter().filter(|chart| is_restart || chart.replacement.is_some()).collect();
        let mut refused = Vec::new();
        if suspects.is_empty() {
            return Ok(refused);
        }
        let hashes: Vec<NoteHash> = suspects.iter().map(|chart| chart.hash).collect();
        let first_seen = self.store.first_seen(&hashes).await?;
        let new = suspects.iter().filter(|chart| !first_seen.contains_key(&chart.hash));
        let replacements: Vec<_> = new.filter_map(|chart| Some((chart.hash, chart.replacement?))).collect();
        let stored: Vec<NoteHash> = first_seen.keys().copied().collect();
        self.store.record_replacements(&replacements, &stored).await?;
        for chart in suspects {
            let Some(first_seen_ms) = first_seen.get(&chart.hash) else { continue };
            if chart.replacement.is_none() && chart.changed_at_ms < first_seen_ms - CLOCK_TOLERANCE_MS {
                continue;
            }
            if let Err(refusal) = self.replace_file(chart.hash, chart.replacement, deadline).await? {
                let ChangedChart { sequence, hash, .. } = chart;
                refused.push((RefusedChange { entity: hash.into(), sequence, after }, refusal));
            }
        }
        Ok(refused)
    }

    /// Replaces the ROX file of a stored chart by the one of this digest.
    async fn replace_file(
        &self,
        hash: NoteHash,
        digest: Option<FileDigest>,
        deadline: Instant,
    ) -> Result<Result<(), Refusal>> {
        let is_current = |file: &[u8]| digest == Some(blake3::hash(file).into());
        if self.store.rox_files(&[hash]).await?.iter().any(|(_, file)| is_current(file)) {
            return Ok(Ok(()));
        }
        loop {
            let refusal = match decode(hash, self.upstream.rox(hash).await?).await? {
                Ok(chart) if digest.is_none() || chart.rox.as_deref().is_some_and(is_current) => {
                    return self.replace(&chart).await.map(Ok);
                }
                Ok(_) => Refusal::late("its ROX file is not the one of the change".to_owned()),
                Err(refusal) => refusal,
            };
            if !refusal.may_be_late || Instant::now() >= deadline {
                return Ok(Err(refusal));
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    /// Replaces the ROX file of a stored chart, unless it is the same.
    async fn replace(&self, chart: &ChartDraft) -> Result<()> {
        let stored = self.store.rox_files(&[chart.hash]).await?;
        if stored.first().map(|(_, file)| file) != chart.rox.as_ref() {
            self.store.replace_rox(chart, None).await?;
        }
        Ok(())
    }
}

/// Refuses a file that another one has replaced, which a replica or cache may have.
fn check_digest(
    chart: Result<ChartDraft, Refusal>,
    replacements: &HashMap<NoteHash, FileDigest>,
) -> Result<ChartDraft, Refusal> {
    let chart = chart?;
    let digest = chart.rox.as_deref().map(|rox| FileDigest::from(blake3::hash(rox)));
    match replacements.get(&chart.hash) {
        Some(expected) if digest.as_ref() != Some(expected) => {
            Err(Refusal::late(format!("the ROX file of chart {} was replaced", chart.hash)))
        }
        _ => Ok(chart),
    }
}

/// Computes what is stored of a chart.
async fn decode(hash: NoteHash, file: Result<Vec<u8>, Refusal>) -> Result<Result<ChartDraft, Refusal>> {
    let file = match file {
        Ok(file) => file,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let draft = spawn_blocking(move || draft_of_rox(hash, file)).await?;
    Ok(draft.map_err(|error| Refusal::late(format!("{error:#}"))))
}
