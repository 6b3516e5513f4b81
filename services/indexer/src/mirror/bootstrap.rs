//! Fills a mirror from an export.

use std::error::Error;

use anyhow::{Context, Result, ensure};
use chart_index_chartfile::MAX_FILE_BYTES;
use chart_index_domain::{ExportFile, ExportManifest, ExportName};
use chart_index_store::{MirrorState, Precedence, StoreError};
use tokio::task::spawn_blocking;
use tracing::Level;

use super::Mirror;
use super::downloads::Downloads;
use super::page_limit;
use super::upstream::PageRequest;
use crate::import::{Export, MAX_LINE_BYTES, import_verified, parse_manifest};
use crate::signature::VerifyKeys;

const FROM_START: &str = "the mirror starts with the first change";
/// How often an export is tried without any progress before the mirror starts without it.
const MAX_FAILURES: u32 = 5;

/// An export that a mirror may start with.
struct Found {
    name: ExportName,
    /// The manifest as it was sent.
    json: Vec<u8>,
    manifest: ExportManifest,
}

impl Mirror<'_> {
    /// Imports the newest export, if there is one that can be followed, and sets the position after it or to 0.
    pub(super) async fn bootstrap(&mut self, state: &MirrorState) -> Result<()> {
        ensure!(state.sequence.is_none(), "the mirror has a position");
        // An earlier attempt may have imported another export.
        self.store.unconfirm_chartsets().await?;
        let Some(found) = self.find_export().await? else {
            return Ok(self.store.advance_mirror(None, 0, None).await?);
        };
        let temporary = || std::env::temp_dir().join("chart-index-mirror");
        let downloads = Downloads::open(&self.options.downloads.clone().unwrap_or_else(temporary))?;
        let stored = downloads.bytes(&found.name)?;
        let result = self.import_export(&downloads, &found, state).await;
        if let Err(error) = &result {
            // Not for PostgreSQL, which the feed needs as well.
            let is_store = error.chain().any(<dyn Error>::is::<StoreError>);
            let is_stuck = !is_store && downloads.bytes(&found.name)? <= stored;
            self.failed_exports = if is_stuck { self.failed_exports + 1 } else { 0 };
            if self.failed_exports < MAX_FAILURES {
                return result;
            }
            self.print(Level::WARN, format_args!("{error:#}; {FROM_START}"));
            self.store.unconfirm_chartsets().await?;
            self.store.advance_mirror(None, 0, None).await?;
        }
        self.failed_exports = 0;
        downloads.clear()
    }

    /// Imports an export, and deletes meanwhile what was removed after it. While the mirror starts again, also
    /// what was removed before it, which is still shown here.
    async fn import_export(&self, downloads: &Downloads, found: &Found, state: &MirrorState) -> Result<()> {
        let Found { name, manifest, .. } = found;
        let bytes = size_of(manifest);
        self.print(Level::INFO, format_args!("starts with export {name}, {bytes} bytes"));
        let import = async {
            let export = self.download_all(downloads, found).await?;
            import_verified(self.store, &export, Precedence::Imported, &self.later_removals)
                .await
                .with_context(|| format!("export {name} cannot be imported"))
        };
        let after = if state.restarts > 0 { 0 } else { manifest.sequence };
        let ahead = PageRequest { after, lineage: manifest.lineage, limit: page_limit(state) };
        self.while_looking_ahead(ahead, import).await?;
        // Charts that are not in the export may be there again: the feed has their chartsets.
        let sequence = if manifest.lost_charts > 0 { 0 } else { manifest.sequence };
        Ok(self.store.advance_mirror(None, sequence, manifest.lineage).await?)
    }

    /// Downloads the files of an export.
    async fn download_all(&self, downloads: &Downloads, found: &Found) -> Result<Export> {
        let Found { name, json, manifest } = found;
        let folder = downloads.folder_of(name, json)?;
        for file in &manifest.files {
            self.download(name, file, &folder).await?;
        }
        // The manifest has been verified: it is the one that was written there.
        let export = spawn_blocking(move || Export::open_verified(&folder, &VerifyKeys::default()));
        match export.await? {
            Ok(export) => Ok(export),
            Err(error) => {
                downloads.clear()?;
                Err(error.context(format!("export {name} is downloaded again")))
            }
        }
    }

    /// The newest export, if it can be imported and the feed continues from it. While exports are unavailable
    /// and the feed is not, there is none.
    ///
    /// # Errors
    /// The other index is unreachable, or the export is not signed by one of the keys, if there are any.
    async fn find_export(&self) -> Result<Option<Found>> {
        let (name, json, signature) = match self.newest_manifest().await {
            Ok(Some(newest)) => newest,
            Ok(None) => {
                self.print(Level::INFO, format_args!("no export, {FROM_START}"));
                return Ok(None);
            }
            Err(error) => {
                let Ok(Some(_)) =
                    self.upstream.current_page(PageRequest { after: 0, lineage: None, limit: 1 }).await
                else {
                    return Err(error);
                };
                self.print(Level::WARN, format_args!("{error:#}; {FROM_START}"));
                return Ok(None);
            }
        };
        let keys = &self.options.verify_keys;
        keys.verify(&json, signature.as_deref()).with_context(|| format!("export {name} is refused"))?;
        let manifest = parse_manifest(&json).and_then(|manifest| {
            check_sizes(&manifest, self.options.max_download)?;
            Ok(manifest)
        });
        let manifest = match manifest {
            Ok(manifest) => manifest,
            Err(error) => {
                self.print(Level::WARN, format_args!("export {name}: {error:#}; {FROM_START}"));
                return Ok(None);
            }
        };
        let next = PageRequest { after: manifest.sequence, lineage: manifest.lineage, limit: 1 };
        if self.upstream.current_page(next).await?.is_none() {
            self.print(
                Level::WARN,
                format_args!("export {name} has changes that were lost since; {FROM_START}"),
            );
            return Ok(None);
        }
        Ok(Some(Found { name, json, manifest }))
    }

    /// The newest export, with its manifest and the signature, if it has one and there are keys.
    async fn newest_manifest(&self) -> Result<Option<(ExportName, Vec<u8>, Option<Vec<u8>>)>> {
        let Some(name) = self.upstream.latest_export().await? else { return Ok(None) };
        let json = self.upstream.manifest(&name).await?;
        let is_signed = !self.options.verify_keys.is_empty();
        let signature = if is_signed { self.upstream.signature(&name).await? } else { None };
        Ok(Some((name, json, signature)))
    }
}

