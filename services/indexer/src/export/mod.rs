//! `chart-indexer export`: writes the catalogue to files, from one snapshot.
//!
//! An increment has the changes after an earlier export instead.
//!
//! An export is a folder, named by its time and sequence, with a manifest and the files that it describes. It
//! is written under a temporary name and renamed at the end: a folder with the name of an export is complete.
//! Rows are read in pages, so the memory does not depend on the size of the catalogue.

mod catalogue;
mod changes;
mod digest_writer;
mod export_folder;
mod output;

use std::fs::{self, File};
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use chart_index_domain::{ChartsetRecord, ExportFile, ExportManifest, ExportName, ExportedFile};
use chart_index_store::{ExportSnapshot, Store};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use self::catalogue::CatalogueFiles;
pub(crate) use self::changes::{ChangeLine, ChangeName};
use self::export_folder::ExportFolder;
use self::output::{Lines, create, finish, not_written};
use crate::clock::now_ms;
use crate::report::{Progress, plural};
use crate::signature::SignKey;

/// The export may contain what was removed, and `chart-index` would not serve it.
const REMOVED_MEANWHILE: &str =
    "an entry was removed while the export was written: no export was written, run the command again";

#[derive(Debug)]
pub(crate) struct ExportOptions {
    /// The folder of all exports.
    pub(crate) directory: PathBuf,
    pub(crate) content: Content,
    /// The key that signs the manifest.
    pub(crate) sign_key: Option<SignKey>,
}

/// What to export.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content {
    /// All chartsets, and all ROX files, the files for SQLite and the Parquet file if wanted.
    Complete { rox: bool, sqlite: bool, parquet: bool },
    /// What has changed after this sequence.
    Since(u64),
    /// What has changed since the newest export in the folder.
    Increment,
}

/// A chartset in the file `chartsets.ndjson.zst`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExportLine {
    /// When the chartset was last checked.
    pub(crate) checked_at_ms: i64,
    pub(crate) chartset: ChartsetRecord,
}

/// Exports the catalogue, and prints the path of the export. An increment without changes is not written.
///
/// # Errors
/// The store failed, a file cannot be written, or an entry was removed meanwhile; or changes of an increment
/// were lost, or there is no earlier export. No export is visible then.
pub(crate) async fn export(store: &Store, options: &ExportOptions) -> Result<()> {
    let folder = ExportFolder::create(&options.directory)?;
    let since = match options.content {
        Content::Complete { .. } => None,
        Content::Since(sequence) => Some(sequence),
        Content::Increment => Some(newest(&options.directory)?.sequence()),
    };
    // So that removals before it have numbers. A standby refuses this.
    let _ = store.assign_sequences().await;
    let mut snapshot = store.export_snapshot().await?;
    let manifest = match (since, options.content) {
        (Some(since), _) => write_increment(&mut snapshot, folder.path(), since).await?,
        (None, content) => {
            let earlier = names(&options.directory)?.filter(|name| name.since().is_none()).max();
            let earlier = earlier.map(|name| (options.directory.join(name.to_string()), name));
            write_all(&mut snapshot, folder.path(), content, earlier).await?
        }
    };
    if let Some(since) = since
        && manifest.changes == Some(0)
    {
        writeln!(std::io::stdout(), "no change after {since}, no increment was written")?;
        return Ok(());
    }
    let name = name_of(&manifest)?;
    write_manifest(&manifest, &name, options.sign_key.as_ref(), folder.path())?;
    ensure!(!store.has_removal_after(manifest.lineage, manifest.sequence).await?, REMOVED_MEANWHILE);
    let path = folder.publish(&name)?;
    let changes = manifest.changes.map(|changes| plural(changes, "change") + ", ").unwrap_or_default();
    let (chartsets, charts) = (plural(manifest.chartsets, "chartset"), plural(manifest.charts, "chart"));
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    writeln!(std::io::stdout(), "{}: {changes}{chartsets}, {charts}, {bytes} bytes", path.display())?;
    Ok(())
}

/// The name of the newest export in this folder, which may be an increment.
fn newest(exports: &Path) -> Result<ExportName> {
    let none = || format!("there is no export in {}: write a complete one first", exports.display());
    names(exports)?.max().with_context(none)
}

/// The names of the exports in this folder.
fn names(exports: &Path) -> Result<impl Iterator<Item = ExportName>> {
    let entries = fs::read_dir(exports).with_context(|| format!("cannot list {}", exports.display()))?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()))
}

