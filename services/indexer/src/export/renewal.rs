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

use super::export_folder::exports_in;
use super::{ExportOptions, SigningArguments, export};

/// How often the newest export is compared with the last removal.
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

/// Writes an export whenever the newest one is from before a removal, with its files apart from the ROX files,
/// which take too long. Never returns.
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
        let RenewalArguments { exports_dir, signing: SigningArguments { sign_key }, operator } = arguments;
        let directory = exports_dir?;
        let options = ExportOptions {
            directory,
            rox: false,
            sqlite: false,
            parquet: false,
            keep: None,
            sign_key,
            operator,
        };
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
        let Some((folder, newest)) = newest_export(&self.options.directory)? else { return Ok(()) };
        if !self.store.has_removal_after(newest.lineage, newest.sequence).await? {
            return Ok(());
        }
        let is_signed = folder.join(ExportManifest::SIGNATURE_FILE).exists();
        ensure!(
            self.options.sign_key.is_some() || !is_signed,
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
            fs::remove_dir_all(&earlier).with_context(|| format!("cannot delete {}", earlier.display()))?;
        }
        Ok(())
    }
}

/// The folder of the newest export and its manifest; `None` without exports.
pub(crate) fn newest_export(exports: &Path) -> Result<Option<(PathBuf, ExportManifest)>> {
    let Some(name) = exports_in(exports)?.pop() else { return Ok(None) };
    let folder = exports.join(name.to_string());
    let manifest = read_manifest(&folder)?;
    Ok(Some((folder, manifest)))
}

fn read_manifest(export: &Path) -> Result<ExportManifest> {
    let path = export.join(ExportManifest::FILE);
    let json = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&json).with_context(|| format!("{} is malformed", path.display()))
}