fn size_of(manifest: &ExportManifest) -> u64 {
    manifest.files.iter().fold(0, |size, file| size.saturating_add(file.bytes))
}

/// # Errors
/// A file is larger than its content can be, or all together are larger than they may be.
fn check_sizes(manifest: &ExportManifest, max_bytes: u64) -> Result<()> {
    // A header, and the rest of a block of 512 bytes; the archive ends with up to 20 empty blocks.
    let rox = manifest.charts.saturating_mul(MAX_FILE_BYTES + 1024).saturating_add(20 * 512);
    let chartsets = manifest.chartsets.saturating_add(1).saturating_mul(MAX_LINE_BYTES as u64);
    for (name, largest) in [(ExportFile::Rox, rox), (ExportFile::Chartsets, chartsets)] {
        let bytes = manifest.file(name).map_or(0, |file| file.bytes);
        let name = name.name();
        ensure!(bytes <= largest, "{name} has {bytes} bytes, and its content at most {largest}");
    }
    let bytes = size_of(manifest);
    ensure!(bytes <= max_bytes, "it has {bytes} bytes, above DOWNLOADS_MAX_BYTES, which is {max_bytes}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use chart_index_domain::{ExportedFile, FileDigest};

    use super::*;

    #[test]
    fn sizes_are_limited_by_the_content_and_the_setting() {
        let check = |charts, chartsets, rox, lines, max_bytes| {
            let blake3 = FileDigest::from_bytes([0; 32]);
            let file = |name, bytes| ExportedFile { name, bytes, blake3 };
            let manifest = ExportManifest {
                format_version: 1,
                lineage: None,
                sequence: 5,
                exported_at_ms: 1,
                chartsets,
                charts,
                lost_charts: 0,
                contact: None,
                license: None,
                terms: None,
                files: vec![file(ExportFile::Rox, rox), file(ExportFile::Chartsets, lines)],
            };
            check_sizes(&manifest, max_bytes).map_err(|error| error.to_string())
        };
        assert_eq!(check(1, 1, 16 << 20, 4 << 20, 20 << 20), Ok(()));
        assert_eq!(check(0, 0, 1024, 13, 2_000), Ok(()));
        for (charts, chartsets, rox, lines, max_bytes, expected) in [
            (1, 1, 1_000_000_000_000_000, 9, u64::MAX, "rox.tar has 1000000000000000 bytes"),
            (1, 1, 9, 1_000_000_000_000_000, u64::MAX, "chartsets.ndjson.zst has 1000000000000000 bytes"),
            (u64::MAX, u64::MAX, u64::MAX, u64::MAX, 1 << 40, "above DOWNLOADS_MAX_BYTES"),
            (9, 9, 1_500, 600, 2_000, "it has 2100 bytes, above DOWNLOADS_MAX_BYTES, which is 2000"),
        ] {
            let error = check(charts, chartsets, rox, lines, max_bytes).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
