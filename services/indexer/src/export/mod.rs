//! `chart-indexer export`: writes the catalogue to files, from one snapshot.
//!
//! An export is a folder, named by its time and sequence, with a manifest and the files that it describes. It
//! is written under a temporary name and renamed at the end: a folder with the name of an export is complete.
//! Rows are read in pages, so the memory does not depend on the size of the catalogue.

mod digest_writer;
mod export_folder;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use chart_index_domain::{ChartsetRecord, ExportFile, ExportManifest, ExportName, ExportedFile};
use chart_index_store::{ExportSnapshot, Store};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use self::digest_writer::DigestWriter;
use self::export_folder::ExportFolder;
use crate::clock::now_ms;
use crate::report::{Progress, plural};
use crate::signature::SignKey;

/// The level of the compression: 48 MB of generated chartsets take 8.8 MB at level 3, 8.0 MB at this one, and
/// 7.8 MB at level 12, which takes twice as long.
const COMPRESSION_LEVEL: i32 = 9;

/// The export may contain what was removed, and `chart-index` would not serve it.
const REMOVED_MEANWHILE: &str =
    "an entry was removed while the export was written: no export was written, run the command again";

#[derive(Debug)]
pub(crate) struct ExportOptions {
    /// The folder of all exports.
    pub(crate) directory: PathBuf,
    /// Whether to export the ROX files.
    pub(crate) rox: bool,
    /// The key that signs the manifest.
    pub(crate) sign_key: Option<SignKey>,
}

/// A chartset in the file `chartsets.ndjson.zst`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExportLine {
    /// When the chartset was last checked.
    pub(crate) checked_at_ms: i64,
    pub(crate) chartset: ChartsetRecord,
}

/// Exports the catalogue, and prints the path of the export.
///
/// # Errors
/// The store failed, a file cannot be written, or an entry was removed meanwhile. No export is visible then.
pub(crate) async fn export(store: &Store, options: &ExportOptions) -> Result<()> {
    let folder = ExportFolder::create(&options.directory)?;
    // So that removals before it have numbers. A standby refuses this.
    let _ = store.assign_sequences().await;
    let mut snapshot = store.export_snapshot().await?;
    let (size, exported_at_ms) = (snapshot.size(), now_ms());
    let mut progress = Progress::new(size.chartsets + if options.rox { size.charts } else { 0 });
    let mut files = vec![write_chartsets(&mut snapshot, folder.path(), &mut progress).await?];
    if options.rox {
        files.push(write_rox_files(&mut snapshot, folder.path(), &mut progress).await?);
    }
    progress.finish();
    let manifest = ExportManifest {
        format_version: ExportManifest::FORMAT_VERSION,
        sequence: size.sequence,
        exported_at_ms,
        chartsets: size.chartsets,
        charts: size.charts,
        files,
    };
    let name = name_of(&manifest)?;
    write_manifest(&manifest, &name, options.sign_key.as_ref(), folder.path())?;
    ensure!(!store.has_removal_after(size.sequence).await?, REMOVED_MEANWHILE);
    let path = folder.publish(&name)?;
    let summary = format!("{}, {}", plural(size.chartsets, "chartset"), plural(size.charts, "chart"));
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    writeln!(std::io::stdout(), "{}: {summary}, {bytes} bytes", path.display())?;
    Ok(())
}

/// Names the export by the time of its snapshot and its sequence.
fn name_of(manifest: &ExportManifest) -> Result<ExportName> {
    let time = OffsetDateTime::from_unix_timestamp(manifest.exported_at_ms / 1000)?;
    let ((year, month, day), (hour, minute, second)) = (time.to_calendar_date(), time.to_hms());
    let (month, sequence) = (u8::from(month), manifest.sequence);
    Ok(format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z-{sequence}").parse()?)
}

/// Writes the shown chartsets in the order of their ids, one JSON object a line.
async fn write_chartsets(
    snapshot: &mut ExportSnapshot,
    folder: &Path,
    progress: &mut Progress,
) -> Result<ExportedFile> {
    let name = ExportFile::Chartsets;
    let file = create(folder, name)?;
    let mut encoder = zstd::Encoder::new(file, COMPRESSION_LEVEL).context("cannot compress")?;
    let mut after = None;
    loop {
        let page = snapshot.records_after(after).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.record.id);
        let count = page.len() as u64;
        for checked in page {
            let line = ExportLine { checked_at_ms: checked.checked_at_ms, chartset: checked.record };
            let mut line = serde_json::to_vec(&line)?;
            line.push(b'\n');
            encoder.write_all(&line).with_context(|| not_written(name))?;
        }
        progress.advance_by(count);
    }
    let file = encoder.finish().with_context(|| not_written(name))?;
    finish(file, name)
}

/// Writes the ROX files of the known charts in the order of their hashes.
async fn write_rox_files(
    snapshot: &mut ExportSnapshot,
    folder: &Path,
    progress: &mut Progress,
) -> Result<ExportedFile> {
    let name = ExportFile::Rox;
    let mut archive = tar::Builder::new(create(folder, name)?);
    let mut after = None;
    loop {
        let page = snapshot.rox_files_after(after).await?;
        let Some((last, _)) = page.last() else { break };
        after = Some(*last);
        for (hash, bytes) in &page {
            // The same bytes for the same files: no owner, no time.
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            let path = format!("{hash}.rox");
            archive.append_data(&mut header, path, &bytes[..]).with_context(|| not_written(name))?;
        }
        progress.advance_by(page.len() as u64);
    }
    let file = archive.into_inner().with_context(|| not_written(name))?;
    finish(file, name)
}

/// Writes the manifest, and its signature if there is a key.
fn write_manifest(
    manifest: &ExportManifest,
    name: &ExportName,
    sign_key: Option<&SignKey>,
    folder: &Path,
) -> Result<()> {
    let mut json = serde_json::to_vec_pretty(manifest)?;
    json.push(b'\n');
    let write = |name: &str, content: &[u8]| {
        let mut file = File::create(folder.join(name))?;
        file.write_all(content)?;
        file.sync_all()
    };
    write(ExportManifest::FILE, &json).context("cannot write the manifest")?;
    if let Some(key) = sign_key {
        let signature = key.sign(&json, &format!("export {name}"))?;
        write(ExportManifest::SIGNATURE_FILE, signature.as_bytes()).context("cannot write the signature")?;
    }
    Ok(())
}

type Output = DigestWriter<BufWriter<File>>;

fn create(folder: &Path, name: ExportFile) -> Result<Output> {
    let file = File::create(folder.join(name.name())).with_context(|| not_written(name))?;
    Ok(DigestWriter::new(BufWriter::new(file)))
}

/// Syncs a file to disk, and describes it for the manifest.
fn finish(file: Output, name: ExportFile) -> Result<ExportedFile> {
    let (writer, bytes, blake3) = file.finish();
    let file = writer.into_inner().map_err(std::io::IntoInnerError::into_error);
    file.and_then(|file| file.sync_all()).with_context(|| not_written(name))?;
    Ok(ExportedFile { name, bytes, blake3 })
}

fn not_written(name: ExportFile) -> String {
    format!("cannot write {}", name.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_the_time_of_the_snapshot() {
        let manifest = ExportManifest {
            format_version: 1,
            sequence: 12345,
            exported_at_ms: 1_795_371_649_999,
            chartsets: 0,
            charts: 0,
            files: Vec::new(),
        };
        assert_eq!(name_of(&manifest).unwrap().to_string(), "20261122T182049Z-12345");
    }
}
