//! The files of an export while they are downloaded.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use chart_index_client::Error;
use chart_index_domain::{ExportManifest, ExportName, ExportedFile};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_RANGE, IF_RANGE, RANGE};

use super::Mirror;
use crate::folder_lock::lock_folder;
use crate::progress;

/// A folder with a folder for the export that is downloaded.
pub(super) struct Downloads {
    folder: PathBuf,
    _lock: File,
}

impl Downloads {
    /// # Errors
    /// The folder cannot be created, or another mirror uses it.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let lock = lock_folder(folder, &format!("another mirror downloads to {}", folder.display()))?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// The folder of an export with this manifest. Deletes those of other exports.
    pub(super) fn folder_of(&self, name: &ExportName, manifest: &[u8]) -> Result<PathBuf> {
        let folder = self.folder.join(name.to_string());
        let path = folder.join(ExportManifest::FILE);
        if fs::read(&path).ok().as_deref() != Some(manifest) {
            self.clear()?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        fs::write(&path, manifest).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(folder)
    }

    /// The size of what is downloaded of an export.
    pub(super) fn bytes(&self, name: &ExportName) -> Result<u64> {
        let folder = self.folder.join(name.to_string());
        if !folder.exists() {
            return Ok(0);
        }
        let sizes = fs::read_dir(&folder)?.map(|entry| entry?.metadata().map(|metadata| metadata.len()));
        sizes.sum::<std::io::Result<u64>>().with_context(|| format!("cannot list {}", folder.display()))
    }

    /// Deletes the folders of all exports.
    pub(super) fn clear(&self) -> Result<()> {
        let list = || format!("cannot list {}", self.folder.display());
        for entry in fs::read_dir(&self.folder).with_context(list)? {
            let entry = entry.with_context(list)?;
            let is_export = entry.file_name().to_str().is_some_and(|name| name.parse::<ExportName>().is_ok());
            if is_export {
                let path = entry.path();
                fs::remove_dir_all(&path).with_context(|| format!("cannot delete {}", path.display()))?;
            }
        }
        Ok(())
    }
}

impl Mirror<'_> {
    /// Downloads what is missing of a file of an export.
    pub(super) async fn download(
        &self,
        export: &ExportName,
        file: &ExportedFile,
        folder: &Path,
    ) -> Result<()> {
        let path = folder.join(file.name.name());
        let download = async {
            let mut output = File::options().create(true).append(true).open(&path)?;
            let stored = output.metadata()?.len();
            if stored == file.bytes {
                return Ok(());
            }
            let request = self.upstream.export_file(export, file.name);
            let request = request.header(RANGE, format!("bytes={stored}-"));
            let request = request.header(IF_RANGE, format!("\"{}\"", file.blake3));
            let mut response = self.upstream.send(request).await?;
            let mut written = match response.status() {
                StatusCode::PARTIAL_CONTENT => {
                    let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
                    let is_rest = range.is_some_and(|range| range.starts_with(&format!("bytes {stored}-")));
                    ensure!(is_rest, "another range than requested: {}", range.unwrap_or_default());
                    stored
                }
                StatusCode::OK => {
                    output.set_len(0)?;
                    0
                }
                _ => return Err(Error::from_response(response).await.into()),
            };
            let progress = progress::bytes(file.bytes);
            progress.set_position(written);
            while let Some(chunk) = response.chunk().await.map_err(reqwest::Error::without_url)? {
                written += chunk.len() as u64;
                ensure!(written <= file.bytes, "it is longer than in the manifest");
                output.write_all(&chunk)?;
                progress.inc(chunk.len() as u64);
            }
            ensure!(written == file.bytes, "it has {written} bytes, but {} in the manifest", file.bytes);
            Ok(())
        };
        download.await.with_context(|| format!("cannot download {} of export {export}", file.name.name()))
    }
}
