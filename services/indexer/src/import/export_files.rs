//! The files of an export.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use chart_index_domain::{ExportFile, ExportManifest, ExportedFile, FileDigest};

/// The longest manifest. One has less than 1 KiB.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 64 * 1024;

/// Opens a file of an export, in a thread that may block.
type Open = dyn Fn(&ExportedFile) -> Result<Box<dyn Read>> + Send + Sync;

/// An export that can be read, with its ROX files.
#[derive(Clone)]
pub(crate) struct Export {
    manifest: ExportManifest,
    open: Arc<Open>,
}

impl Export {
    /// An export with this manifest, and what opens a file of it.
    ///
    /// # Errors
    /// It is not an export that this program reads, or it has no ROX files.
    pub(crate) fn new(
        manifest: &[u8],
        open: impl Fn(&ExportedFile) -> Result<Box<dyn Read>> + Send + Sync + 'static,
    ) -> Result<Self> {
        let manifest: serde_json::Value = serde_json::from_slice(manifest)?;
        let version = &manifest["formatVersion"];
        ensure!(
            *version == ExportManifest::FORMAT_VERSION,
            "the export has format version {version}; this program reads version {}",
            ExportManifest::FORMAT_VERSION
        );
        let manifest: ExportManifest = serde_json::from_value(manifest)?;
        ensure!(manifest.file(ExportFile::Chartsets).is_some(), "the export has no chartsets");
        ensure!(
            manifest.file(ExportFile::Rox).is_some(),
            "the export has no ROX files: an import needs one of `chart-indexer export --rox`"
        );
        Ok(Self { manifest, open: Arc::new(open) })
    }

    /// The export in this folder.
    ///
    /// # Errors
    /// The manifest cannot be read, as in [`new`](Self::new), or a file is missing or differs from the manifest.
    pub(super) fn open_verified(folder: &Path) -> Result<Self> {
        let path = folder.join(ExportManifest::FILE);
        let mut manifest = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(MAX_MANIFEST_BYTES).read_to_end(&mut manifest))
            .with_context(|| format!("cannot read {}", path.display()))?;
        let folder = folder.to_owned();
        let export = Self::new(&manifest, move |file| Ok(Box::new(open_file(&folder, file)?)))
            .with_context(|| format!("{} is not a manifest that can be imported", path.display()))?;
        for file in &export.manifest.files {
            verify_file(file, export.open(file.name)?)?;
        }
        Ok(export)
    }

    pub(crate) const fn manifest(&self) -> &ExportManifest {
        &self.manifest
    }

    /// # Errors
    /// The export does not have the file, or it cannot be read.
    pub(super) fn open(&self, name: ExportFile) -> Result<Box<dyn Read>> {
        let file = self.manifest.file(name).with_context(|| format!("the export has no {}", name.name()))?;
        (self.open)(file)
    }
}

fn open_file(folder: &Path, described: &ExportedFile) -> Result<File> {
    let path = folder.join(described.name.name());
    let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let bytes = file.metadata().with_context(|| format!("cannot read {}", path.display()))?.len();
    let (name, expected) = (described.name.name(), described.bytes);
    ensure!(bytes == expected, "{name} has {bytes} bytes, but {expected} in the manifest");
    Ok(file)
}

fn verify_file(expected: &ExportedFile, file: Box<dyn Read>) -> Result<()> {
    let name = expected.name.name();
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file).with_context(|| format!("cannot read {name}"))?;
    let digest = FileDigest::from_bytes(*hasher.finalize().as_bytes());
    ensure!(
        digest == expected.blake3,
        "{name} is damaged: its BLAKE3 is {digest}, but {} in the manifest",
        expected.blake3
    );
    Ok(())
}
