//! Fills a mirror from an export.

use anyhow::{Context, Result, ensure};
use chart_index_domain::{ExportManifest, ExportName};
use chart_index_store::{MirrorState, Precedence};
use tokio::task::spawn_blocking;
use tracing::Level;

use super::Mirror;
use super::downloads::Downloads;
use crate::import::{Export, import_verified, parse_manifest};
use crate::signature::VerifyKeys;

impl Mirror<'_> {
    /// Imports the newest export, if there is one that can be followed, and sets the position after it or to 0.
    pub(super) async fn bootstrap(&mut self, state: &MirrorState) -> Result<()> {
        ensure!(state.sequence.is_none(), "the mirror has a position");
        // An earlier attempt may have imported another export.
        self.store.unconfirm_chartsets().await?;
        let Some((name, json, manifest)) = self.find_export().await? else {
            return Ok(self.store.advance_mirror(0).await?);
        };
        let downloads = Downloads::open(&self.options.downloads)?;
        let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
        self.print(Level::INFO, format_args!("starts with export {name}, {bytes} bytes"));
        let export = self.download_all(&downloads, &name, &json, &manifest).await?;
        import_verified(self.store, &export, Precedence::Imported)
            .await
            .with_context(|| format!("export {name} cannot be imported"))?;
        self.store.advance_mirror(manifest.sequence).await?;
        downloads.clear()
    }

    /// Downloads the files of an export.
    async fn download_all(
        &self,
        downloads: &Downloads,
        name: &ExportName,
        json: &[u8],
        manifest: &ExportManifest,
    ) -> Result<Export> {
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

    /// The manifest of an export, with a signature by one of the keys if there are any.
    async fn signed_manifest(&self, name: &ExportName) -> Result<Vec<u8>> {
        let json = self.upstream.manifest(name).await?;
        let keys = &self.options.verify_keys;
        if !keys.is_empty() {
            let signature = self.upstream.signature(name).await?;
            keys.verify(&json, signature.as_deref()).with_context(|| format!("export {name} is refused"))?;
        }
        Ok(json)
    }

    /// The newest export, with its manifest, if it can be imported and the feed continues from it.
    async fn find_export(&self) -> Result<Option<(ExportName, Vec<u8>, ExportManifest)>> {
        const FROM_START: &str = "the mirror starts with the first change";
        let Some(name) = self.upstream.latest_export().await? else {
            self.print(Level::INFO, format_args!("no export, {FROM_START}"));
            return Ok(None);
        };
        let json = self.signed_manifest(&name).await?;
        let manifest = match parse_manifest(&json) {
            Ok(manifest) => manifest,
            Err(error) => {
                self.print(Level::WARN, format_args!("export {name}: {error:#}; {FROM_START}"));
                return Ok(None);
            }
        };
        if self.upstream.current_page(manifest.sequence, 1).await?.is_none() {
            self.print(
                Level::WARN,
                format_args!("export {name} has changes that were lost since; {FROM_START}"),
            );
            return Ok(None);
        }
        Ok(Some((name, json, manifest)))
    }
}
