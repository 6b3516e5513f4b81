//! Applies increments in place of many pages of the change feed and single ROX files.

use anyhow::{Context, Result, ensure};
use chart_index_domain::{ExportFile, ExportName};
use chart_index_store::MirrorState;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::Mirror;
use super::downloads::Downloads;
use crate::import::{import_charts, parse_manifest, read_changes};

impl Mirror<'_> {
    /// Applies the increment that leads furthest from a sequence. Returns whether there was one, so that the
    /// position may be another one now.
    ///
    /// An increment that cannot be applied is printed: the feed has the same changes. As without one, none is
    /// tried again before the end of the feed.
    ///
    /// # Errors
    /// The other index is unreachable.
    pub(super) async fn apply_increment(&mut self, after: u64, state: &MirrorState) -> Result<bool> {
        let increments = self.upstream.increments().await?;
        let continued = increments.into_iter().filter(|increment| {
            increment.since().is_some_and(|since| since <= after) && increment.sequence() > after
        });
        let Some(name) = continued.max_by_key(ExportName::sequence) else {
            self.try_increments = false;
            return Ok(false);
        };
        if let Err(error) = self.try_apply_increment(&name, after, state).await {
            self.try_increments = false;
            self.print(format_args!("increment {name} is not applied: {error:#}"))?;
        }
        Ok(true)
    }

    async fn try_apply_increment(
        &mut self,
        name: &ExportName,
        after: u64,
        state: &MirrorState,
    ) -> Result<()> {
        let json = self.signed_manifest(name).await?;
        let manifest = parse_manifest(&json)?;
        let is_named = manifest.since == name.since() && manifest.sequence == name.sequence();
        ensure!(is_named, "its manifest is that of another one");
        let end = self.upstream.current_page(manifest.sequence, 1).await?;
        end.context("it has changes that were lost since")?;
        let downloads = Downloads::open(&self.options.downloads)?;
        let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
        self.print(format_args!("applies increment {name}, {bytes} bytes"))?;
        let increment = self.download_all(&downloads, name, &json, &manifest).await?;
        import_charts(self.store, &increment).await?;
        let (sender, mut pages) = mpsc::channel(1);
        let reader = spawn_blocking(move || {
            let file = increment.open(ExportFile::Changes)?;
            read_changes(file, increment.manifest(), after, |page| sender.blocking_send(page).is_ok())
        });
        while let Some(page) = pages.recv().await {
            self.metrics.record_page(page.oldest_ms);
            let next = page.next;
            self.apply(page, state).await?;
            self.metrics.record_position(next);
        }
        reader.await??;
        downloads.clear()
    }
}
