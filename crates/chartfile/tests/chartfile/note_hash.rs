//! What changes the note hash, and what does not.

use std::fmt::Write as _;

use chart_index_chartfile::{ChartFormat, decode};
use chart_index_domain::NoteHash;
use chart_index_rox::{CanonicalNotes, TimedNote};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::support::{only_chart, osu};

fn hash_of(keys: u8, notes: &[TimedNote]) -> NoteHash {
    CanonicalNotes::new(keys, notes).expect("a valid chart").hash()
}

/// Notes in `keys` columns, at any microsecond of an hour. Long notes have at least a millisecond.
fn notes(keys: u8) -> impl Strategy<Value = Vec<TimedNote>> {
    let note = (0..3_600_000_000_i64, 0..keys, option::weighted(0.3, 1_000..10_000_000_i64)).prop_map(
        |(start_us, column, length_us)| TimedNote {
            start_us,
            column,
            end_us: length_us.map(|length_us| start_us + length_us),
        },
    );
    vec(note, 1..60)
}

fn chart() -> impl Strategy<Value = (u8, Vec<TimedNote>)> {
    (4_u8..=7).prop_flat_map(|keys| (Just(keys), notes(keys)))
}

/// A chart that every format can represent: times in whole milliseconds, without overlapping notes. Generated
/// column by column from gaps and lengths.
fn playable() -> impl Strategy<Value = (u8, Vec<(i64, u8, Option<i64>)>)> {
    let column = vec((2..2_000_i64, option::weighted(0.3, 1..3_000_i64)), 0..12);
    (prop_oneof![Just(4_u8), Just(7)], vec(column, 7))
        .prop_map(|(keys, columns)| {
            let mut notes = Vec::new();
            for (column, gaps) in (0..keys).zip(columns) {
                let mut time = 0;
                for (gap, length) in gaps {
                    time += gap;
                    notes.push((time, column, length.map(|length| time + length)));
                    time += length.unwrap_or(0);
                }
            }
            (keys, notes)
        })
        .prop_filter("a chart has notes", |(_, notes)| !notes.is_empty())
}

pub(crate) fn osu_of(keys: u8, notes: &[(i64, u8, Option<i64>)], shift_ms: i64) -> String {
    let mut objects = String::new();
    for (start, column, end) in notes {
        let x = (2 * i64::from(*column) + 1) * 256 / i64::from(keys);
        let start = start + shift_ms;
        _ = match end {
            Some(end) => writeln!(objects, "{x},192,{start},128,0,{}:0:0:0:0:", end + shift_ms),
            None => writeln!(objects, "{x},192,{start},1,0,0:0:0:0:"),
        };
    }
    osu(keys, "0,500,4,1,0,100,1,0", &objects)
}

pub(crate) fn qua_of(keys: u8, notes: &[(i64, u8, Option<i64>)]) -> String {
    let mut text = format!("Mode: Keys{keys}\nTimingPoints:\n- StartTime: 0\n  Bpm: 120\nHitObjects:\n");
    for (start, column, end) in notes {
        _ = writeln!(text, "- StartTime: {start}\n  Lane: {}", column + 1);
        if let Some(end) = end {
            _ = writeln!(text, "  EndTime: {end}");
        }
    }
    text
}

