//! The sort keys of documents: coarse keys before the exact one.
//!
//! Two chartsets of the sample library have the same name and BPM. They are sorted by these attributes, top to
//! bottom within each sort:
//!
//! | Attribute | Value of `21642f98…` | Value of `7a1825cc…` |
//! |---|---|---|
//! | `updated36` | 26 | 26 |
//! | `updated30` | 1667 | 1667 |
//! | `updated24` | 106692 | 106692 |
//! | `updated18` | 6828308 | 6828308 |
//! | `updated12` | 437011718 | 437011719 |
//! | `updatedAtMs` | 1790000000000 | 1790000002500 |
//! | `title1` | x68 | x68 |
//! | `title2` | x6861 | x6861 |
//! | `title3` | x686172 | x686172 |
//! | `title4` | x68617262 | x68617262 |
//! | `title6` | x686172626f75 | x686172626f75 |
//! | `titleKey` | x686172626f7572206c6967687473 | x686172626f7572206c6967687473 |
//! | `bpm3` | 8240 | 8240 |
//! | `bpm7` | 131840 | 131840 |
//! | `bpmMax` | 128.0 | 128.0 |
//! | `length3` | 8294 | 8294 |
//! | `length7` | 132712 | 132710 |
//! | `length10` | 1061700 | 1061685 |
//! | `lengthMaxMs` | 14883 | 14766 |
//! | `density3` | 8211 | 8202 |
//! | `density7` | 131376 | 131232 |
//! | `densityMax` | 11.0 | 5.0 |
//! | `id1` | x2 | x7 |
//! | `id2` | x21 | x7a |
//! | `id` | 21642f9846d39260 | 7a1825cc4bacc079 |
//!
//! By length, `length3` is equal (both are between 14,336 and 15,360 ms) and `length7` decides. By title and by
//! BPM every key is equal and the id decides, at its first digit.
//!
//! Only the last key of each sort defines the order. A coarse key is the beginning of it:
//!
//! - `updated12`: the time in milliseconds without its lowest 12 bits;
//! - `title2`: the first 2 bytes of the folded title, in hexadecimal digits (`artist2` likewise);
//! - `length3`: the exponent of the number and the first 3 bits of its mantissa (`bpm3`, `bpmMain3`,
//!   `density3`, `rating3` and `notes3` likewise);
//! - `id2`: the first 2 digits of the id.
//!
//! A coarse key never decreases where the exact key increases, so that sorting by it first does not change the
//! order. It is there for speed: to reach a deep page, Meilisearch walks the distinct values of the first
//! attribute and skips the documents of each value at once. Nearly every document has an exact key of its own,
//! so that walking those is slow. Each coarse key divides the values of the one before it into a few dozen, and
//! the finest leaves some hundred of 300,000 chartsets per value: opening a value that only a few chartsets
//! share costs as much as skipping many.
//!
//! Names are compared as hexadecimal digits of their bytes, which are in the order of the bytes, as in every
//! engine. Meilisearch folds case and accents of strings and cuts them at 468 bytes; digits are not changed by
//! that, and a name has 224 bytes at most.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use chart_index_domain::search::{Direction, IndexedChartset, ListPosition, Sort, SortValue};
use chart_index_domain::{ChartsetId, hex, text};
use serde::de::{self, IntoDeserializer as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A coarse key: its attribute, and the precision.
type CoarseKey<T> = (&'static str, T);

/// Times without their lowest bits, by the number of those bits. Each value contains 64 values of the next key.
const UPDATED: &[CoarseKey<u32>] =
    &[("updated36", 36), ("updated30", 30), ("updated24", 24), ("updated18", 18), ("updated12", 12)];
/// The beginnings of names, by the number of bytes. One more byte divides a beginning into a few dozen, in any
/// script.
const TITLE: &[CoarseKey<usize>] =
    &[("title1", 1), ("title2", 2), ("title3", 3), ("title4", 4), ("title6", 6)];
const ARTIST: &[CoarseKey<usize>] =
    &[("artist1", 1), ("artist2", 2), ("artist3", 3), ("artist4", 4), ("artist6", 6)];
/// Numbers without the end of their mantissa, by the number of bits of it that remain. The first key has 8
/// values between a number and its double, the second 16 for each of those.
const BPM: &[CoarseKey<u32>] = &[("bpm3", 3), ("bpm7", 7)];
const MAIN_BPM: &[CoarseKey<u32>] = &[("bpmMain3", 3), ("bpmMain7", 7)];
const LENGTH: &[CoarseKey<u32>] = &[("length3", 3), ("length7", 7), ("length10", 10)];
const DENSITY: &[CoarseKey<u32>] = &[("density3", 3), ("density7", 7)];
const RATING: &[CoarseKey<u32>] = &[("rating3", 3), ("rating7", 7)];
const NOTES: &[CoarseKey<u32>] = &[("notes3", 3), ("notes7", 7), ("notes10", 10)];
/// The beginnings of ids, which break ties, by the number of digits.
const ID: &[CoarseKey<usize>] = &[("id1", 1), ("id2", 2)];

const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;

/// The attributes of a document that are used for sorting only.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct SortKeys(BTreeMap<&'static str, SortKey>);

#[derive(Debug, Clone, PartialEq, PartialOrd, Serialize)]
#[serde(untagged)]
enum SortKey {
    Time(i64),
    Number(u64),
    Digits(String),
}

impl SortKeys {
    pub(crate) fn new(indexed: &IndexedChartset) -> Self {
        let set = &indexed.chartset;
        let mut keys = BTreeMap::new();
        for &(attribute, bits) in UPDATED {
            keys.insert(attribute, SortKey::Time(indexed.updated_at_ms >> bits));
        }
        for (coarse, exact, name) in [(TITLE, "titleKey", &set.title), (ARTIST, "artistKey", &set.artist)] {
            let name = text::sort_key(name);
            keys.extend(coarse.iter().map(|&(attribute, bytes)| (attribute, name_key(&name, bytes))));
            keys.insert(exact, name_key(&name, usize::MAX));
        }
        let rating = indexed.ratings().map_or(0, |(_, greatest)| greatest.hundredths());
        let numbers = [
            (BPM, set.bpm_max),
            (MAIN_BPM, indexed.bpm_main_max),
            (LENGTH, set.length_max_ms.into()),
            (DENSITY, set.density_max),
            (RATING, rating.into()),
            (NOTES, indexed.notes_max().into()),
        ];
        for (coarse, number) in numbers {
            let coarse = coarse.iter().map(|&(attribute, bits)| (attribute, number_key(number, bits)));
            keys.extend(coarse.map(|(attribute, key)| (attribute, SortKey::Number(key))));
        }
        let id = set.id.to_string();
        for &(attribute, digits) in ID {
            keys.insert(attribute, SortKey::Digits(format!("x{}", &id[..digits])));
        }
        Self(keys)
    }
}

/// Up to `bytes` bytes of a name in hexadecimal digits.
fn name_key(name: &str, bytes: usize) -> SortKey {
    SortKey::Digits(digits(&name.as_bytes()[..bytes.min(name.len())]))
}

/// The attribute with the folded tags of a chartset.
pub(crate) const TAG_KEYS: &str = "tagKeys";

/// A tag that is folded as [`text::sort_key`], by which chartsets are excluded: it is compared exactly.
pub(crate) fn tag_key(tag: &str) -> String {
    digits(tag.as_bytes())
}

/// Hexadecimal digits after a letter, so that Meilisearch never parses them as a number.
fn digits(bytes: &[u8]) -> String {
    let mut digits = String::from("x");
    hex::push(&mut digits, bytes);
    digits
}

/// The exponent and the first bits of the mantissa. The bit patterns of non-negative numbers are in the order
/// of the numbers.
fn number_key(number: f64, bits: u32) -> u64 {
    number.max(0.0).to_bits() >> (MANTISSA_BITS - bits)
}

/// The attributes of a sort, from the coarsest key to the exact one, without the tie-break.
fn attributes(sort: Sort) -> Vec<&'static str> {
    fn names<T>(keys: &[CoarseKey<T>]) -> Vec<&'static str> {
        keys.iter().map(|(attribute, _)| *attribute).collect()
    }
    let mut attributes = match sort {
        Sort::Updated | Sort::Relevance => names(UPDATED),
        Sort::Title => names(TITLE),
        Sort::Artist => names(ARTIST),
        Sort::Bpm => names(BPM),
        Sort::MainBpm => names(MAIN_BPM),
        Sort::Length => names(LENGTH),
        Sort::Density => names(DENSITY),
        Sort::Rating => names(RATING),
        Sort::Notes => names(NOTES),
    };
    attributes.push(exact_key(sort));
    attributes
}

