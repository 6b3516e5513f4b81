//! The library reads what this crate writes, and this crate what the library writes.

use chart_index_rox::{Note, RoxChart, RoxError, TimingPoint, read, write};
use proptest::prelude::*;
use rox::codec::{Decoder as _, Encoder as _};
use rox::formats::RoxNativeCodec;

use crate::support::{chart, full_chart, note_type, sample_charts};

/// Clients read with the library, and files that are stored already were written by it.
fn assert_same_archive(mut chart: RoxChart) {
    let file = write(&mut chart).expect("a valid chart");
    let of_library = RoxNativeCodec::encode(&chart).expect("a valid chart");
    assert!(archive(&file) == archive(&of_library), "{chart:?}");
    assert_eq!(read(&file).expect("a valid file"), chart);
    assert_eq!(RoxNativeCodec::decode(&file).expect("a valid file"), chart);
}

/// The archive in a file: the library compresses it at another level.
fn archive(file: &[u8]) -> Vec<u8> {
    zstd::decode_all(&file[4..]).expect("a valid file")
}

#[test]
fn files_of_samples_have_the_archives_of_the_library() {
    sample_charts().into_iter().for_each(assert_same_archive);
    assert_same_archive(full_chart());
    assert_same_archive(RoxChart::new(4));
}

proptest! {
    #[test]
    fn files_have_the_archives_of_the_library(chart in chart()) {
        assert_same_archive(chart);
    }
}

#[test]
fn writing_leaves_the_chart_unchanged() {
    let mut chart = full_chart();
    write(&mut chart).expect("a valid chart");
    assert_eq!(chart, full_chart());
    chart.notes.swap(0, 3);
    let unsorted = chart.clone();
    assert!(write(&mut chart).is_err());
    assert_eq!(chart, unsorted);
}

/// A chart that breaks most rules, with small numbers so that some are kept.
fn any_chart() -> impl Strategy<Value = RoxChart> {
    let note = (-2..6_i64, 0..5_u8, 0..4_u8, -1..3_i64);
    let notes = prop::collection::vec(note, 0..4);
    let timing = prop::collection::vec((-3..3_i64, any::<bool>()), 0..4);
    (0..5_u8, any::<bool>(), notes, timing).prop_map(|(keys, is_coop, notes, timing)| {
        let mut chart = RoxChart::new(keys);
        chart.metadata.is_coop = is_coop;
        let point = |(time_us, is_bpm)| {
            if is_bpm { TimingPoint::bpm(time_us, 60.0) } else { TimingPoint::sv(time_us, 1.0) }
        };
        chart.timing_points = timing.into_iter().map(point).collect();
        let note = |(time_us, column, kind, duration_us)| Note {
            note_type: note_type(kind, duration_us),
            ..Note::tap(time_us, column)
        };
        chart.notes = notes.into_iter().map(note).collect();
        chart
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn charts_are_checked_as_by_the_library(mut chart in any_chart()) {
        let text = |error: RoxError| match error {
            RoxError::Invalid(cause) => cause.to_string(),
            other => panic!("{other}"),
        };
        let expected = RoxNativeCodec::encode(&chart).map_err(|error| error.to_string());
        // Without its check.
        let unchecked = RoxNativeCodec::encode_inner(&chart).expect("a file");
        prop_assert_eq!(read(&unchecked).map_err(text), expected.clone().map(|_| chart.clone()));
        let written = write(&mut chart).map(|file| archive(&file)).map_err(text);
        prop_assert_eq!(written, expected.map(|file| archive(&file)));
    }
}