/// Writes the files of a complete export. `earlier` is the one before it, with its folder.
async fn write_all(
    snapshot: &mut ExportSnapshot,
    folder: &Path,
    content: Content,
    earlier: Option<(PathBuf, ExportName)>,
) -> Result<ExportManifest> {
    let (size, exported_at_ms) = (snapshot.size(), now_ms());
    let rox = matches!(content, Content::Complete { rox: true, .. });
    let sqlite = matches!(content, Content::Complete { sqlite: true, .. });
    let parquet = matches!(content, Content::Complete { parquet: true, .. });
    let mut progress = Progress::new(size.chartsets + if rox { size.charts } else { 0 });
    let mut catalogue = CatalogueFiles::create(folder, sqlite, parquet)?;
    let mut files = vec![write_chartsets(snapshot, folder, &mut catalogue, &mut progress).await?];
    let (earlier, name) = earlier.unzip();
    files.extend(catalogue.finish(earlier.as_deref())?);
    let is_patch =
        |file: &ExportedFile| matches!(file.name, ExportFile::CataloguePatch | ExportFile::HashesPatch);
    let patches_from = name.filter(|_| files.iter().any(is_patch));
    if rox {
        files.push(write_rox_files(snapshot, folder, None, &mut progress).await?.0);
    }
    progress.finish();
    Ok(ExportManifest {
        format_version: ExportManifest::FORMAT_VERSION,
        since: None,
        lineage: Some(size.lineage),
        sequence: size.sequence,
        exported_at_ms,
        changes: None,
        chartsets: size.chartsets,
        charts: size.charts,
        patches_from,
        files,
    })
}

async fn write_increment(snapshot: &mut ExportSnapshot, folder: &Path, since: u64) -> Result<ExportManifest> {
    let exported_at_ms = now_ms();
    let lines = Lines::create(folder, ExportFile::Changes)?;
    let written = changes::write(snapshot, lines, since).await?;
    let mut progress = Progress::new(written.changes);
    let changed = since + 1..=written.sequence;
    let (rox, charts) = write_rox_files(snapshot, folder, Some(changed), &mut progress).await?;
    progress.finish();
    Ok(ExportManifest {
        format_version: ExportManifest::FORMAT_VERSION,
        since: Some(since),
        lineage: None,
        sequence: written.sequence,
        exported_at_ms,
        changes: Some(written.changes),
        chartsets: written.chartsets,
        charts,
        patches_from: None,
        files: vec![written.file, rox],
    })
}

/// Names the export by the time of its snapshot and its sequence.
fn name_of(manifest: &ExportManifest) -> Result<ExportName> {
    let time = OffsetDateTime::from_unix_timestamp(manifest.exported_at_ms / 1000)?;
    let ((year, month, day), (hour, minute, second)) = (time.to_calendar_date(), time.to_hms());
    let (month, sequence) = (u8::from(month), manifest.sequence);
    let since = manifest.since.map(|since| format!("{since}-")).unwrap_or_default();
    Ok(format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z-{since}{sequence}").parse()?)
}

/// Writes the shown chartsets in the order of their ids, one JSON object a line, and to the files of the
/// catalogue.
async fn write_chartsets(
    snapshot: &mut ExportSnapshot,
    folder: &Path,
    catalogue: &mut CatalogueFiles,
    progress: &mut Progress,
) -> Result<ExportedFile> {
    let mut lines = Lines::create(folder, ExportFile::Chartsets)?;
    let mut after = None;
    loop {
        let page = snapshot.records_after(after).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.record.id);
        let count = page.len() as u64;
        for checked in page {
            catalogue.insert(&checked.record)?;
            lines.write(&ExportLine { checked_at_ms: checked.checked_at_ms, chartset: checked.record })?;
        }
        progress.advance_by(count);
    }
    lines.finish()
}

/// Writes the ROX files of the known charts in the order of their hashes, or of those whose last change is in a
/// range. Returns their number as well.
async fn write_rox_files(
    snapshot: &mut ExportSnapshot,
    folder: &Path,
    changed: Option<RangeInclusive<u64>>,
    progress: &mut Progress,
) -> Result<(ExportedFile, u64)> {
    let name = ExportFile::Rox;
    let mut archive = tar::Builder::new(create(folder, name)?);
    let (mut after, mut count) = (None, 0);
    loop {
        let page = snapshot.rox_files_after(after, changed.clone()).await?;
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
        count += page.len() as u64;
        progress.advance_by(page.len() as u64);
    }
    let file = archive.into_inner().with_context(|| not_written(name))?;
    Ok((finish(file, name)?, count))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_the_time_of_the_snapshot() {
        let manifest = ExportManifest {
            format_version: 1,
            since: None,
            lineage: None,
            sequence: 12345,
            exported_at_ms: 1_795_371_649_999,
            changes: None,
            chartsets: 0,
            charts: 0,
            patches_from: None,
            files: Vec::new(),
        };
        assert_eq!(name_of(&manifest).unwrap().to_string(), "20261122T182049Z-12345");
        let increment = ExportManifest { since: Some(7), ..manifest };
        assert_eq!(name_of(&increment).unwrap().to_string(), "20261122T182049Z-7-12345");
    }
}
