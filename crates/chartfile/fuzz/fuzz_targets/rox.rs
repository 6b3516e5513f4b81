//! Reads ROX files from arbitrary bytes: as they are, and compressed as the archive of a file.

#![no_main]

use chart_index_rox::{read, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    _ = read(data);
    let frame = zstd::bulk::compress(data, 1).expect("memory");
    if let Ok(mut chart) = read(&[b"ROX\0", &frame[..]].concat()) {
        let again = read(&write(&mut chart).expect("a valid chart")).expect("a valid file");
        // As text: a number may be none.
        assert_eq!(format!("{again:?}"), format!("{chart:?}"));
    }
});
