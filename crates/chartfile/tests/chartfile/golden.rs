//! The published test vectors of the note hash, the variant and the rating: `golden/note_hash_v1.json`,
//! `golden/variant_v1.json` and `golden/rating_v1.json`.

use chart_index_chartfile::rating;
use chart_index_domain::{KeyCount, NOTE_HASH_VERSION, Rating, Rows, VARIANT_VERSION};
use chart_index_rox::{CanonicalNotes, TimedNote};
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct VariantGolden {
    variant_version: u8,
    vectors: Vec<VariantVector>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct VariantVector {
    name: String,
    keys: u8,
    /// Start in milliseconds, column.
    notes: Vec<(u32, u8)>,
    rows_hex: String,
    /// Of the rows, also of too few.
    digest: String,
    variant: Option<String>,
}

#[test]
fn every_vector_of_a_variant_is_reproduced() {
    let golden: VariantGolden =
        serde_json::from_str(include_str!("../../golden/variant_v1.json")).expect("well-formed vectors");
    assert_eq!(golden.variant_version, VARIANT_VERSION);
    assert!(golden.vectors.len() > 10);
    for VariantVector { name, keys, notes, rows_hex, digest, variant } in golden.vectors {
        let rows = Rows::new(KeyCount::try_from(keys).expect("a key count"), notes.iter().copied());
        assert_eq!(hex(&rows.canonical_bytes()), format!("01{keys:02x}{rows_hex}"), "{name}");
        assert_eq!(blake3::hash(&rows.canonical_bytes()).to_hex().as_str(), digest, "{name}");
        assert!(variant.as_ref().is_none_or(|variant| *variant == digest), "{name}");
        let timed =
            |&(start_ms, column)| TimedNote { start_us: i64::from(start_ms) * 1000, column, end_us: None };
        let canonical = CanonicalNotes::new(keys, &notes.iter().map(timed).collect::<Vec<_>>());
        let computed = canonical.expect("a valid chart").rows().variant();
        assert_eq!(computed.map(|variant| variant.to_string()), variant, "{name}");
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RatingGolden {
    algorithm: String,
    version: u8,
    vectors: Vec<RatingVector>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RatingVector {
    name: String,
    keys: u8,
    /// Start in milliseconds, column, and the end of a long note.
    notes: Vec<Vec<i64>>,
    stars: Option<f64>,
}

/// In both profiles: floating-point arithmetic must not depend on optimisation.
#[test]
fn every_vector_of_a_rating_is_reproduced() {
    let golden: RatingGolden =
        serde_json::from_str(include_str!("../../golden/rating_v1.json")).expect("well-formed vectors");
    assert_eq!((golden.algorithm.as_str(), golden.version), (Rating::ALGORITHM, Rating::VERSION));
    assert!(golden.vectors.len() > 15);
    for vector in golden.vectors {
        let timed = |note: &Vec<i64>| TimedNote {
            start_us: note[0] * 1000,
            column: u8::try_from(note[1]).expect("a column"),
            end_us: note.get(2).map(|end_ms| end_ms * 1000),
        };
        let timed: Vec<TimedNote> = vector.notes.iter().map(timed).collect();
        let notes = CanonicalNotes::new(vector.keys, &timed).expect("a valid chart");
        assert_eq!(rating(&notes).map(Rating::value), vector.stars, "{}", vector.name);
    }
}