/// The attribute with the time of the last change.
pub(crate) const UPDATED_AT: &str = "updatedAtMs";

/// The attribute with the exact key of a sort.
pub(crate) const fn exact_key(sort: Sort) -> &'static str {
    match sort {
        Sort::Updated | Sort::Relevance => UPDATED_AT,
        Sort::Title => "titleKey",
        Sort::Artist => "artistKey",
        Sort::Bpm => "bpmMax",
        Sort::MainBpm => "bpmMainMax",
        Sort::Length => "lengthMaxMs",
        Sort::Density => "densityMax",
        Sort::Rating => "ratingMax",
        Sort::Notes => "notesMax",
    }
}

fn tie_break() -> impl Iterator<Item = &'static str> {
    ID.iter().map(|(attribute, _)| *attribute).chain(["id"])
}

/// Every attribute that searches sort by.
pub(crate) fn sortable_attributes() -> Vec<&'static str> {
    let sorts = Sort::ALL.iter().copied().filter(|sort| *sort != Sort::Relevance);
    sorts.flat_map(attributes).chain(tie_break()).collect()
}

/// The end of a list from which a page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadFrom {
    Start,
    /// In reverse order, ties included.
    End,
}

/// The `sort` parameter of a search. In a list, ids ascend in either direction of the key.
pub(crate) fn sort_terms(sort: Sort, direction: Direction, from: ReadFrom) -> Vec<String> {
    let (key, tie) = match (from, direction) {
        (ReadFrom::Start, direction) => (direction, Direction::Ascending),
        (ReadFrom::End, Direction::Ascending) => (Direction::Descending, Direction::Descending),
        (ReadFrom::End, Direction::Descending) => (Direction::Ascending, Direction::Descending),
    };
    let keys = attributes(sort).into_iter().map(|attribute| format!("{attribute}:{}", key.as_str()));
    keys.chain(tie_break().map(|attribute| format!("{attribute}:{}", tie.as_str()))).collect()
}

