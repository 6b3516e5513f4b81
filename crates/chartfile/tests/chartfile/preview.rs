//! Previews: the published test vectors, `golden/chart_preview_v1.json`, and what every preview reproduces.

use chart_index_chartfile::ChartFormat;
use chart_index_rox::{CanonicalNotes, TimedNote, note_columns, preview};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::support::{only_chart, osu, preview_hash};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Vector {
    name: String,
    /// Key count, lines of timing points and lines of hit objects of an .osu file.
    keys: u8,
    timing_points: Vec<String>,
    hit_objects: Vec<String>,
    hash: String,
    density_curve: String,
    preview: Value,
}

fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("../../golden/chart_preview_v1.json")).expect("well-formed vectors")
}

#[test]
fn every_vector_is_reproduced() {
    let vectors = vectors();
    assert!(vectors.len() >= 6);
    for vector in vectors {
        let text = osu(vector.keys, &vector.timing_points.join("\n"), &vector.hit_objects.join("\n"));
        let chart = only_chart(ChartFormat::Osu, &text);
        let json = preview(chart.rox.as_deref().expect("a ROX file")).expect("a preview");
        let curve = chart.curve.expect("a density curve");
        let curve: String = curve.as_bytes().iter().map(|value| format!("{value:02x}")).collect();
        let json: Value = serde_json::from_slice(&json).expect("JSON");
        println!("{}: {} {curve} {json}", vector.name, chart.hash);
        assert_eq!((chart.hash.to_string(), curve), (vector.hash, vector.density_curve), "{}", vector.name);
        assert_eq!(json, vector.preview, "{}", vector.name);
        assert_eq!(preview_hash(vector.preview.to_string().as_bytes()), chart.hash, "{}", vector.name);
    }
}

#[test]
fn previews_are_compact_and_their_fields_are_in_order() {
    let chart = only_chart(
        ChartFormat::Osu,
        &osu(4, "0,500,4,1,0,100,1,0", "64,192,1000,1,0\n64,192,1100,128,0,1300:0:0:0:0:"),
    );
    let json = preview(chart.rox.as_deref().expect("a ROX file")).expect("a preview");
    let json = String::from_utf8(json).expect("UTF-8");
    let expected = r#"{"version":1,"keys":4,"lengthMs":300,"columns":[[0,100,-200],[],[],[]],"timing":[[-1000,120.0]],"scroll":[]}"#;
    assert_eq!(json, expected);
}

/// Notes of any kind, also such that no file may have: equal ones, and long notes that overlap in their column.
fn notes(keys: u8) -> impl Strategy<Value = Vec<TimedNote>> {
    let duration_us = prop_oneof![Just(0), 1..2_000_i64, 1..4_000_000_000_000_i64];
    let start_us = prop_oneof![0..5_000_i64, -1_000_000..3_600_000_000_i64];
    let note = (start_us, 0..keys, option::weighted(0.4, duration_us));
    let note = note.prop_map(|(start_us, column, duration_us)| TimedNote {
        start_us,
        column,
        end_us: duration_us.map(|duration_us| start_us + duration_us),
    });
    vec(note, 1..80)
}

proptest! {
    #[test]
    fn any_notes_round_trip((keys, notes) in (4_u8..=7).prop_flat_map(|keys| (Just(keys), notes(keys)))) {
        let canonical = CanonicalNotes::new(keys, &notes).expect("a valid chart");
        let preview = serde_json::json!({ "keys": keys, "columns": note_columns(&canonical) });
        prop_assert_eq!(preview_hash(preview.to_string().as_bytes()), canonical.hash());
    }
}
