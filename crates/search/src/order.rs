//! The order of a list: what documents are sorted by, coarse before fine.
//!
//! Meilisearch sorts by walking the distinct values of an attribute, each with the set of documents that have it; to
//! skip to a deep page it passes over every value before it. A key that nearly every document has for itself makes
//! that slow. So each key comes in steps, coarse to fine, every step a function of the key that never falls where the
//! key rises: the order is that of the key alone, and whole coarse values are passed over at once. A step divides the one
//! before it into a few dozen, and the last leaves some hundred sets of 300,000: opening a value that only a few sets
//! share costs as much as passing over many.
//!
//! Strings are compared as lower-case hexadecimal digits of their bytes: Meilisearch folds case and accents of
//! what it sorts and cuts it at 468 bytes, digits survive both (a key has 224 bytes at most), and their order is
//! the order of the bytes, which every engine sorts by.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use chart_index_domain::search::{Direction, IndexedChartset, Sort};
use chart_index_domain::{ChartsetId, hex, text};
use serde::de::{self, IntoDeserializer as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A step of a key: the attribute that holds it, and how much of the key it keeps or leaves out.
type Step<T> = (&'static str, T);

/// Times: how many bits of the milliseconds a step leaves out. Each step is divided by the next into 64.
const UPDATED: &[Step<u32>] =
    &[("updated36", 36), ("updated30", 30), ("updated24", 24), ("updated18", 18), ("updated12", 12)];
/// Names: how many bytes a step keeps. One more byte tells a few dozen beginnings apart, in any script.
const TITLE: &[Step<usize>] = &[("title1", 1), ("title2", 2), ("title3", 3), ("title4", 4), ("title6", 6)];
const ARTIST: &[Step<usize>] =
    &[("artist1", 1), ("artist2", 2), ("artist3", 3), ("artist4", 4), ("artist6", 6)];
/// Numbers: how many bits of the mantissa a step keeps, after the exponent. Between a number and its double lie 8
/// values of the first step, and 16 of the next between two of those.
const BPM: &[Step<u32>] = &[("bpm3", 3), ("bpm7", 7)];
const LENGTH: &[Step<u32>] = &[("length3", 3), ("length7", 7), ("length10", 10)];
const DENSITY: &[Step<u32>] = &[("density3", 3), ("density7", 7)];
/// Ids, which ties are broken by: how many digits a step keeps.
const ID: &[Step<usize>] = &[("id1", 1), ("id2", 2)];

const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;

/// The attributes of a document that only the order needs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct SortKeys(BTreeMap<&'static str, KeyPart>);

#[derive(Debug, Clone, PartialEq, PartialOrd, Serialize)]
#[serde(untagged)]
enum KeyPart {
    Time(i64),
    Number(u64),
    Digits(String),
}

impl SortKeys {
    pub(crate) fn of(indexed: &IndexedChartset) -> Self {
        let set = &indexed.chartset;
        let mut keys = BTreeMap::new();
        for &(attribute, bits) in UPDATED {
            keys.insert(attribute, KeyPart::Time(indexed.updated_at_ms >> bits));
        }
        for (steps, whole, name) in [(TITLE, "titleKey", &set.title), (ARTIST, "artistKey", &set.artist)] {
            let key = text::sort_key(name);
            keys.extend(steps.iter().map(|&(attribute, bytes)| (attribute, name_step(&key, bytes))));
            keys.insert(whole, name_step(&key, usize::MAX));
        }
        let numbers = [(BPM, set.bpm_max), (LENGTH, set.length_max_ms.into()), (DENSITY, set.density_max)];
        for (steps, number) in numbers {
            let steps = steps.iter().map(|&(attribute, bits)| (attribute, number_step(number, bits)));
            keys.extend(steps.map(|(attribute, step)| (attribute, KeyPart::Number(step))));
        }
        let id = set.id.to_string();
        for &(attribute, digits) in ID {
            keys.insert(attribute, KeyPart::Digits(format!("x{}", &id[..digits])));
        }
        Self(keys)
    }
}

/// So many bytes of a name in digits. A letter stands before them, so that they are never taken for a number.
fn name_step(key: &str, bytes: usize) -> KeyPart {
    let mut digits = String::from("x");
    hex::push(&mut digits, &key.as_bytes()[..bytes.min(key.len())]);
    KeyPart::Digits(digits)
}

/// A number without its fine part: the bits of numbers that are not negative rise as the numbers do.
fn number_step(number: f64, bits: u32) -> u64 {
    number.max(0.0).to_bits() >> (MANTISSA_BITS - bits)
}

/// The attributes that give the order, coarse to fine, without the tie-break.
fn attributes(sort: Sort) -> Vec<&'static str> {
    fn names<T>(steps: &[Step<T>]) -> Vec<&'static str> {
        steps.iter().map(|(attribute, _)| *attribute).collect()
    }
    let mut attributes = match sort {
        Sort::Updated | Sort::Relevance => names(UPDATED),
        Sort::Title => names(TITLE),
        Sort::Artist => names(ARTIST),
        Sort::Bpm => names(BPM),
        Sort::Length => names(LENGTH),
        Sort::Density => names(DENSITY),
    };
    attributes.push(exact_key(sort));
    attributes
}

