//! One chart whose times are whole milliseconds has one note hash, whichever writer wrote it in whichever
//! format and with whichever offset. At 125 BPM a row of a simfile is 10 ms.

use std::fmt::Write as _;

use chart_index_chartfile::ChartFormat;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use rox::codec::Encoder;
use rox::formats::{OsuEncoder, QuaEncoder, SmEncoder, SscEncoder};
use rox::{Note, RoxChart, TimingPoint};

use crate::note_hash::{osu_of, qua_of};
use crate::support::only_chart;

const ROW_MS: i64 = 10;

/// Start, column and end of a note, in rows.
type RowNote = (i64, u8, Option<i64>);

/// Notes that do not overlap, column by column from gaps and lengths.
fn chart() -> impl Strategy<Value = (u8, Vec<RowNote>)> {
    let column = vec((1..400_i64, option::weighted(0.3, 1..400_i64)), 0..10);
    (4_u8..=7, vec(column, 7))
        .prop_map(|(keys, columns)| {
            let mut notes = Vec::new();
            for (column, gaps) in (0..keys).zip(columns) {
                let mut row = 0;
                for (gap, length) in gaps {
                    row += gap;
                    notes.push((row, column, length.map(|length| row + length)));
                    row += length.unwrap_or(0);
                }
            }
            (keys, notes)
        })
        .prop_filter("a chart has notes", |(_, notes)| !notes.is_empty())
}

/// The notes in milliseconds.
fn in_ms(notes: &[RowNote]) -> Vec<RowNote> {
    notes.iter().map(|(row, column, end)| (row * ROW_MS, *column, end.map(|end| end * ROW_MS))).collect()
}

/// The value of `#NOTES`: 192 rows in each measure.
fn measures_of(keys: u8, notes: &[RowNote]) -> String {
    let last = notes.iter().map(|(row, _, end)| end.unwrap_or(*row)).max().expect("a note");
    let mut rows =
        vec![vec!['0'; usize::from(keys)]; (usize::try_from(last).expect("a row") / 192 + 1) * 192];
    for (row, column, end) in notes {
        let mut set =
            |row: i64, cell| rows[usize::try_from(row).expect("a row")][usize::from(*column)] = cell;
        set(*row, if end.is_some() { '2' } else { '1' });
        if let Some(end) = end {
            set(*end, '3');
        }
    }
    let row = |cells: &Vec<char>| cells.iter().chain(&['\n']).collect::<String>();
    rows.chunks(192)
        .map(|measure| measure.iter().map(row).collect::<String>())
        .collect::<Vec<_>>()
        .join(",\n")
}

fn step_type(keys: u8) -> &'static str {
    ["dance-single", "pump-single", "dance-solo", "kb7-single"][usize::from(keys) - 4]
}

fn sm_of(keys: u8, notes: &[RowNote], offset: &str) -> String {
    let (step_type, measures) = (step_type(keys), measures_of(keys, notes));
    format!("#OFFSET:{offset};\n#BPMS:0=125;\n#NOTES:\n{step_type}:\n:\nHard:\n5:\n0,0,0,0,0:\n{measures};\n")
}

fn ssc_of(keys: u8, notes: &[RowNote], offset: &str) -> String {
    let mut text = format!("#VERSION:0.83;\n#OFFSET:{offset};\n#BPMS:0=125;\n#NOTEDATA:;\n");
    _ = write!(text, "#STEPSTYPE:{};\n#DIFFICULTY:Hard;\n#NOTES:\n", step_type(keys));
    text + &measures_of(keys, notes) + ";\n"
}

fn model_of(keys: u8, notes: &[RowNote]) -> RoxChart {
    let mut chart = RoxChart::new(keys);
    chart.timing_points.push(TimingPoint::bpm(0, 125.0));
    chart.notes = in_ms(notes)
        .into_iter()
        .map(|(start, column, end)| match end {
            Some(end) => Note::hold(start * 1000, (end - start) * 1000, column),
            None => Note::tap(start * 1000, column),
        })
        .collect();
    chart.notes.sort_by_key(|note| (note.time_us, note.column));
    chart
}

/// The chart in all formats that have its key count, by all writers, with their names.
fn files(
    keys: u8,
    notes: &[RowNote],
    offset: &str,
    shift_ms: i64,
) -> Vec<(&'static str, ChartFormat, String)> {
    let (model, ms) = (model_of(keys, notes), in_ms(notes));
    let written = |encode: fn(&RoxChart) -> rox::RoxResult<String>| encode(&model).expect("a valid chart");
    let mut files = vec![
        (".osu, moved", ChartFormat::Osu, osu_of(keys, &ms, shift_ms)),
        (".sm", ChartFormat::Sm, sm_of(keys, notes, offset)),
        (".ssc", ChartFormat::Ssc, ssc_of(keys, notes, offset)),
        (".osu of ROX", ChartFormat::Osu, written(OsuEncoder::encode_to_string)),
        (".ssc of ROX", ChartFormat::Ssc, written(SscEncoder::encode_to_string)),
    ];
    if matches!(keys, 4 | 7) {
        files.push((".qua", ChartFormat::Qua, qua_of(keys, &ms)));
        // The writer has 4 keys in every file, and times with decimals, which the game refuses.
        let qua = written(QuaEncoder::encode_to_string).replace(".0\n", "\n");
        let qua = qua.replace("Mode: Keys4\n", &format!("Mode: Keys{keys}\n"));
        files.push((".qua of ROX", ChartFormat::Qua, qua));
    }
    if matches!(keys, 4 | 6) {
        files.push((".sm of ROX", ChartFormat::Sm, written(SmEncoder::encode_to_string)));
    }
    files
}

proptest! {
    #[test]
    fn every_writer_gives_one_note_hash(
        (keys, notes) in chart(),
        offset in prop_oneof![Just("0"), Just("-0.123"), Just("1.0005"), Just("-86.4000001")],
        shift_ms in -1_500_i64..100_000,
    ) {
        let expected = only_chart(ChartFormat::Osu, &osu_of(keys, &in_ms(&notes), 0)).hash;
        for (writer, format, text) in files(keys, &notes, offset, shift_ms) {
            prop_assert_eq!(only_chart(format, &text).hash, expected, "{}\n{}", writer, text);
        }
    }
}
