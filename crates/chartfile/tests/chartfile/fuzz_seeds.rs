//! The fuzz seeds decode without error.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use chart_index_chartfile::archive::read_chart_files;
use chart_index_chartfile::{ChartFormat, decode};

use crate::support::files_below;

const FORMATS: [ChartFormat; 4] = [ChartFormat::Osu, ChartFormat::Sm, ChartFormat::Ssc, ChartFormat::Qua];

#[test]
fn every_seed_is_decoded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds");
    for path in files_below(&root) {
        let content = fs::read(root.join(&path)).expect("a readable seed");
        let name = path.display();
        if path.starts_with("parse_to_hash") {
            let decoded = decode(FORMATS[usize::from(content[0])], &content[1..]);
            assert!(decoded.is_ok(), "{name}: {decoded:?}");
        } else if path.starts_with("rox") {
            let frame = zstd::encode_all(&content[..], 3).expect("memory");
            assert!(chart_index_rox::read(&[b"ROX\0", &frame[..]].concat()).is_ok(), "{name}");
        } else {
            assert!(read_chart_files(Cursor::new(content)).is_ok(), "{name}");
        }
    }
}
