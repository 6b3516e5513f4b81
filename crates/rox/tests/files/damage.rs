//! Files that are damaged or made to do harm are refused, without a panic.

use chart_index_rox::{Note, RoxError, TimingPoint, read, write};
use proptest::prelude::*;
use proptest::sample::Index;
use rox::codec::Decoder as _;
use rox::formats::RoxNativeCodec;
use zstd::bulk::Compressor;

use crate::support::{archive, file, file_with, full_chart};

/// What is read from damaged bytes is a chart that the library reads as well, and that can be written again.
fn assert_refused_or_valid(file: &[u8]) {
    if let Ok(mut chart) = read(file) {
        assert!(write(&mut chart).is_ok(), "{chart:?}");
        let by_library = RoxNativeCodec::decode(file).expect("a file of the library");
        // With their bits: a number may be none.
        assert_eq!(format!("{chart:?}"), format!("{by_library:?}"));
    }
}

fn full_file() -> Vec<u8> {
    write(&mut full_chart()).expect("a valid chart")
}

#[test]
fn truncated_files_are_refused() {
    let (whole, archive) = (full_file(), archive(full_chart()));
    for length in 0..whole.len() {
        assert!(read(&whole[..length]).is_err(), "{length} bytes");
    }
    for length in 0..archive.len() {
        assert!(read(&file(&archive[..length])).is_err(), "{length} bytes of archive");
    }
}

#[test]
fn damaged_bytes_do_not_cause_panics() {
    let (whole, archive) = (full_file(), archive(full_chart()));
    for bit in 0..8 {
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            assert_refused_or_valid(&bytes);
        }
        for at in 0..archive.len() {
            let mut bytes = archive.clone();
            bytes[at] ^= 1 << bit;
            assert_refused_or_valid(&file(&bytes));
        }
    }
}

