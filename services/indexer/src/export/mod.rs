//! `chart-indexer export`: writes the catalogue to files, from one snapshot.
//!
//! An export is a folder, named by its time and sequence, with a manifest and the files that it describes. It
//! is written under a temporary name and renamed at the end: a folder with the name of an export is complete.
//! Rows are read in pages, so the memory does not depend on the size of the catalogue.

mod catalogue;
mod digest_writer;
mod export_folder;
mod output;
mod renewal;

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use chart_index_cli::{OperatorArguments, SecretParser};
use chart_index_domain::{ChartsetRecord, ExportFile, ExportManifest, ExportName, ExportedFile, NoteHash};
use chart_index_store::{ExportSnapshot, Store};
use chart_index_telemetry::print;
use clap::Args;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use tracing::Level;

use self::catalogue::CatalogueFiles;
use self::export_folder::ExportFolder;
use self::output::{COMPRESSION_LEVEL, create, finish, not_written};
use crate::clock::now_ms;
use crate::progress;
use crate::report::plural;
use crate::signature::SignKey;
use crate::stdout;

pub(crate) use self::renewal::{NewestExport, Renewal, RenewalArguments, newest_export};

/// The export may contain what was removed, and `chart-index` would not serve it.
const REMOVED_MEANWHILE: &str =
    "an entry was removed while the export was written: no export was written, run the command again";

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    /// Folder of all exports. It is created if it does not exist
    pub(crate) directory: PathBuf,
    /// Export the ROX files as well, as a tar archive. An import needs them
    #[arg(long)]
    pub(crate) rox: bool,
    /// Export the catalogue as a SQLite file as well
    #[arg(long)]
    pub(crate) sqlite: bool,
    /// Export the charts of the catalogue as a Parquet file as well
    #[arg(long)]
    pub(crate) parquet: bool,
    /// Delete all exports in the folder but the newest ones, this one included. If charts were left out,
    /// all stay
    #[arg(long, value_name = "COUNT")]
    pub(crate) keep: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) signing: SigningArguments,
    #[command(flatten)]
    pub(crate) operator: OperatorArguments,
}

/// How exports are signed.
#[derive(Debug, Args)]
pub(crate) struct SigningArguments {
    /// Sign the manifest with the secret key in this file, which `minisign -G -W` has written
    #[arg(
        long,
        env = "EXPORT_SIGN_KEY_FILE",
        value_name = "FILE",
        value_parser = SecretParser::<SignKey>::in_file()
    )]
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

/// Exports the catalogue, and prints and returns the path of the export. With ROX files, a chart whose file is
/// lost is left out and printed.
///
/// # Errors
/// The store failed, a file cannot be written, or an entry was removed meanwhile: no export is visible then. Or
/// charts were left out.
pub(crate) async fn export(store: &Store, options: &ExportOptions) -> Result<PathBuf> {
    let folder = ExportFolder::create(&options.directory)?;
    let mut snapshot = store.export_snapshot().await?;
    let (manifest, lost) = write_all(&mut snapshot, folder.path(), options).await?;
    let name = name_of(&manifest)?;
    write_manifest(&manifest, &name, options.signing.sign_key.as_ref(), folder.path())?;
    ensure!(!store.has_removal_after(manifest.lineage, manifest.sequence).await?, REMOVED_MEANWHILE);
    let path = folder.publish(&name)?;
    let (chartsets, charts) = (plural(manifest.chartsets, "chartset"), plural(manifest.charts, "chart"));
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    stdout::print(format_args!("{}: {chartsets}, {charts}, {bytes} bytes", path.display()))?;
    if lost.is_empty() {
        if let Some(count) = options.keep {
            folder.keep(&name, count)?;
        }
        return Ok(path);
    }
    for hash in &lost {
        print(Level::ERROR, format_args!("chart {hash} was left out: its ROX file is lost or damaged"));
    }
    bail!(
        "{} left out: `chart-indexer verify` says which files are lost",
        plural(manifest.lost_charts, "chart")
    )
}