/// The value of an [`exact_key`], as Meilisearch returns it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Key {
    /// Also a time: milliseconds have at most 53 bits.
    Number(f64),
    Digits(String),
}

impl Key {
    /// The key of a time in milliseconds.
    #[expect(clippy::cast_precision_loss, reason = "milliseconds have at most 53 bits")]
    pub(crate) const fn from_time(milliseconds: i64) -> Self {
        Self::Number(milliseconds as f64)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyVisitor)
    }
}

/// A derived untagged enum would try to parse every text as a number first, and format an error to discard it.
struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a string")
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

/// The position of a chartset in a sort, to check the order of a page.
#[derive(Debug, PartialEq)]
pub(crate) struct SortPosition {
    pub(crate) key: Key,
    pub(crate) id: ChartsetId,
}

impl SortPosition {
    /// Whether this position comes before the other one in that direction.
    pub(crate) fn is_before(&self, next: &Self, direction: Direction) -> bool {
        let keys = match (&self.key, &next.key) {
            (Key::Number(a), Key::Number(b)) => a.total_cmp(b),
            (Key::Digits(a), Key::Digits(b)) => a.cmp(b),
            _ => return false,
        };
        let keys = if direction == Direction::Descending { keys.reverse() } else { keys };
        keys.then(self.id.cmp(&next.id)) == Ordering::Less
    }