proptest! {
    #[test]
    fn order_of_notes_does_not_matter(
        ((keys, notes), order) in chart().prop_flat_map(|chart| {
            let order = Just((0..chart.1.len()).collect::<Vec<_>>()).prop_shuffle();
            (Just(chart), order)
        })
    ) {
        let shuffled: Vec<TimedNote> = order.iter().map(|&index| notes[index]).collect();
        prop_assert_eq!(hash_of(keys, &notes), hash_of(keys, &shuffled));
    }

    #[test]
    fn shifting_the_whole_chart_does_not_matter(
        (keys, notes) in chart(),
        shift_us in -1_000_000_000_000_i64..1_000_000_000_000,
    ) {
        let moved: Vec<TimedNote> = notes
            .iter()
            .map(|note| TimedNote {
                start_us: note.start_us + shift_us,
                end_us: note.end_us.map(|end_us| end_us + shift_us),
                ..*note
            })
            .collect();
        prop_assert_eq!(hash_of(keys, &notes), hash_of(keys, &moved));
    }

    #[test]
    fn less_than_half_a_millisecond_does_not_matter(
        whole in vec((0..600_000_i64, 0..4_u8), 1..40),
        jitter in vec(-500_i64..500, 40),
    ) {
        let at = |time_ms: i64, column, jitter_us| TimedNote {
            start_us: (time_ms + 1) * 1000 + jitter_us,
            column,
            end_us: None,
        };
        // Times are relative to the first note, so it is not moved.
        let first = TimedNote { start_us: 0, column: 0, end_us: None };
        let exact: Vec<TimedNote> =
            [first].into_iter().chain(whole.iter().map(|&(time, column)| at(time, column, 0))).collect();
        let jittered: Vec<TimedNote> = [first]
            .into_iter()
            .chain(whole.iter().zip(&jitter).map(|(&(time, column), &jitter)| at(time, column, jitter)))
            .collect();
        prop_assert_eq!(hash_of(4, &exact), hash_of(4, &jittered));
    }

    #[test]
    fn moving_one_note_by_a_millisecond_matters(
        (keys, notes) in chart(), index in any::<Index>(), by_us in 1_000_i64..5_000_000,
    ) {
        let mut changed = notes.clone();
        let note = index.get_mut(&mut changed[..]);
        note.start_us += by_us;
        note.end_us = note.end_us.map(|end_us| end_us + by_us);
        let note = *note;
        // Moving the only note changes nothing, and a moved note may become equal to another one.
        prop_assume!(canonical(keys, &notes) != canonical(keys, &changed));
        prop_assume!(notes.len() > 1 && !notes.contains(&note));
        prop_assert_ne!(hash_of(keys, &notes), hash_of(keys, &changed));
    }

    #[test]
    fn column_kind_end_and_key_count_matter((keys, notes) in chart(), index in any::<Index>()) {
        let hash = hash_of(keys, &notes);
        let changes: [fn(&mut TimedNote, u8); 3] = [
            |note, keys| note.column = (note.column + 1) % keys,
            |note, _| note.end_us = if note.end_us.is_some() { None } else { Some(note.start_us + 50_000) },
            |note, _| note.end_us = Some(note.end_us.unwrap_or(note.start_us) + 1_000),
        ];
        for change in changes {
            let mut changed = notes.clone();
            change(index.get_mut(&mut changed[..]), keys);
            prop_assert_ne!(hash, hash_of(keys, &changed));
        }
        let other_keys = if keys == 7 { None } else { Some(keys + 1) };
        if let Some(other_keys) = other_keys {
            prop_assert_ne!(hash, hash_of(other_keys, &notes));
        }
    }

    #[test]
    fn format_offset_and_file_order_do_not_matter(
        (keys, notes) in playable(), shift_ms in -1_500_i64..100_000,
    ) {
        let reversed: Vec<_> = notes.iter().rev().copied().collect();
        let expected = only_chart(ChartFormat::Osu, &osu_of(keys, &notes, 0));
        for (format, text) in [
            (ChartFormat::Osu, osu_of(keys, &notes, shift_ms)),
            (ChartFormat::Osu, osu_of(keys, &reversed, 0)),
            (ChartFormat::Qua, qua_of(keys, &notes)),
            (ChartFormat::Qua, qua_of(keys, &reversed)),
        ] {
            let chart = only_chart(format, &text);
            prop_assert_eq!(chart.hash, expected.hash, "{}", text);
            prop_assert_eq!(chart.numbers, expected.numbers, "{}", text);
        }
    }

    #[test]
    fn mines_rolls_and_metadata_do_not_matter(
        rows in vec("[01]{4}", 16), extra in vec("[0M]{4}", 16), title in "[a-zA-Z ]{0,20}",
    ) {
        let merged: Vec<String> = rows
            .iter()
            .zip(&extra)
            .map(|(row, extra)| {
                row.chars().zip(extra.chars()).map(|(note, mine)| if note == '0' { mine } else { note }).collect()
            })
            .collect();
        let file = |title: &str, rows: &[String], tail: &str| {
            format!(
                "#TITLE:{title};\n#BPMS:0=140;\n#NOTES:\ndance-single:\n:\nHard:\n5:\n0,0,0,0,0:\n1000\n0000\n0000\n\
                 0000\n,\n{}\n,\n{tail};\n",
                rows.join("\n")
            )
        };
        let plain = decode(ChartFormat::Sm, file("plain", &rows, "0000").as_bytes()).expect("a chart");
        let with_roll = file(&title, &merged, "4000\n0000\n3000\n0000");
        let other = decode(ChartFormat::Sm, with_roll.as_bytes()).expect("a chart");
        prop_assert_eq!(plain.charts[0].hash, other.charts[0].hash);
        prop_assert_eq!(plain.charts[0].numbers, other.charts[0].numbers);
    }
}

fn canonical(keys: u8, notes: &[TimedNote]) -> Vec<u8> {
    CanonicalNotes::new(keys, notes).expect("a valid chart").canonical_bytes()
}
