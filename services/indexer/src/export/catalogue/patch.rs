//! Patches: the difference between a file and that of an earlier export.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Result;
use chart_index_domain::ExportFile;
use zstd::zstd_safe::CParameter;

use crate::export::output::{Output, create};

/// There is no patch of a larger file: the earlier file, and a window of the size of both, are in memory.
const MAX_BYTES: u64 = 256 << 20;
/// The level of the compression. With its own tables, level 9 gives patches that are twice as large, and level
/// 19 takes twenty times as long.
const LEVEL: i32 = 12;
/// The tables in which matches are found have an entry for each byte of a file, up to 64 and 128 MiB.
const MAX_HASH_LOG: u32 = 24;

/// Writes `file` as a patch of `earlier`, which is compressed, into a folder: a zstd frame with that file as
/// its prefix. It has the checksum of `file`, by which zstd finds out that it was applied to another one.
pub(super) fn write(earlier: &Path, file: &Path, folder: &Path, name: ExportFile) -> Result<Option<Output>> {
    let (mut prefix, mut file) = (Vec::new(), File::open(file)?);
    zstd::Decoder::new(File::open(earlier)?)?.take(MAX_BYTES + 1).read_to_end(&mut prefix)?;
    let bytes = file.metadata()?.len();
    let longest = bytes.max(prefix.len() as u64);
    if longest > MAX_BYTES {
        return Ok(None);
    }
    let mut encoder = zstd::Encoder::with_ref_prefix(create(folder, name)?, LEVEL, &prefix)?;
    // The window reaches from the end of the file to the start of the earlier one.
    encoder.window_log(longest.ilog2() + 2)?;
    let hash_log = longest.ilog2().clamp(17, MAX_HASH_LOG);
    encoder.set_parameter(CParameter::HashLog(hash_log))?;
    encoder.set_parameter(CParameter::ChainLog(hash_log + 1))?;
    encoder.long_distance_matching(true)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(Some(bytes))?;
    std::io::copy(&mut file, &mut encoder)?;
    Ok(Some(encoder.finish()?))
}