    /// The position in the form of cursors; `None` if the key is none of this sort.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "times, lengths, ratings and numbers of notes are integers"
    )]
    pub(crate) fn in_list(&self, sort: Sort) -> Option<ListPosition> {
        let value = match (sort, &self.key) {
            (Sort::Updated | Sort::Length | Sort::Rating | Sort::Notes, Key::Number(number)) => {
                SortValue::Integer(*number as i64)
            }
            (Sort::Bpm | Sort::MainBpm | Sort::Density, Key::Number(number)) => SortValue::Number(*number),
            (Sort::Title | Sort::Artist, Key::Digits(digits)) => {
                let name = String::from_utf8(hex::decode_any(digits.strip_prefix('x')?)?);
                SortValue::Name(name.ok()?)
            }
            _ => return None,
        };
        Some(ListPosition { value, id: self.id })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::document::ChartsetDocument;
    use crate::document::tests::indexed;

    fn digits(name: &str, bytes: usize) -> String {
        match name_key(&text::sort_key(name), bytes) {
            SortKey::Digits(digits) => digits,
            other => panic!("{other:?}"),
        }
    }

    /// The two chartsets at the top of this file.
    fn example_documents() -> [Value; 2] {
        let sets = [
            (0x2164_2f98_46d3_9260_u64, 14_883, 11.0, 1_790_000_000_000),
            (0x7a18_25cc_4bac_c079, 14_766, 5.0, 1_790_000_002_500),
        ];
        sets.map(|(id, length_max_ms, density_max, updated_at_ms)| {
            let mut set = indexed(id, "Harbour Lights");
            set.chartset.artist = "Paper Lanterns".into();
            (set.chartset.bpm_max, set.chartset.density_max) = (128.0, density_max);
            (set.chartset.length_max_ms, set.updated_at_ms) = (length_max_ms, updated_at_ms);
            serde_json::to_value(ChartsetDocument::new(&set)).unwrap()
        })
    }

    #[test]
    fn documented_table_has_the_keys_of_two_documents() {
        let [first, second] = example_documents();
        let sorts = [Sort::Updated, Sort::Title, Sort::Bpm, Sort::Length, Sort::Density];
        let sorted_by = sorts.into_iter().flat_map(attributes).chain(tie_break());
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let row = |name| format!("//! | `{name}` | {} | {} |\n", text(&first[name]), text(&second[name]));
        let table: String = sorted_by.map(row).collect();
        assert!(
            include_str!("sort_keys.rs").contains(&table),
            "the table at the top of this file has to be\n{table}"
        );
    }

    #[test]
    fn name_keys_are_hexadecimal_digits() {
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
    fn ids_ascend_except_when_read_from_the_end() {
        use Direction::{Ascending, Descending};
        for (from, direction, expected) in [
            (
                ReadFrom::Start,
                Ascending,
                ["bpm3:asc", "bpm7:asc", "bpmMax:asc", "id1:asc", "id2:asc", "id:asc"],
            ),
            (
                ReadFrom::Start,
                Descending,
                ["bpm3:desc", "bpm7:desc", "bpmMax:desc", "id1:asc", "id2:asc", "id:asc"],
            ),
            (
                ReadFrom::End,
                Ascending,
                ["bpm3:desc", "bpm7:desc", "bpmMax:desc", "id1:desc", "id2:desc", "id:desc"],
            ),
            (
                ReadFrom::End,
                Descending,
                ["bpm3:asc", "bpm7:asc", "bpmMax:asc", "id1:desc", "id2:desc", "id:desc"],
            ),
        ] {
            assert_eq!(sort_terms(Sort::Bpm, direction, from), expected);
        }
    }

    #[test]
    fn keys_are_numbers_or_strings() {
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
    fn positions_are_ordered_by_key_then_id() {
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
            let position = |key: &Key, id: u64| SortPosition {
                key: key.clone(),
                id: ChartsetId::from_bytes(id.to_be_bytes()),
            };
            let actual = position(key, id).is_before(&position(next_key, next_id), direction);
            assert_eq!(actual, expected, "{key:?} {id}, {next_key:?} {next_id}, {direction:?}");
        }
    }

    proptest! {
        #[test]
        fn names_of_positions_are_decoded(name in "\\PC{0,30}") {
            let name = text::sort_key(&name);
            let position = SortPosition { key: Key::Digits(digits(&name, usize::MAX)), id: ChartsetId::from_bytes([1; 8]) };
            let expected = ListPosition { value: SortValue::Name(name), id: position.id };
            prop_assert_eq!(position.in_list(Sort::Title), Some(expected));
            prop_assert_eq!(position.in_list(Sort::Bpm), None);
        }

        #[test]
        fn coarse_name_keys_never_contradict_names(a in "\\PC{0,30}", b in "\\PC{0,30}", bytes in 1_usize..10) {
            let names = text::sort_key(&a).cmp(&text::sort_key(&b));
            prop_assert_eq!(digits(&a, usize::MAX).cmp(&digits(&b, usize::MAX)), names);
            let coarse = digits(&a, bytes).cmp(&digits(&b, bytes));
            prop_assert!(coarse == Ordering::Equal || coarse == names);
        }

        #[test]
        fn coarse_number_keys_never_contradict_numbers(a in 0.0..1e300_f64, b in 0.0..1e300_f64, bits in 0_u32..12) {
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            prop_assert!(number_key(low, bits) <= number_key(high, bits));
        }

        #[test]
        fn coarse_number_keys_have_a_relative_width(thousandths in 1_u32..1_000_000_000) {
            let number = f64::from(thousandths) / 1_000.0;
            for &(_, bits) in LENGTH {
                let larger = number * (1.0 + 2.0 / f64::from(1 << bits));
                prop_assert!(number_key(number, bits) < number_key(larger, bits));
            }
        }
    }
}
