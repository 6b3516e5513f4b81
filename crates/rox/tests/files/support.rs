//! Charts to read and write: generated ones, and those of the samples.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use chart_index_rox::{Hitsound, Metadata, Note, NoteType, RoxChart, TimingPoint, write};
use proptest::option;
use proptest::prelude::*;
use rox::codec::Decoder as _;
use rox::formats::{OsuDecoder, QuaDecoder, SmDecoder, SscDecoder};
use zstd::stream::write::Encoder;

/// The files below `samples` that are charts, as the library reads them.
pub(crate) fn sample_charts() -> Vec<RoxChart> {
    let mut charts = Vec::new();
    for path in files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples")) {
        let decode = match path.extension().and_then(|extension| extension.to_str()) {
            Some("osu") => OsuDecoder::decode,
            Some("qua") => QuaDecoder::decode,
            Some("sm") => SmDecoder::decode,
            Some("ssc") => SscDecoder::decode,
            _ => continue,
        };
        charts.extend(decode(&fs::read(path).expect("a readable sample")));
    }
    assert!(charts.len() > 10, "{} charts", charts.len());
    charts
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).expect("a readable folder").map(|entry| entry.expect("an entry").path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// A chart with every kind of field, text and note.
pub(crate) fn full_chart() -> RoxChart {
    let mut chart = RoxChart::new(4);
    chart.metadata.chart_id = Some(7);
    chart.metadata.title = "a title that is not inline".into();
    chart.metadata.background_file = Some("bg.jpg".into());
    chart.metadata.difficulty_value = Some(2.5);
    chart.metadata.tags = vec!["a".into(), "a tag that is not inline".into()];
    chart.timing_points = vec![TimingPoint::bpm(0, 180.0), TimingPoint::sv(1_000_000, 1.5)];
    chart.notes = vec![
        Note::tap(1_000_000, 0),
        Note::hold(1_000_000, 500_000, 2),
        Note::burst(1_200_000, 300_000, 3),
        Note::mine(1_600_000, 3),
    ];
    chart.notes[1].hitsound_index = Some(0);
    chart.hitsounds = vec![Hitsound::with_volume("kick.wav", 70)];
    chart
}

/// The archive of a chart.
pub(crate) fn archive(mut chart: RoxChart) -> Vec<u8> {
    let file = write(&mut chart).expect("a valid chart");
    zstd::decode_all(&file[4..]).expect("a zstd frame")
}

/// A file with this archive, whatever it contains.
pub(crate) fn file(archive: &[u8]) -> Vec<u8> {
    file_with(archive, |_| ())
}

/// A file with this archive, whose compression is configured.
pub(crate) fn file_with(archive: &[u8], configure: impl Fn(&mut Encoder<'_, Vec<u8>>)) -> Vec<u8> {
    let mut encoder = Encoder::new(b"ROX\0".to_vec(), 1).expect("an encoder");
    configure(&mut encoder);
    encoder.write_all(archive).expect("memory");
    encoder.finish().expect("memory")
}

/// A valid chart.
pub(crate) fn chart() -> impl Strategy<Value = RoxChart> {
    let timing = (-1_000_000_i64..2_000_000, prop::collection::vec(timing_point(), 0..20));
    let hitsounds = prop::collection::vec((".{0,12}", option::of(0..=u8::MAX)), 0..4);
    let steps = prop::collection::vec(step(), 0..60);
    (1..=18_u8, metadata(), timing, steps, hitsounds).prop_map(
        |(keys, metadata, (start_us, timing), steps, hitsounds)| {
            let mut chart = RoxChart::new(keys);
            chart.metadata = metadata;
            chart.metadata.is_coop &= keys % 2 == 0;
            chart.timing_points = vec![TimingPoint::bpm(start_us, 120.0)];
            chart.timing_points.extend(timing);
            chart.timing_points[1..].sort_by_key(TimingPoint::time_us);
            chart.notes = notes(keys, start_us, &steps);
            let hitsounds = hitsounds.into_iter();
            chart.hitsounds =
                hitsounds.map(|(name, volume)| Hitsound { file: name.into(), volume }).collect();
            chart
        },
    )
}

fn timing_point() -> impl Strategy<Value = TimingPoint> {
    let value = prop::num::f32::NORMAL | prop::num::f32::ZERO | prop::num::f32::INFINITE;
    (2_000_000_i64..9_000_000, value, option::of(any::<u8>())).prop_map(|(time_us, value, signature)| {
        match signature {
            Some(signature) => TimingPoint::Bpm { time_us, bpm: value, signature },
            None => TimingPoint::sv(time_us, value),
        }
    })
}

type Step = (i64, u8, u8, i64, Option<u16>);

/// Time since the note before, column, kind, duration, hitsound.
fn step() -> impl Strategy<Value = Step> {
    (0..1_000_000_i64, any::<u8>(), 0..4_u8, 1..3_000_000_i64, option::of(any::<u16>()))
}

/// The notes of the steps, without those that begin inside a note.
fn notes(keys: u8, start_us: i64, steps: &[Step]) -> Vec<Note> {
    let (mut notes, mut time_us) = (Vec::new(), start_us);
    let mut free_us = vec![i64::MIN; keys.into()];
    for &(gap_us, column, kind, duration_us, hitsound_index) in steps {
        let (column, note_type) = (column % keys, note_type(kind, duration_us));
        time_us += gap_us;
        let note = Note { time_us, note_type, hitsound_index, column };
        let free_us = &mut free_us[usize::from(column)];
        if time_us >= *free_us {
            *free_us = note.end_time_us();
            notes.push(note);
        }
    }
    notes
}

pub(crate) fn note_type(kind: u8, duration_us: i64) -> NoteType {
    match kind {
        0 => NoteType::Tap,
        1 => NoteType::Hold { duration_us },
        2 => NoteType::Burst { duration_us },
        _ => NoteType::Mine,
    }
}

fn metadata() -> impl Strategy<Value = Metadata> {
    let ids = (option::of(any::<u64>()), option::of(any::<u64>()), option::of(0.0_f32..99.0));
    let texts = prop::collection::vec(".{0,100}", 5);
    let optional = prop::collection::vec(option::of(".{0,12}"), 4);
    let times = (any::<i64>(), any::<i64>(), any::<i64>());
    let tags = prop::collection::vec(".{0,12}", 0..6);
    (ids, texts, optional, times, tags, any::<bool>()).prop_map(
        |(ids, texts, optional, times, tags, is_coop)| Metadata {
            chart_id: ids.0,
            chartset_id: ids.1,
            title: (&texts[0]).into(),
            artist: (&texts[1]).into(),
            creator: (&texts[2]).into(),
            difficulty_name: (&texts[3]).into(),
            difficulty_value: ids.2,
            audio_file: (&texts[4]).into(),
            background_file: optional[0].as_ref().map(Into::into),
            audio_offset_us: times.0,
            preview_time_us: times.1,
            preview_duration_us: times.2,
            source: optional[1].as_ref().map(Into::into),
            genre: optional[2].as_ref().map(Into::into),
            language: optional[3].as_ref().map(Into::into),
            tags: tags.into_iter().map(Into::into).collect(),
            is_coop,
        },
    )
}
