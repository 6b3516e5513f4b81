//! Computes the rating of a chart: alphaStars, version 1 (docs/formats/rating.md, decision 0081).

use chart_index_domain::Rating;
use chart_index_rox::{CanonicalNote, CanonicalNotes};
use rosu_pp::model::hit_object::{HitObject, HitObjectKind, HoldNote, Pos};
use rosu_pp::model::mode::GameMode;
use rosu_pp::{Beatmap, Difficulty};

use crate::panic_guard::catch_panic;

/// Charts with fewer notes have no rating: it would say how long they are rather than how hard.
const MIN_NOTES: usize = 50;

/// The width of the playfield in the units of the calculation.
const WIDTH: f32 = 512.0;

/// The rating of a chart; `None` below 50 notes, above the maximum, and for notes that the calculation refuses
/// (docs/formats/rating.md). Never panics.
#[must_use]
pub fn rating(chart: &CanonicalNotes) -> Option<Rating> {
    let (keys, notes) = (chart.keys().get(), chart.notes());
    if notes.len() < MIN_NOTES {
        return None;
    }
    let mut stars = stars_of(keys, notes)?;
    if order_matters(notes) {
        stars = stars.max(stars_of(keys, &mirrored(keys, notes))?);
    }
    hundredths(stars).and_then(Rating::from_hundredths)
}

/// The notes with the columns in reverse, in the order of the note hash.
fn mirrored(keys: u8, notes: &[CanonicalNote]) -> Vec<CanonicalNote> {
    let mirror = |note: &CanonicalNote| CanonicalNote { column: keys - 1 - note.column, ..*note };
    let mut mirrored: Vec<CanonicalNote> = notes.iter().map(mirror).collect();
    mirrored.sort_unstable();
    mirrored
}

/// Whether the stars may depend on the order of notes that start together. Otherwise the mirrored chart, in
/// which it is reversed, has the same stars: most charts, for which half of the time is saved.
///
/// The calculation starts from the first note, and compares ends of notes only while a long note is held.
fn order_matters(notes: &[CanonicalNote]) -> bool {
    let mut held_until_ms = 0;
    for chord in notes.chunk_by(|note, next| note.start_ms == next.start_ms) {
        let start_ms = chord[0].start_ms;
        if chord.len() > 1 && (start_ms == 0 || held_until_ms > start_ms) {
            return true;
        }
        held_until_ms = chord.iter().filter_map(|note| note.end_ms).fold(held_until_ms, u32::max);
    }
    false
}

/// The stars of notes in this order; `None` if they are refused.
fn stars_of(keys: u8, notes: &[CanonicalNote]) -> Option<f64> {
    let map = Beatmap {
        mode: GameMode::Mania,
        cs: f32::from(keys),
        hit_objects: notes.iter().map(|note| hit_object(note, keys)).collect(),
        ..Beatmap::default()
    };
    map.check_suspicion().ok()?;
    // It panics, for example, if the durations of hostile long notes add up to more than fits.
    catch_panic(|| Ok(Difficulty::new().calculate(&map).stars())).ok()
}

/// A note in the middle of its column.
fn hit_object(note: &CanonicalNote, keys: u8) -> HitObject {
    let x = (f32::from(note.column) + 0.5) * WIDTH / f32::from(keys);
    let start_ms = f64::from(note.start_ms);
    let hold = |end_ms| HitObjectKind::Hold(HoldNote { duration: f64::from(end_ms) - start_ms });
    HitObject {
        pos: Pos::new(x, 0.0),
        start_time: start_ms,
        kind: note.end_ms.map_or(HitObjectKind::Circle, hold),
    }
}