/// The attribute that decides an order, of which the others are steps.
pub(crate) const fn exact_key(sort: Sort) -> &'static str {
    match sort {
        Sort::Updated | Sort::Relevance => "updatedAtMs",
        Sort::Title => "titleKey",
        Sort::Artist => "artistKey",
        Sort::Bpm => "bpmMax",
        Sort::Length => "lengthMaxMs",
        Sort::Density => "densityMax",
    }
}

/// The attributes that ties are broken by.
fn tie_break() -> impl Iterator<Item = &'static str> {
    ID.iter().map(|(attribute, _)| *attribute).chain(["id"])
}

/// Every attribute that documents are sorted by.
pub(crate) fn sortable_attributes() -> Vec<&'static str> {
    let sorts = [Sort::Updated, Sort::Title, Sort::Artist, Sort::Bpm, Sort::Length, Sort::Density];
    sorts.into_iter().flat_map(attributes).chain(tie_break()).collect()
}

/// From which end a list is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    /// From its first set.
    Forward,
    /// From its last set: everything the other way round, ties included.
    Backward,
}

/// The order as Meilisearch is told it. In a list the id ascends whichever way the key goes.
pub(crate) fn terms(sort: Sort, direction: Direction, walk: Walk) -> Vec<String> {
    let (key, tie) = match (walk, direction) {
        (Walk::Forward, direction) => (direction, Direction::Ascending),
        (Walk::Backward, Direction::Ascending) => (Direction::Descending, Direction::Descending),
        (Walk::Backward, Direction::Descending) => (Direction::Ascending, Direction::Descending),
    };
    let keys = attributes(sort).into_iter().map(|attribute| format!("{attribute}:{}", key.as_str()));
    keys.chain(tie_break().map(|attribute| format!("{attribute}:{}", tie.as_str()))).collect()
}

/// The value of an [`exact_key`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Key {
    /// A time, too: as milliseconds it has no more than 53 bits.
    Number(f64),
    Digits(String),
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyVisitor)
    }
}

