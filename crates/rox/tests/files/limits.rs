//! Sizes and counts at and above their limits.

use chart_index_rox::{
    Hitsound, MAX_NOTES, MAX_TIMING_POINTS, Note, RoxChart, RoxError, TimingPoint, read, write,
};
use rox::codec::Encoder as _;
use rox::formats::RoxNativeCodec;

use crate::support::file_with;

fn largest_chart() -> RoxChart {
    let mut chart = RoxChart::new(4);
    let times = || 0_i64..;
    chart.timing_points =
        times().take(MAX_TIMING_POINTS).map(|time_us| TimingPoint::bpm(time_us, 60.0)).collect();
    chart.notes = times().take(MAX_NOTES).map(|time_us| Note::tap(time_us, 0)).collect();
    chart.hitsounds = vec![Hitsound::new("a"); 65_536];
    chart.metadata.tags = vec!["a".into(); 100_000];
    chart
}

#[test]
fn largest_chart_is_written_and_read() {
    let mut chart = largest_chart();
    let file = write(&mut chart).expect("a valid chart");
    assert!(read(&file).expect("a valid file") == chart);
}

#[test]
fn longer_lists_are_refused() {
    type Add = fn(&mut RoxChart);
    let longer: [(&str, Add); 4] = [
        ("500000 notes", |chart| chart.notes.push(Note::mine(i64::MAX, 3))),
        ("500000 timing points", |chart| chart.timing_points.push(TimingPoint::sv(i64::MAX, 1.0))),
        ("65536 hitsounds", |chart| chart.hitsounds.push(Hitsound::new("a"))),
        ("100000 tags", |chart| chart.metadata.tags.push("a".into())),
    ];
    for (what, add) in longer {
        let mut chart = largest_chart();
        add(&mut chart);
        let by_library = RoxNativeCodec::encode(&chart).expect("a file of the library");
        for outcome in [read(&by_library).map(drop), write(&mut chart).map(drop)] {
            let refusal = outcome.expect_err(what).to_string();
            assert_eq!(refusal, format!("the ROX file has more than {what}"));
        }
    }
}

#[test]
fn larger_archives_are_refused() {
    let mut chart = RoxChart::new(4);
    chart.metadata.title = "a".repeat(32 * 1024 * 1024).into();
    let by_library = RoxNativeCodec::encode(&chart).expect("a file of the library");
    for outcome in [read(&by_library).map(drop), write(&mut chart).map(drop)] {
        assert_eq!(limit(outcome), ("bytes of archive", 33_554_432));
    }
    chart.metadata.title.truncate(32 * 1024 * 1024 - 200);
    let file = write(&mut chart).expect("the largest archive");
    assert!(read(&file).expect("a valid file") == chart);
}

#[test]
fn zstd_bombs_are_refused() {
    const BYTES: usize = 64 * 1024 * 1024;
    let bomb = vec![0; BYTES];
    let stated = |state| {
        file_with(&bomb, move |encoder| {
            encoder.set_pledged_src_size(Some(BYTES as u64)).expect("a size");
            encoder.include_contentsize(state).expect("a parameter");
            encoder.window_log(20).expect("a parameter");
        })
    };
    for file in [stated(false), stated(true)] {
        assert!(file.len() < 10_000);
        assert_eq!(limit(read(&file).map(drop)), ("bytes of archive", 33_554_432));
    }
}

/// The text is a random sequence of letters, in which nothing repeats.
#[test]
fn larger_files_are_refused() {
    assert_eq!(limit(read(&vec![0; 16 * 1024 * 1024 + 1]).map(drop)), ("bytes", 16_777_216));
    let mut chart = RoxChart::new(4);
    let mut state = 1_u64;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + u8::try_from((state >> 32) % 90).expect("small"))
    };
    chart.metadata.title = (0..25_000_000).map(letter).collect::<String>().into();
    assert_eq!(limit(write(&mut chart).map(drop)), ("bytes", 16_777_216));
}

fn limit(outcome: Result<(), RoxError>) -> (&'static str, usize) {
    match outcome {
        Err(RoxError::LimitExceeded { what, limit }) => (what, limit),
        other => panic!("{other:?}"),
    }
}
