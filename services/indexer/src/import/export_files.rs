//! The files of an export.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use chart_index_domain::{ExportFile, ExportManifest, ExportedFile, FileDigest};

use crate::signature::{MAX_SIGNATURE_BYTES, VerifyKeys};

/// The longest manifest. One has less than 1 KiB.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 64 * 1024;

/// The files that an import reads. Others are neither downloaded nor verified.
const IMPORTED: [ExportFile; 2] = [ExportFile::Chartsets, ExportFile::Rox];

/// A folder with an export that can be imported.
#[derive(Debug, Clone)]
pub(crate) struct Export {
    folder: PathBuf,
    manifest: ExportManifest,
}

impl Export {
    /// The export in this folder, whose imported files are those of its manifest, which one of the keys has
    /// signed.
    ///
    /// # Errors
    /// The manifest has no such signature, cannot be read, is not one that this program reads, or has no ROX
    /// files; or a file is missing or differs from the manifest.
    pub(crate) fn open_verified(folder: &Path, keys: &VerifyKeys) -> Result<Self> {
        let path = folder.join(ExportManifest::FILE);
        let manifest = read(&path, MAX_MANIFEST_BYTES)?;
        if !keys.is_empty() {
            let signature = folder.join(ExportManifest::SIGNATURE_FILE);
            let signature = signature.exists().then(|| read(&signature, MAX_SIGNATURE_BYTES)).transpose()?;
            keys.verify(&manifest, signature.as_deref())?;
        }
        let manifest = parse_manifest(&manifest)
            .with_context(|| format!("{} is not a manifest that can be imported", path.display()))?;
        let export = Self { folder: folder.to_owned(), manifest };
        for file in &export.manifest.files {
            verify_file(file, export.open(file.name)?)?;
        }
        Ok(export)
    }

    pub(crate) const fn manifest(&self) -> &ExportManifest {
        &self.manifest
    }

    /// # Errors
    /// The export does not have the file, it cannot be read, or it does not have the size in the manifest.
    pub(crate) fn open(&self, name: ExportFile) -> Result<File> {
        let described =
            self.manifest.file(name).with_context(|| format!("the export has no {}", name.name()))?;
        let path = self.folder.join(name.name());
        let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let bytes = file.metadata().with_context(|| format!("cannot read {}", path.display()))?.len();
        let (name, expected) = (name.name(), described.bytes);
        ensure!(bytes == expected, "{name} has {bytes} bytes, but {expected} in the manifest");
        Ok(file)
    }
}

/// Reads a file, up to a number of bytes.
fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)
        .and_then(|file| file.take(limit).read_to_end(&mut content))
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(content)
}

/// Reads a manifest, without the files that an import does not read.
///
/// # Errors
/// The manifest is not of an export that this program imports, or the export has no ROX files.
pub(crate) fn parse_manifest(manifest: &[u8]) -> Result<ExportManifest> {
    let mut manifest: serde_json::Value = serde_json::from_slice(manifest)?;
    let version = &manifest["formatVersion"];
    ensure!(
        *version == ExportManifest::FORMAT_VERSION,
        "the export has format version {version}; this program reads version {}",
        ExportManifest::FORMAT_VERSION
    );
    if let Some(files) = manifest.get_mut("files").and_then(serde_json::Value::as_array_mut) {
        files.retain(|file| IMPORTED.iter().any(|imported| file["name"] == imported.name()));
    }
    let manifest: ExportManifest = serde_json::from_value(manifest)?;
    ensure!(manifest.file(ExportFile::Chartsets).is_some(), "the export has no chartsets");
    ensure!(
        manifest.file(ExportFile::Rox).is_some(),
        "the export has no ROX files: an import needs one of `chart-indexer export --rox`"
    );
    Ok(manifest)
}

fn verify_file(expected: &ExportedFile, file: File) -> Result<()> {
    let name = expected.name.name();
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file).with_context(|| format!("cannot read {name}"))?;
    let digest = FileDigest::from(hasher.finalize());
    ensure!(
        digest == expected.blake3,
        "{name} is damaged: its BLAKE3 is {digest}, but {} in the manifest",
        expected.blake3
    );
    Ok(())
}