/// Untagged, a key of digits would be tried as a number first, with an error that is written out and thrown away.
struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or digits")
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Key, E> {
        Ok(Key::Number(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Key, E> {
        f64::deserialize(number.into_deserializer()).map(Key::Number)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Key, E> {
        f64::deserialize(number.into_deserializer()).map(Key::Number)
    }

    fn visit_str<E: de::Error>(self, digits: &str) -> Result<Key, E> {
        Ok(Key::Digits(digits.to_owned()))
    }
}

/// Where a set stands in an order, to compare neighbours by.
#[derive(Debug, PartialEq)]
pub(crate) struct Position {
    pub(crate) key: Key,
    pub(crate) id: ChartsetId,
}

impl Position {
    /// Whether a set here may stand right before one there, in the order of the key in that direction.
    pub(crate) fn is_before(&self, next: &Self, direction: Direction) -> bool {
        let keys = match (&self.key, &next.key) {
            (Key::Number(a), Key::Number(b)) => a.total_cmp(b),
            (Key::Digits(a), Key::Digits(b)) => a.cmp(b),
            _ => return false,
        };
        let keys = if direction == Direction::Descending { keys.reverse() } else { keys };
        keys.then(self.id.cmp(&next.id)) == Ordering::Less
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn digits(name: &str, bytes: usize) -> String {
        match name_step(&text::sort_key(name), bytes) {
            KeyPart::Digits(digits) => digits,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn names_are_sorted_by_their_bytes_in_hexadecimal_digits() {
        for (name, bytes, expected) in [
            ("Ärger 12", 1, "x61"),
            ("Ärger 12", 4, "x61726765"),
            ("Ärger 12", usize::MAX, "x6172676572203132"),
            ("律", 2, "xe5be"),
            ("", 8, "x"),
        ] {
            assert_eq!(digits(name, bytes), expected, "{name:?}");
        }
        assert_eq!(digits(&"x".repeat(1_000), usize::MAX).len(), 449);
    }

    #[test]
    fn the_id_ascends_whichever_way_the_key_goes_and_backwards_all_is_the_other_way_round() {
        use Direction::{Ascending, Descending};
        for (walk, direction, expected) in [
            (
                Walk::Forward,
                Ascending,
                ["bpm3:asc", "bpm7:asc", "bpmMax:asc", "id1:asc", "id2:asc", "id:asc"],
            ),
            (
                Walk::Forward,
                Descending,
                ["bpm3:desc", "bpm7:desc", "bpmMax:desc", "id1:asc", "id2:asc", "id:asc"],
            ),
            (
                Walk::Backward,
                Ascending,
                ["bpm3:desc", "bpm7:desc", "bpmMax:desc", "id1:desc", "id2:desc", "id:desc"],
            ),
            (
                Walk::Backward,
                Descending,
                ["bpm3:asc", "bpm7:asc", "bpmMax:asc", "id1:desc", "id2:desc", "id:desc"],
            ),
        ] {
            assert_eq!(terms(Sort::Bpm, direction, walk), expected);
        }
    }

    #[test]
    fn a_key_is_a_number_or_digits_and_nothing_else() {
        for (json, expected) in [
            ("180.125", Some(Key::Number(180.125))),
            ("180", Some(Key::Number(180.0))),
            ("-1", Some(Key::Number(-1.0))),
            ("9007199254740991", Some(Key::Number(9_007_199_254_740_991.0))),
            ("\"x61\"", Some(Key::Digits("x61".into()))),
            ("null", None),
            ("[1]", None),
            ("true", None),
        ] {
            assert_eq!(serde_json::from_str(json).ok(), expected, "{json}");
        }
    }

    #[test]
    fn a_set_stands_before_another_by_its_key_and_then_by_its_id() {
        use Direction::{Ascending, Descending};
        let (one, two) = (Key::Number(1.0), Key::Number(2.0));
        let digits = Key::Digits("x".into());
        for (key, id, next_key, next_id, direction, expected) in [
            (&one, 9, &two, 1, Ascending, true),
            (&one, 9, &two, 1, Descending, false),
            (&two, 9, &one, 1, Descending, true),
            (&one, 1, &one, 2, Ascending, true),
            (&one, 1, &one, 2, Descending, true),
            (&one, 2, &one, 1, Descending, false),
            (&one, 1, &one, 1, Ascending, false),
            (&one, 1, &digits, 2, Ascending, false),
            (&digits, 1, &one, 2, Ascending, false),
        ] {
            let position = |key: &Key, id: u64| Position {
                key: key.clone(),
                id: ChartsetId::from_bytes(id.to_be_bytes()),
            };
            let given = position(key, id).is_before(&position(next_key, next_id), direction);
            assert_eq!(given, expected, "{key:?} {id}, {next_key:?} {next_id}, {direction:?}");
        }
    }

    proptest! {
        #[test]
        fn no_step_of_a_name_falls_where_the_name_rises(a in "\\PC{0,30}", b in "\\PC{0,30}", bytes in 1_usize..10) {
            let rises = text::sort_key(&a).cmp(&text::sort_key(&b));
            prop_assert_eq!(digits(&a, usize::MAX).cmp(&digits(&b, usize::MAX)), rises);
            let step = digits(&a, bytes).cmp(&digits(&b, bytes));
            prop_assert!(step == Ordering::Equal || step == rises);
        }

        #[test]
        fn no_step_of_a_number_falls_where_the_number_rises(a in 0.0..1e300_f64, b in 0.0..1e300_f64, bits in 0_u32..12) {
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            prop_assert!(number_step(low, bits) <= number_step(high, bits));
        }

        #[test]
        fn numbers_that_differ_by_more_than_a_step_have_different_steps(thousandths in 1_u32..1_000_000_000) {
            let number = f64::from(thousandths) / 1_000.0;
            for &(_, bits) in LENGTH {
                let farther = number * (1.0 + 2.0 / f64::from(1 << bits));
                prop_assert!(number_step(number, bits) < number_step(farther, bits));
            }
        }
    }
}