#[test]
fn extreme_numbers_do_not_cause_panics() {
    let archive = archive(full_chart());
    for at in (0..archive.len() - 8).step_by(4) {
        for number in [i64::MIN, -1, 0x0100_0000, i64::MAX] {
            for length in [4, 8] {
                let mut bytes = archive.clone();
                bytes[at..at + length].copy_from_slice(&number.to_le_bytes()[..length]);
                assert_refused_or_valid(&file(&bytes));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn repeatedly_damaged_archives_do_not_cause_panics(
        damages in prop::collection::vec((any::<Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = archive(full_chart());
        for (at, value) in damages {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        assert_refused_or_valid(&file(&bytes));
    }
}

#[test]
fn lists_beyond_the_archive_are_refused() {
    let archive = archive(full_chart());
    let chart = archive.len() - 200;
    for list in [164, 176, 184, 192] {
        for length in [3_000_000_u32, u32::MAX] {
            let mut bytes = archive.clone();
            bytes[chart + list + 4..][..4].copy_from_slice(&length.to_le_bytes());
            assert!(matches!(read(&file(&bytes)), Err(RoxError::Archive(_))), "{list}");
        }
    }
}

/// Otherwise a small archive could have a large text many times.
#[test]
fn texts_that_overlap_are_refused() {
    let mut chart = full_chart();
    chart.metadata.tags = vec!["a tag that is not inline".into(); 2];
    let mut bytes = archive(chart);
    let tags = bytes.len() - 200 + 164;
    let distance = |bytes: &[u8], at| i32::from_le_bytes(bytes[at..][..4].try_into().expect("4 bytes"));
    let first = tags.strict_add_signed(distance(&bytes, tags) as isize);
    let same = distance(&bytes, first + 4) - 8;
    bytes[first + 12..][..4].copy_from_slice(&same.to_le_bytes());
    assert!(matches!(read(&file(&bytes)), Err(RoxError::Archive(_))));
}

#[test]
fn times_that_overflow_are_refused() {
    let out_of_range = |file: &[u8]| matches!(read(file), Err(RoxError::TimeOutOfRange));
    let archive = archive(full_chart());
    let notes = archive.windows(8).position(|bytes| bytes == 1_000_000_i64.to_le_bytes());
    // The scroll speed at the same time comes first.
    let notes = notes.expect("the scroll speed") + 16;
    let with_times = |changes: &[(usize, i64)]| {
        let mut bytes = archive.clone();
        for (offset, time_us) in changes {
            bytes[notes + offset..][..8].copy_from_slice(&time_us.to_le_bytes());
        }
        file(&bytes)
    };
    assert!(read(&with_times(&[(0, 1_000_001)])).is_ok());
    assert!(out_of_range(&with_times(&[(0, i64::MAX), (32, 1)])), "the sum of differences");
    assert!(out_of_range(&with_times(&[(48, i64::MAX)])), "start and duration");
    let mut chart = full_chart();
    chart.timing_points[0] = TimingPoint::bpm(i64::MIN, 1.0);
    for notes in [
        vec![Note::tap(-2, 0), Note::tap(i64::MAX, 0)],
        vec![Note::tap(i64::MIN, 0), Note::tap(0, 0)],
        vec![Note::hold(i64::MAX - 1, 2, 0)],
    ] {
        chart.notes = notes;
        assert!(matches!(write(&mut chart), Err(RoxError::TimeOutOfRange)), "{:?}", chart.notes);
    }
    chart.notes = vec![Note::tap(i64::MIN, 0), Note::tap(-1, 0), Note::hold(i64::MAX - 1, 1, 0)];
    let file = write(&mut chart).expect("differences that fit");
    assert_eq!(read(&file).expect("a valid file"), chart);
}

#[test]
fn other_files_are_refused() {
    for bytes in [&b""[..], b"ROX", b"ROX\0", b"ROX\0\0\0\0\0", b"rox\0\x28\xb5\x2f\xfd", b"PK\x03\x04"] {
        assert!(matches!(read(bytes), Err(RoxError::NotRox)), "{bytes:?}");
    }
}

#[test]
fn a_file_is_one_frame() {
    const SKIPPABLE: &[u8] = b"\x50\x2a\x4d\x18\x01\0\0\0\0";
    let whole = full_file();
    let frame = &whole[4..];
    for tail in [&b"\0"[..], frame, SKIPPABLE] {
        let bytes = [&whole, tail].concat();
        assert!(matches!(read(&bytes), Err(RoxError::TrailingBytes)), "{tail:?}");
    }
    let bytes = [b"ROX\0", SKIPPABLE, frame].concat();
    assert!(matches!(read(&bytes), Err(RoxError::NotRox)));
    // Two frames whose contents are the archive together.
    let archive = archive(full_chart());
    let bytes = [file(&archive[..100]), file(&archive[100..])[4..].to_vec()].concat();
    assert!(read(&bytes).is_err());
}

#[test]
fn frames_with_size_or_checksum_are_read() {
    let archive = archive(full_chart());
    let sized = [&b"ROX\0"[..], &zstd::bulk::compress(&archive, 19).expect("memory")].concat();
    assert_eq!(read(&sized).expect("a valid file"), full_chart());
    let mut checked = file_with(&archive, |encoder| encoder.include_checksum(true).expect("a parameter"));
    assert_eq!(read(&checked).expect("a valid file"), full_chart());
    *checked.last_mut().expect("a checksum") ^= 1;
    assert!(matches!(read(&checked), Err(RoxError::Decompress(_))));
}

#[test]
fn frames_that_need_a_dictionary_are_refused() {
    let archive = archive(full_chart());
    let mut compressor = Compressor::with_dictionary(3, &archive).expect("a dictionary");
    let bytes = [&b"ROX\0"[..], &compressor.compress(&archive).expect("memory")].concat();
    assert!(matches!(read(&bytes), Err(RoxError::Decompress(_))));
    // Dictionary 7, in the header of a frame that does not need it.
    let mut bytes = full_file();
    bytes[8] |= 1;
    bytes.insert(10, 7);
    assert!(matches!(read(&bytes), Err(RoxError::Decompress(_))));
}

#[test]
fn windows_larger_than_any_archive_are_refused() {
    let archive = archive(full_chart());
    let with_window = |log| file_with(&archive, |encoder| encoder.window_log(log).expect("a parameter"));
    assert_eq!(read(&with_window(25)).expect("a valid file"), full_chart());
    assert!(matches!(read(&with_window(26)), Err(RoxError::Decompress(_))));
}
