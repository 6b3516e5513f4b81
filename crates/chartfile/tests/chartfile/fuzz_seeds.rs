//! The committed fuzz seeds equal those of the generator and decode without error.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use chart_index_chartfile::archive::read_chart_files;
use chart_index_chartfile::{ChartFormat, decode};

use crate::support::files_below;

#[path = "../../examples/make_seeds/seeds.rs"]
mod seeds;

const FORMATS: [ChartFormat; 4] = [ChartFormat::Osu, ChartFormat::Sm, ChartFormat::Ssc, ChartFormat::Qua];

#[test]
fn committed_seeds_equal_the_generated_ones() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds");
    let written: BTreeMap<PathBuf, Vec<u8>> =
        seeds::files().expect("seeds").into_iter().map(|(path, content)| (path.into(), content)).collect();
    let mut committed = files_below(&root);
    committed.sort();
    assert!(committed.iter().eq(written.keys()), "run the example make_seeds");
    for (path, content) in &written {
        assert!(fs::read(root.join(path)).expect("a readable seed") == *content, "{}", path.display());
    }
    assert!(written.values().map(Vec::len).sum::<usize>() < 200 * 1024);
}

#[test]
fn every_seed_is_decoded() {
    for (path, content) in seeds::files().expect("seeds") {
        if path.starts_with("parse_to_hash/") {
            let decoded = decode(FORMATS[usize::from(content[0])], &content[1..]);
            assert!(decoded.is_ok(), "{path}: {decoded:?}");
        } else if path.starts_with("rox/") {
            let frame = zstd::encode_all(&content[..], 3).expect("memory");
            assert!(chart_index_rox::read(&[b"ROX\0", &frame[..]].concat()).is_ok(), "{path}");
        } else {
            assert!(read_chart_files(Cursor::new(content)).is_ok(), "{path}");
        }
    }
}