/// Writes the files of an export. Returns the charts that are not in it, as well.
async fn write_all(
    snapshot: &mut ExportSnapshot,
    folder: &Path,
    options: &ExportOptions,
) -> Result<(ExportManifest, HashSet<NoteHash>)> {
    let (size, exported_at_ms) = (snapshot.size(), now_ms());
    let progress = progress::items(size.chartsets + if options.rox { size.charts } else { 0 });
    let mut catalogue = CatalogueFiles::create(folder, options.sqlite, options.parquet)?;
    let (mut rox, mut lost) = (None, HashSet::new());
    if options.rox {
        // First, since the records of the chartsets have no chart without a file.
        rox = Some(write_rox_files(snapshot, folder, &mut lost, &progress).await?);
    }
    let (file, chartsets) = write_chartsets(snapshot, folder, &lost, &mut catalogue, &progress).await?;
    let mut files = vec![file];
    files.extend(catalogue.finish()?);
    files.extend(rox);
    drop(progress);
    let lost_charts = lost.len() as u64;
    let manifest = ExportManifest {
        format_version: ExportManifest::FORMAT_VERSION,
        lineage: Some(size.lineage),
        sequence: size.sequence,
        exported_at_ms,
        chartsets,
        charts: size.charts - lost_charts,
        lost_charts,
        contact: options.operator.contact.clone(),
        license: options.operator.data_license.as_ref().map(ToString::to_string),
        terms: options.operator.terms_url.as_ref().map(ToString::to_string),
        files,
    };
    Ok((manifest, lost))
}

/// Names the export by the time of its snapshot and its sequence.
fn name_of(manifest: &ExportManifest) -> Result<ExportName> {
    let time = OffsetDateTime::from_unix_timestamp(manifest.exported_at_ms / 1000)?;
    let ((year, month, day), (hour, minute, second)) = (time.to_calendar_date(), time.to_hms());
    let (month, sequence) = (u8::from(month), manifest.sequence);
    Ok(format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z-{sequence}").parse()?)
}

/// Writes the shown chartsets in the order of their ids, one JSON object a line, and to the files of the
/// catalogue, without the charts that are lost. Returns their number as well.
async fn write_chartsets(
    snapshot: &mut ExportSnapshot,
    folder: &Path,
    lost: &HashSet<NoteHash>,
    catalogue: &mut CatalogueFiles,
    progress: &ProgressBar,
) -> Result<(ExportedFile, u64)> {
    let name = ExportFile::Chartsets;
    let mut lines =
        zstd::Encoder::new(create(folder, name)?, COMPRESSION_LEVEL).context("cannot compress")?;
    let (mut after, mut chartsets) = (None, 0);
    loop {
        let page = snapshot.records_after(after).await?;
        let Some(end) = page.last() else { break };
        after = Some(end.record.id);
        let count = page.len() as u64;
        for mut checked in page {
            checked.record.charts.retain(|chart| !lost.contains(&chart.hash));
            if checked.record.charts.is_empty() {
                continue;
            }
            chartsets += 1;
            catalogue.insert(&checked.record)?;
            let line = ExportLine { checked_at_ms: checked.checked_at_ms, chartset: checked.record };
            let line = serde_json::to_string(&line)?;
            writeln!(lines, "{line}").with_context(|| not_written(name))?;
        }
        progress.inc(count);
    }
    let file = lines.finish().with_context(|| not_written(name))?;
    Ok((finish(file, name)?, chartsets))
}

/// Writes the ROX files of the known charts in the order of their hashes, and adds those without one to `lost`.
async fn write_rox_files(
    snapshot: &mut ExportSnapshot,
    folder: &Path,
    lost: &mut HashSet<NoteHash>,
    progress: &ProgressBar,
) -> Result<ExportedFile> {
    let name = ExportFile::Rox;
    let mut archive = tar::Builder::new(create(folder, name)?);
    let mut after = None;
    loop {
        let page = snapshot.rox_files_after(after).await?;
        let Some((end, _)) = page.last() else { break };
        after = Some(*end);
        for (hash, bytes) in &page {
            let Some(bytes) = bytes else {
                lost.insert(*hash);
                continue;
            };
            // The same bytes for the same files: no owner, no time.
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            let path = format!("{hash}.rox");
            archive.append_data(&mut header, path, &bytes[..]).with_context(|| not_written(name))?;
        }
        progress.inc(page.len() as u64);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_the_time_of_the_snapshot() {
        let manifest = ExportManifest {
            format_version: 1,
            lineage: None,
            sequence: 12345,
            exported_at_ms: 1_795_371_649_999,
            chartsets: 0,
            charts: 0,
            lost_charts: 0,
            contact: None,
            license: None,
            terms: None,
            files: Vec::new(),
        };
        assert_eq!(name_of(&manifest).unwrap().to_string(), "20261122T182049Z-12345");
    }
}
