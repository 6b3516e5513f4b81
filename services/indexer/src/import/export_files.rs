//! Reads the files of an export.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use chart_index_domain::limits::MAX_CHART_FILE_BYTES;
use chart_index_domain::{ExportFile, ExportManifest, ExportedFile, FileDigest, NoteHash};

use crate::export::ExportLine;

/// The longest manifest. One has less than 1 KiB.
const MAX_MANIFEST_BYTES: u64 = 64 * 1024;
/// The longest line of the chartsets: above that of the largest chartset, with all of its text escaped.
const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct ExportFiles {
    folder: PathBuf,
    manifest: ExportManifest,
}

impl ExportFiles {
    /// Reads the manifest of the export in this folder.
    ///
    /// # Errors
    /// It is not an export that this program reads, or it has no ROX files.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(ExportManifest::FILE);
        let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let manifest: serde_json::Value = serde_json::from_reader(file.take(MAX_MANIFEST_BYTES))
            .with_context(|| format!("{} is not a manifest", path.display()))?;
        let version = &manifest["formatVersion"];
        ensure!(
            *version == ExportManifest::FORMAT_VERSION,
            "the export has format version {version}; this program reads version {}",
            ExportManifest::FORMAT_VERSION
        );
        let manifest: ExportManifest = serde_json::from_value(manifest)
            .with_context(|| format!("{} is not a manifest", path.display()))?;
        ensure!(manifest.file(ExportFile::Chartsets).is_some(), "the export has no chartsets");
        ensure!(
            manifest.file(ExportFile::Rox).is_some(),
            "the export has no ROX files: an import needs one of `chart-indexer export --rox`"
        );
        Ok(Self { folder: folder.to_owned(), manifest })
    }

    /// Compares each file with the manifest.
    ///
    /// # Errors
    /// A file is missing or differs.
    pub(super) fn verify(self) -> Result<Self> {
        for file in &self.manifest.files {
            self.verify_file(file)?;
        }
        Ok(self)
    }

    fn verify_file(&self, expected: &ExportedFile) -> Result<()> {
        let name = expected.name.name();
        let file = self.open_file(expected.name)?;
        let bytes = file.metadata().with_context(|| format!("cannot read {name}"))?.len();
        ensure!(bytes == expected.bytes, "{name} has {bytes} bytes, but {} in the manifest", expected.bytes);
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

    pub(super) const fn manifest(&self) -> &ExportManifest {
        &self.manifest
    }

    /// Reads the ROX files in the order of their hashes, until `read` returns `false`. Each file has the hash
    /// that its name states, if the export is valid.
    ///
    /// # Errors
    /// The archive is not one that an export has.
    pub(super) fn read_rox_files(&self, mut read: impl FnMut(NoteHash, Vec<u8>) -> bool) -> Result<()> {
        let mut archive = tar::Archive::new(BufReader::new(self.open_file(ExportFile::Rox)?));
        let (mut previous, mut count) = (None, 0);
        for entry in archive.entries().context("cannot read rox.tar")? {
            let mut entry = entry.context("cannot read rox.tar")?;
            let path = entry.path_bytes();
            let hash =
                path.strip_suffix(b".rox").and_then(|hash| std::str::from_utf8(hash).ok()?.parse().ok());
            let Some(hash) = hash else { bail!("rox.tar has a file {}", path.escape_ascii()) };
            ensure!(previous < Some(hash), "rox.tar is not in the order of the hashes at {hash}");
            let size = entry.size();
            ensure!(size <= MAX_CHART_FILE_BYTES, "the ROX file of chart {hash} has {size} bytes");
            let mut bytes = Vec::with_capacity(usize::try_from(size)?);
            entry.read_to_end(&mut bytes).context("cannot read rox.tar")?;
            if !read(hash, bytes) {
                return Ok(());
            }
            (previous, count) = (Some(hash), count + 1);
        }
        let expected = self.manifest.charts;
        ensure!(count == expected, "rox.tar has {count} ROX files, but {expected} in the manifest");
        Ok(())
    }

    /// Reads the chartsets in the order of their ids, until `read` returns `false`.
    ///
    /// # Errors
    /// The file is not one that an export has.
    pub(super) fn read_chartsets(&self, mut read: impl FnMut(ExportLine) -> bool) -> Result<()> {
        let name = ExportFile::Chartsets.name();
        let decoder = zstd::Decoder::new(self.open_file(ExportFile::Chartsets)?)?;
        let mut lines = BufReader::new(decoder);
        let (mut previous, mut count, mut line) = (None, 0, Vec::new());
        loop {
            line.clear();
            let length = lines.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
            if length.with_context(|| format!("cannot read {name}"))? == 0 {
                break;
            }
            let parsed: ExportLine = serde_json::from_slice(&line)
                .with_context(|| format!("line {} of {name} is not a chartset", count + 1))?;
            let id = parsed.chartset.id;
            ensure!(previous < Some(id), "{name} is not in the order of the ids at {id}");
            if !read(parsed) {
                return Ok(());
            }
            (previous, count) = (Some(id), count + 1);
        }
        let expected = self.manifest.chartsets;
        ensure!(count == expected, "{name} has {count} chartsets, but {expected} in the manifest");
        Ok(())
    }

    fn open_file(&self, name: ExportFile) -> Result<File> {
        let path = self.folder.join(name.name());
        File::open(&path).with_context(|| format!("cannot read {}", path.display()))
    }
}