/// Rounded half up; `None` for what is no number from 0 to 655.35.
fn hundredths(stars: f64) -> Option<u16> {
    let rounded = (stars * 100.0).round();
    let is_in_range = (0.0..=f64::from(u16::MAX)).contains(&rounded);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range, and whole")]
    is_in_range.then_some(rounded as u16)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;
    use chart_index_rox::TimedNote;

    fn chart(keys: u8, notes: impl Iterator<Item = (i64, u8, Option<i64>)>) -> CanonicalNotes {
        let timed = notes.map(|(start_ms, column, end_ms)| TimedNote {
            start_us: start_ms * 1000,
            column,
            end_us: end_ms.map(|end_ms| end_ms * 1000),
        });
        CanonicalNotes::new(keys, &timed.collect::<Vec<_>>()).unwrap()
    }

    fn stars(notes: &CanonicalNotes) -> Option<u16> {
        rating(notes).map(Rating::hundredths)
    }

    #[test]
    fn every_column_is_where_the_calculation_looks_for_it() {
        for keys in 4..=7_u8 {
            for column in 0..keys {
                let note = CanonicalNote { start_ms: 0, column, end_ms: None };
                let x = hit_object(&note, keys).pos.x;
                // `ManiaObject::column` of rosu-pp.
                assert_eq!((x / (WIDTH / f32::from(keys))).floor().to_bits(), f32::from(column).to_bits());
            }
        }
    }

    #[test]
    fn rating_needs_50_notes_at_least() {
        let single = |count| chart(4, (0..count).map(|i| (i * 150, u8::try_from(i % 4).unwrap(), None)));
        assert_eq!(stars(&single(49)), None);
        assert!(stars(&single(50)).is_some());
    }

    #[test]
    fn mirrored_chart_has_the_same_rating() {
        let notes = |mirror: bool| {
            chart(
                5,
                (0..200).flat_map(move |i| {
                    let column = |number: i64| u8::try_from(number % 5).unwrap();
                    let place = move |column| if mirror { 4 - column } else { column };
                    let end = (i % 3 == 0).then_some(i * 90 + 170);
                    [(i * 90, place(column(i * i)), end), (i * 90, place(column(i * i + 1 + i % 2)), None)]
                }),
            )
        };
        assert!(stars(&notes(false)).is_some());
        assert_eq!(stars(&notes(false)), stars(&notes(true)));
    }

    #[test]
    fn extreme_charts_have_no_rating() {
        let day_ms = 24 * 60 * 60 * 1000;
        for (name, notes) in [
            ("too long", chart(4, (0..60).map(|i| (i * day_ms / 50, 0, None)))),
            ("too dense", chart(4, (0..2_000).map(|i| (i, 0, None)))),
            ("too hard", chart(4, (0..300).map(|i| (i * 10, 0, None)))),
            ("held for too long in all", chart(7, (0..5_000).map(|i| (i * 200, 0, Some(4_000_000_000))))),
        ] {
            assert_eq!(stars(&notes), None, "{name}");
        }
    }

    #[test]
    fn values_are_rounded_half_up() {
        for (stars, expected) in [
            (0.0, Some(0)),
            (1.125, Some(113)),
            (1.124, Some(112)),
            (15.0, Some(1500)),
            (655.36, None),
            (-1.0, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ] {
            assert_eq!(hundredths(stars), expected, "{stars}");
        }
    }

    /// Rows of a chart with 7 keys: the gap to the next one, the columns, the length of long notes.
    fn rows() -> impl Strategy<Value = Vec<(i64, u8, Option<i64>)>> {
        let columns = prop_oneof![(0..7).prop_map(|column| 1_u8 << column), 1..128_u8];
        vec((0..250_i64, columns, option::weighted(0.1, 1..150_i64)), 50..80)
    }

    proptest! {
        #[test]
        fn mirrored_stars_differ_only_where_the_order_matters(rows in rows()) {
            let mut start_ms = 0;
            let notes = rows.into_iter().flat_map(|(gap_ms, columns, length_ms)| {
                let row_ms = start_ms;
                start_ms += gap_ms;
                let end_ms = length_ms.map(|length_ms| row_ms + length_ms);
                (0..7).filter(move |column| columns >> column & 1 == 1).map(move |column| (row_ms, column, end_ms))
            });
            let notes = chart(7, notes.collect::<Vec<_>>().into_iter());
            let stars = stars_of(7, notes.notes());
            let mirrored = stars_of(7, &mirrored(7, notes.notes()));
            let difference = stars.zip(mirrored).map_or(0.0, |(stars, mirrored)| (stars - mirrored).abs());
            prop_assert!(order_matters(notes.notes()) || difference < 1e-9, "{:?} {:?}", stars, mirrored);
        }
    }
}
