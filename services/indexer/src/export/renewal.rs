//! Replaces exports that are no longer served, since something was removed (docs/operations/exports.md).

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chart_index_cli::OperatorArguments;
use chart_index_domain::{ExportFile, ExportManifest};
use chart_index_store::Store;
use chart_index_telemetry::print;
use clap::Args;
use tokio::runtime::Handle;
use tracing::Level;

use super::export_folder::{delete, exports_in};
use super::{ExportOptions, SigningArguments, export};

/// How often exports are compared with the last removal.
const INTERVAL: Duration = Duration::from_secs(10);
/// The pause after an error, such as another export to the folder.
const ERROR_PAUSE: Duration = Duration::from_mins(1);

/// Where exports are replaced.
#[derive(Debug, Args)]
pub(crate) struct RenewalArguments {
    /// Folder of the exports. When something is removed, a new one without ROX files is written. Without this
    /// none is
    #[arg(long, env = "EXPORTS_DIR", value_name = "FOLDER")]
    exports_dir: Option<PathBuf>,
    #[command(flatten)]
    signing: SigningArguments,
    #[command(flatten)]
    operator: OperatorArguments,
}

/// Writes an export whenever all are from before a removal, with the files of the newest one apart from the ROX
/// files, which take too long.
#[derive(Debug)]
pub(crate) struct Renewal {
    store: Store,
    options: ExportOptions,
    /// The last export that was written here.
    written: Option<PathBuf>,
}

impl Renewal {
    /// `None` without a folder.
    pub(crate) fn new(store: Store, arguments: RenewalArguments) -> Option<Self> {
        let RenewalArguments { exports_dir, signing, operator } = arguments;
        let (rox, sqlite, parquet, keep) = (false, false, false, None);
        let options =
            ExportOptions { directory: exports_dir?, rox, sqlite, parquet, keep, signing, operator };
        Some(Self { store, options, written: None })
    }

    /// Never returns.
    pub(crate) async fn follow(mut self) -> Infallible {
        loop {
            tokio::time::sleep(INTERVAL).await;
            if let Err(error) = self.renew().await {
                print(Level::WARN, format_args!("exports: {error:#}"));
                tokio::time::sleep(ERROR_PAUSE).await;
            }
        }
    }

    async fn renew(&mut self) -> Result<()> {
        let newest = newest_export(&self.store, &self.options.directory).await?;
        let Some(NewestExport { folder, manifest: newest, is_withdrawn: true }) = newest else {
            return Ok(());
        };
        let is_signed = folder.join(ExportManifest::SIGNATURE_FILE).exists();
        ensure!(
            self.options.signing.sign_key.is_some() || !is_signed,
            "{} is withdrawn and signed: set EXPORT_SIGN_KEY_FILE, so that the next one is signed as well",
            folder.display()
        );
        self.options.sqlite = newest.file(ExportFile::Catalogue).is_some();
        self.options.parquet = newest.file(ExportFile::Parquet).is_some();
        // It computes for seconds at a time.
        let path =
            tokio::task::block_in_place(|| Handle::current().block_on(export(&self.store, &self.options)))?;
        // Removals would fill the disk otherwise.
        if let Some(earlier) = self.written.replace(path) {
            delete(&earlier)?;
        }
        Ok(())
    }
}

/// The newest export that is not withdrawn, else the newest one.
#[derive(Debug)]
pub(crate) struct NewestExport {
    pub(crate) folder: PathBuf,
    pub(crate) manifest: ExportManifest,
    pub(crate) is_withdrawn: bool,
}

/// Finds the newest export in a folder; `None` without exports. One that is withdrawn may have a later name, of
/// a clock that was ahead.
pub(crate) async fn newest_export(store: &Store, exports: &Path) -> Result<Option<NewestExport>> {
    let mut newest = None;
    for name in exports_in(exports)?.into_iter().rev() {
        let folder = exports.join(name.to_string());
        let manifest = match read_manifest(&folder) {
            // It may be of an earlier format.
            Err(_) if newest.is_some() => continue,
            manifest => manifest?,
        };
        let is_withdrawn = store.has_removal_after(manifest.lineage, manifest.sequence).await?;
        let export = NewestExport { folder, manifest, is_withdrawn };
        if !is_withdrawn {
            return Ok(Some(export));
        }
        newest.get_or_insert(export);
    }
    Ok(newest)
}

fn read_manifest(export: &Path) -> Result<ExportManifest> {
    let path = export.join(ExportManifest::FILE);
    let json = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&json).with_context(|| format!("{} is malformed", path.display()))
}
