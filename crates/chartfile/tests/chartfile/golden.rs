//! The published test vectors of the note hash, `golden/note_hash_v1.json`.

use chart_index_chartfile::note_hash::{CanonicalNotes, TimedNote};
use chart_index_domain::NOTE_HASH_VERSION;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Golden {
    note_hash_version: u32,
    vectors: Vec<Vector>,
    refused: Vec<Refused>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Vector {
    name: String,
    keys: u8,
    notes: Vec<Note>,
    canonical_hex: String,
    hash: String,
}

#[derive(Deserialize)]
struct Refused {
    name: String,
    keys: u8,
    notes: Vec<Note>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Note {
    start_us: i64,
    column: u8,
    end_us: Option<i64>,
}

fn golden() -> Golden {
    let golden: Golden =
        serde_json::from_str(include_str!("../../golden/note_hash_v1.json")).expect("well-formed vectors");
    assert_eq!(golden.note_hash_version, NOTE_HASH_VERSION);
    golden
}

fn timed(notes: &[Note]) -> Vec<TimedNote> {
    notes
        .iter()
        .map(|note| TimedNote { start_us: note.start_us, column: note.column, end_us: note.end_us })
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_vector_is_reproduced() {
    let golden = golden();
    assert!(golden.vectors.len() > 10);
    for vector in golden.vectors {
        let notes = CanonicalNotes::new(vector.keys, &timed(&vector.notes))
            .unwrap_or_else(|refusal| panic!("{}: {refusal}", vector.name));
        assert_eq!(hex(&notes.canonical_bytes()), vector.canonical_hex, "{}", vector.name);
        assert_eq!(notes.hash().to_string(), vector.hash, "{}", vector.name);
    }
}

#[test]
fn refused_charts_have_no_hash() {
    for refused in golden().refused {
        let outcome = CanonicalNotes::new(refused.keys, &timed(&refused.notes));
        assert!(outcome.is_err(), "{}", refused.name);
    }
}

/// A second implementation of the rule, independent of the crate: 128-bit arithmetic, tuples, byte by byte.
#[test]
fn vectors_match_an_independent_implementation() {
    for vector in golden().vectors {
        let first = vector.notes.iter().map(|note| i128::from(note.start_us)).min().expect("notes");
        let ms = |time_us: i64| (i128::from(time_us) - first + 500).div_euclid(1000);
        let mut rows: Vec<(i128, u8, u8, i128)> = vector
            .notes
            .iter()
            .map(|note| match (ms(note.start_us), note.end_us.map(ms)) {
                (start, Some(end)) if end > start => (start, note.column, 1, end),
                (start, _) => (start, note.column, 0, 0),
            })
            .collect();
        rows.sort_unstable();
        let mut text = format!("{:02x}", vector.keys);
        for (start, column, kind, end) in rows {
            let times = if kind == 1 { vec![start, end] } else { vec![start] };
            let little_endian: Vec<String> = times
                .iter()
                .map(|time| (0..4).map(|byte| format!("{:02x}", (time >> (8 * byte)) & 0xff)).collect())
                .collect();
            text += &format!("{}{column:02x}{kind:02x}{}", little_endian[0], little_endian[1..].concat());
        }
        assert_eq!(text, vector.canonical_hex, "{}", vector.name);
    }
}

/// The example in the documentation of `note_hash`.
#[test]
fn documented_example_is_right() {
    let notes = [
        TimedNote { start_us: 1_000_000, column: 0, end_us: None },
        TimedNote { start_us: 1_500_000, column: 2, end_us: Some(2_000_000) },
    ];
    let bytes = CanonicalNotes::new(4, &notes).expect("a valid chart").canonical_bytes();
    assert_eq!(hex(&bytes), concat!("04", "000000000000", "f40100000201e8030000"));
}
