//! Reads the ROX files of an export.

use std::io::{BufReader, Read};

use anyhow::{Context, Result, bail, ensure};
use chart_index_chartfile::MAX_FILE_BYTES;
use chart_index_domain::NoteHash;

/// Reads the ROX files in an archive in the order of their hashes, until `read` returns `false`. Each file has
/// the hash that its name states, if the export is valid. Nothing but one file is in memory.
///
/// # Errors
/// The archive is not one that an export with this number of charts has.
pub(super) fn read_rox_files(
    archive: impl Read,
    charts: u64,
    mut read: impl FnMut(NoteHash, Vec<u8>) -> bool,
) -> Result<()> {
    let mut archive = tar::Archive::new(BufReader::new(archive));
    let (mut previous, mut count) = (None, 0);
    // An export has no entries of extensions, whose size is not limited.
    for entry in archive.entries().context("cannot read rox.tar")?.raw(true) {
        let mut entry = entry.context("cannot read rox.tar")?;
        let path = entry.path_bytes();
        let hash = path.strip_suffix(b".rox").and_then(|hash| std::str::from_utf8(hash).ok()?.parse().ok());
        let Some(hash) = hash.filter(|_| entry.header().entry_type().is_file()) else {
            bail!("rox.tar has a file {}", String::from_utf8_lossy(&path))
        };
        ensure!(previous < Some(hash), "rox.tar is not in the order of the hashes at {hash}");
        ensure!(count < charts, "rox.tar has more ROX files than the {charts} in the manifest");
        let size = entry.size();
        ensure!(
            size <= MAX_FILE_BYTES,
            "the ROX file of chart {hash} has {size} bytes, above the limit of {MAX_FILE_BYTES}"
        );
        let mut bytes = Vec::with_capacity(usize::try_from(size)?);
        entry.read_to_end(&mut bytes).context("cannot read rox.tar")?;
        ensure!(bytes.len() as u64 == size, "rox.tar ends within the ROX file of chart {hash}");
        if !read(hash, bytes) {
            return Ok(());
        }
        (previous, count) = (Some(hash), count + 1);
    }
    ensure!(count == charts, "rox.tar has {count} ROX files, but {charts} in the manifest");
    // What follows the last file is part of the digest.
    std::io::copy(&mut archive.into_inner(), &mut std::io::sink()).context("cannot read rox.tar")?;
    Ok(())
}
