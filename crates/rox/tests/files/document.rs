//! docs/formats/rox.md describes the files: a reader that was written from it reads them.

use chart_index_rox::{NoteType, RoxChart, TimingPoint, read, write};
use proptest::prelude::*;

use crate::document_reader::{self, Chart, Note};
use crate::support::{archive, chart, full_chart, sample_charts};

const DOCUMENT: &str = include_str!("../../../../docs/formats/rox.md");

/// The archive and the file of the section "Test vector".
fn vector() -> (Vec<u8>, Vec<u8>) {
    let (_, section) = DOCUMENT.split_once("\n## Test vector\n").expect("the section");
    let mut blocks =
        section.split("```text\n").skip(1).map(|rest| rest.split("```").next().expect("a block"));
    let (fields, file) = (blocks.next().expect("an archive"), blocks.next().expect("a file"));
    let mut archive = Vec::new();
    for line in fields.lines() {
        let mut columns = line.split("  ");
        let offset = usize::from_str_radix(columns.next().expect("an offset"), 16).expect("an offset");
        assert_eq!(offset, archive.len(), "{line}");
        archive.extend(bytes(columns.next().expect("bytes")));
    }
    (archive, file.lines().flat_map(bytes).collect())
}

fn bytes(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "{hex}");
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

#[test]
fn vector_is_the_file_of_its_chart() {
    let (documented, file) = vector();
    assert_eq!(zstd::decode_all(&file[4..]).expect("a zstd frame"), documented);
    let mut chart = read(&file).expect("a valid file");
    assert_eq!(document_reader::chart(&file), documented_form(&chart));
    assert_eq!((chart.metadata.title.as_str(), chart.notes[2].time_us), ("夜明けの航路", 1_750_000));
    assert_eq!(archive(chart.clone()), documented);
    let written = write(&mut chart).expect("a valid chart");
    assert_eq!(zstd::decode_all(&written[4..]).expect("a zstd frame"), documented);
}

#[test]
fn files_of_samples_are_as_documented() {
    for mut chart in sample_charts().into_iter().chain([full_chart(), RoxChart::new(4)]) {
        let file = write(&mut chart).expect("a valid chart");
        assert_eq!(document_reader::chart(&file), documented_form(&read(&file).expect("a valid file")));
    }
}

proptest! {
    #[test]
    fn files_are_as_documented(mut chart in chart()) {
        let file = write(&mut chart).expect("a valid chart");
        prop_assert_eq!(document_reader::chart(&file), documented_form(&chart));
    }
}

fn documented_form(chart: &RoxChart) -> Chart {
    let metadata = &chart.metadata;
    let texts = [&metadata.title, &metadata.artist, &metadata.creator, &metadata.difficulty_name];
    let [title, artist, creator, difficulty] = texts.map(ToString::to_string);
    let optional = [&metadata.background_file, &metadata.source, &metadata.genre, &metadata.language];
    Chart {
        version: chart.version,
        keys: chart.key_count,
        ids: [metadata.chart_id, metadata.chartset_id],
        texts: [title, artist, creator, difficulty, metadata.audio_file.to_string()],
        difficulty_value: metadata.difficulty_value,
        optional_texts: optional.map(|text| text.as_ref().map(ToString::to_string)),
        times_us: [metadata.audio_offset_us, metadata.preview_time_us, metadata.preview_duration_us],
        tags: metadata.tags.iter().map(ToString::to_string).collect(),
        for_two: metadata.is_coop,
        timing_points: chart.timing_points.iter().map(timing_point).collect(),
        notes: chart.notes.iter().map(note).collect(),
        hitsounds: chart.hitsounds.iter().map(|sound| (sound.file.to_string(), sound.volume)).collect(),
    }
}

fn timing_point(point: &TimingPoint) -> (i64, f32, Option<u8>) {
    match *point {
        TimingPoint::Bpm { time_us, bpm, signature } => (time_us, bpm, Some(signature)),
        TimingPoint::Sv { time_us, scroll_speed } => (time_us, scroll_speed, None),
    }
}

fn note(note: &chart_index_rox::Note) -> Note {
    let (kind, duration_us) = match note.note_type {
        NoteType::Tap => (0, None),
        NoteType::Hold { duration_us } => (1, Some(duration_us)),
        NoteType::Burst { duration_us } => (2, Some(duration_us)),
        NoteType::Mine => (3, None),
    };
    Note { time_us: note.time_us, kind, duration_us, hitsound: note.hitsound_index, column: note.column }
}
