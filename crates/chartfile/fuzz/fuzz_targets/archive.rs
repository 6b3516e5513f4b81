//! Reads the chart files of an archive from arbitrary bytes.

#![no_main]

use std::io::Cursor;

use chart_index_chartfile::archive::read_chart_files;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    _ = read_chart_files(Cursor::new(data));
});
