//! Finds exports and opens their files.

use std::io::{self, ErrorKind, SeekFrom};
use std::path::PathBuf;

use chart_index_domain::{ExportFile, ExportManifest, ExportName, ExportedFile, ReadError};
use chart_index_http::{ApiError, Resource};
use chart_index_store::Store;
use clap::Args;
use tokio::fs::{self, File};
use tokio::io::{AsyncReadExt, AsyncSeekExt};

/// The longest manifest or signature. One has less than 1 KiB.
const MAX_MANIFEST_BYTES: u64 = 64 * 1024;

/// Where the exports are, if there are any.
#[derive(Debug, Clone, Default, Args)]
pub struct ExportsSettings {
    /// Folder with the exports of `chart-indexer export`, served under `/api/exports`. It may be read-only.
    /// Without it no exports are served.
    #[arg(long, env = "EXPORTS_DIR", value_name = "FOLDER")]
    pub exports_dir: Option<PathBuf>,
}

/// A manifest, as it is stored and as it was read.
pub(crate) struct StoredManifest {
    pub(crate) json: Vec<u8>,
    pub(crate) manifest: ExportManifest,
}

/// The newest export that is not withdrawn, else the newest one.
#[derive(Debug)]
pub struct NewestExport {
    pub(crate) name: ExportName,
    /// Its manifest.
    pub manifest: ExportManifest,
    /// Whether it is withdrawn: from before the last removal.
    pub is_withdrawn: Result<bool, ReadError>,
}

/// A file is not as large as the manifest of its export says.
#[derive(Debug, thiserror::Error)]
#[error("{file} of export {name} has {actual} bytes, but {expected} in the manifest")]
struct OtherSize {
    name: ExportName,
    file: &'static str,
    actual: u64,
    expected: u64,
}

/// A manifest cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the manifest of export {name} is malformed")]
struct MalformedManifest {
    name: ExportName,
    source: serde_json::Error,
}

impl ExportsSettings {
    /// Finds the newest export. One that is withdrawn may have a later name, of a clock that was ahead.
    ///
    /// # Errors
    /// There is no export, or one cannot be read.
    pub async fn find_newest(&self, store: &Store) -> Result<NewestExport, ApiError> {
        let mut newest = None;
        for name in self.names().await?.into_iter().rev() {
            let manifest = match self.read_manifest(&name).await {
                // It was deleted meanwhile.
                Err(ApiError::NotFound(_)) => continue,
                // It may be of an earlier format.
                Err(ApiError::Internal(_)) if newest.is_some() => continue,
                stored => stored?.manifest,
            };
            let is_withdrawn = store.has_removal_after(manifest.lineage, manifest.sequence).await;
            let export = NewestExport { name, manifest, is_withdrawn };
            if !matches!(export.is_withdrawn, Ok(true)) {
                return Ok(export);
            }
            newest.get_or_insert(export);
        }
        newest.ok_or(NOT_FOUND)
    }

    /// The names of all exports, the newest one last.
    async fn names(&self) -> Result<Vec<ExportName>, ApiError> {
        let folder = self.exports_dir.as_ref().ok_or(NOT_FOUND)?;
        let mut entries = fs::read_dir(folder).await.map_err(read_error)?;
        let mut names = Vec::new();
        while let Some(entry) = entries.next_entry().await.map_err(read_error)? {
            // An export that is being written has another name.
            let name = entry.file_name().to_str().and_then(|name| name.parse::<ExportName>().ok());
            let is_folder = fs::metadata(entry.path()).await.map(|metadata| metadata.is_dir());
            // An error is one of its manifest as well.
            names.extend(name.filter(|_| is_folder.unwrap_or(true)));
        }
        names.sort();
        Ok(names)
    }

    /// Reads the manifest of an export.
    ///
    /// # Errors
    /// There is no such export, or its manifest cannot be read.
    pub(crate) async fn read_manifest(&self, name: &ExportName) -> Result<StoredManifest, ApiError> {
        let json = self.read(name, ExportManifest::FILE).await?;
        let manifest = serde_json::from_slice(&json)
            .map_err(|source| ApiError::Internal(MalformedManifest { name: name.clone(), source }.into()))?;
        Ok(StoredManifest { json, manifest })
    }

    /// Reads the signature of the manifest of an export.
    ///
    /// # Errors
    /// The export has none, or it cannot be read.
    pub(crate) async fn read_signature(&self, name: &ExportName) -> Result<Vec<u8>, ApiError> {
        self.read(name, ExportManifest::SIGNATURE_FILE).await
    }

    async fn read(&self, name: &ExportName, file: &'static str) -> Result<Vec<u8>, ApiError> {
        let file = self.open(name, file).await?;
        let mut content = Vec::new();
        file.take(MAX_MANIFEST_BYTES).read_to_end(&mut content).await.map_err(read_error)?;
        Ok(content)
    }

    /// Opens a file of an export at this position.
    ///
    /// # Errors
    /// The file cannot be read, or is not what the manifest says.
    pub(crate) async fn open_at(
        &self,
        name: &ExportName,
        described: &ExportedFile,
        position: u64,
    ) -> Result<File, ApiError> {
        let mut file = self.open(name, described.name.name()).await?;
        let actual = file.metadata().await.map_err(read_error)?.len();
        if actual != described.bytes {
            let (name, file, expected) = (name.clone(), described.name.name(), described.bytes);
            return Err(ApiError::Internal(OtherSize { name, file, actual, expected }.into()));
        }
        file.seek(SeekFrom::Start(position)).await.map_err(read_error)?;
        Ok(file)
    }

    /// Opens a file of an export. Neither name has a separator: nothing outside of the folder can be named.
    async fn open(&self, name: &ExportName, file: &'static str) -> Result<File, ApiError> {
        let folder = self.exports_dir.as_ref().ok_or(NOT_FOUND)?;
        File::open(folder.join(name.to_string()).join(file)).await.map_err(read_error)
    }
}

/// There is no such export or file, or it is not served.
pub(crate) const NOT_FOUND: ApiError = ApiError::NotFound(Resource::Export);

/// Files may be on a network: every error but a missing file may be temporary.
fn read_error(error: io::Error) -> ApiError {
    if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { ApiError::Unavailable(error.into()) }
}

/// The media type of a file.
pub(super) const fn media_type(file: ExportFile) -> &'static str {
    match file {
        ExportFile::Rox => "application/x-tar",
        ExportFile::Parquet => "application/vnd.apache.parquet",
        // All others are compressed. RFC 8878.
        _ => "application/zstd",
    }
}
