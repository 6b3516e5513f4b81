//! The order of a list: what documents are sorted by, coarse before fine.
//!
//! Meilisearch sorts by walking the distinct values of an attribute, each with the set of documents that have it; to
//! skip to a deep page it passes over every value before it. A key that nearly every document has for itself makes
//! that slow. So each key comes in steps, coarse to fine, every step a function of the key that never falls where the
//! key rises: the order is that of the key alone, and whole coarse values are passed over at once.
//!
//! Strings are compared as lower-case hexadecimal digits of their bytes: Meilisearch folds case and accents of
//! what it sorts and cuts it at 468 bytes, digits survive both (a key has 224 bytes at most), and their order is
//! the order of the bytes, which every engine sorts by.

use std::cmp::Ordering;
use std::fmt::Write as _;

use chart_index_domain::search::{Direction, IndexedChartset, SearchQuery, Sort};
use chart_index_domain::{ChartsetId, text};
use serde::{Deserialize, Serialize};

/// After how many bytes of a name its steps end; the last holds all of it.
const NAME_STEPS: [usize; 4] = [1, 2, 4, 8];
/// How many bits of a time in milliseconds its steps leave out: 12 days, 17 minutes, 4 seconds.
const TIME_STEPS: [u32; 3] = [30, 20, 12];
/// How many bits of a number its coarse step keeps: sign, exponent, and a part in 128 of its size.
const NUMBER_BITS: u32 = 64 - 12 - 7;

/// The keys of a document that only the order needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SortKeys {
    updated_step1: i64,
    updated_step2: i64,
    updated_step3: i64,
    title_step1: String,
    title_step2: String,
    title_step3: String,
    title_step4: String,
    title_key: String,
    artist_step1: String,
    artist_step2: String,
    artist_step3: String,
    artist_step4: String,
    artist_key: String,
    bpm_step: u64,
    length_step: u64,
    density_step: u64,
    id_step: String,
}

impl SortKeys {
    pub(crate) fn of(indexed: &IndexedChartset) -> Self {
        let set = &indexed.chartset;
        let [updated_step1, updated_step2, updated_step3] =
            TIME_STEPS.map(|bits| indexed.updated_at_ms >> bits);
        let [title_step1, title_step2, title_step3, title_step4, title_key] = name_keys(&set.title);
        let [artist_step1, artist_step2, artist_step3, artist_step4, artist_key] = name_keys(&set.artist);
        Self {
            updated_step1,
            updated_step2,
            updated_step3,
            title_step1,
            title_step2,
            title_step3,
            title_step4,
            title_key,
            artist_step1,
            artist_step2,
            artist_step3,
            artist_step4,
            artist_key,
            bpm_step: number_step(set.bpm_max),
            length_step: number_step(set.length_max_ms.into()),
            density_step: number_step(set.density_max),
            id_step: set.id.to_string()[..2].to_owned(),
        }
    }
}

/// The keys of a name, coarse to fine. A letter stands before the digits, so that none is taken for a number.
fn name_keys(name: &str) -> [String; 5] {
    let key = text::sort_key(name);
    let [step1, step2, step3, step4] = NAME_STEPS;
    [step1, step2, step3, step4, usize::MAX].map(|length| {
        let mut digits = String::from("x");
        for byte in key.bytes().take(length) {
            let _ = write!(digits, "{byte:02x}");
        }
        digits
    })
}

/// A number without its fine part: the bits of numbers that are not negative rise as the numbers do.
fn number_step(number: f64) -> u64 {
    number.max(0.0).to_bits() >> NUMBER_BITS
}

/// What ties are broken by.
const TIE_BREAK: [&str; 2] = ["idStep", "id"];

/// The attributes that give the order, coarse to fine, without the tie-break.
const fn steps(sort: Sort) -> &'static [&'static str] {
    match sort {
        Sort::Updated | Sort::Relevance => &["updatedStep1", "updatedStep2", "updatedStep3", "updatedAtMs"],
        Sort::Title => &["titleStep1", "titleStep2", "titleStep3", "titleStep4", "titleKey"],
        Sort::Artist => &["artistStep1", "artistStep2", "artistStep3", "artistStep4", "artistKey"],
        Sort::Bpm => &["bpmStep", "bpmMax"],
        Sort::Length => &["lengthStep", "lengthMaxMs"],
        Sort::Density => &["densityStep", "densityMax"],
    }
}

/// Every attribute that documents are sorted by.
pub(crate) fn sortable_attributes() -> Vec<&'static str> {
    let sorts = [Sort::Updated, Sort::Title, Sort::Artist, Sort::Bpm, Sort::Length, Sort::Density];
    sorts.into_iter().flat_map(steps).copied().chain(TIE_BREAK).collect()
}

/// The order as Meilisearch is told it. The id ascends whichever way the key goes.
pub(crate) fn terms(sort: Sort, direction: Direction) -> Vec<String> {
    let direction = direction.as_str();
    let keys = steps(sort).iter().map(|step| format!("{step}:{direction}"));
    keys.chain(TIE_BREAK.iter().map(|step| format!("{step}:asc"))).collect()
}

/// The key of an item in the order of a query, to compare neighbours by.
#[derive(Debug, PartialEq)]
pub(crate) struct Position {
    key: Key,
    direction: Direction,
    id: ChartsetId,
}

#[derive(Debug, PartialEq)]
enum Key {
    Time(i64),
    Number(f64),
    Name(String),
}

impl Position {
    /// Where the set stands in the order of the query's key.
    pub(crate) fn of(indexed: &IndexedChartset, query: &SearchQuery) -> Self {
        let set = &indexed.chartset;
        let key = match query.sort {
            Sort::Updated | Sort::Relevance => Key::Time(indexed.updated_at_ms),
            Sort::Title => Key::Name(text::sort_key(&set.title)),
            Sort::Artist => Key::Name(text::sort_key(&set.artist)),
            Sort::Bpm => Key::Number(set.bpm_max),
            Sort::Length => Key::Number(set.length_max_ms.into()),
            Sort::Density => Key::Number(set.density_max),
        };
        Self { key, direction: query.direction, id: set.id }
    }

    /// Whether this item may stand right before the other.
    pub(crate) fn is_before(&self, next: &Self) -> bool {
        let keys = match (&self.key, &next.key) {
            (Key::Time(a), Key::Time(b)) => a.cmp(b),
            (Key::Number(a), Key::Number(b)) => a.total_cmp(b),
            (Key::Name(a), Key::Name(b)) => a.cmp(b),
            _ => return false,
        };
        let keys = if self.direction == Direction::Descending { keys.reverse() } else { keys };
        keys.then(self.id.cmp(&next.id)) == Ordering::Less
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_sorted_by_their_bytes_in_hexadecimal_digits() {
        assert_eq!(
            name_keys("Ärger 12"),
            ["x61", "x6172", "x61726765", "x6172676572203132", "x6172676572203132"]
        );
        assert_eq!(name_keys("律")[..3], ["xe5", "xe5be", "xe5be8b"]);
        assert_eq!(name_keys(""), ["x"; 5]);
        assert_eq!(name_keys(&"x".repeat(1_000))[4].len(), 449);
    }

    #[test]
    fn the_id_ascends_whichever_way_the_key_goes() {
        for (direction, expected) in [
            (Direction::Ascending, ["bpmStep:asc", "bpmMax:asc", "idStep:asc", "id:asc"]),
            (Direction::Descending, ["bpmStep:desc", "bpmMax:desc", "idStep:asc", "id:asc"]),
        ] {
            assert_eq!(terms(Sort::Bpm, direction), expected);
        }
    }

    proptest! {
        #[test]
        fn no_step_of_a_name_falls_where_the_name_rises(a in "\\PC{0,30}", b in "\\PC{0,30}") {
            let rises = text::sort_key(&a).cmp(&text::sort_key(&b));
            let (a, b) = (name_keys(&a), name_keys(&b));
            prop_assert_eq!(a.cmp(&b), rises);
            prop_assert_eq!(a[4].cmp(&b[4]), rises);
        }

        #[test]
        fn no_step_of_a_number_falls_where_the_number_rises(a in 0.0..1e300_f64, b in 0.0..1e300_f64) {
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            prop_assert!(number_step(low) <= number_step(high));
        }

        #[test]
        fn a_step_of_a_usual_number_holds_about_a_thousand_values(thousandths in 1_000_u32..1_000_000) {
            let number = f64::from(thousandths) / 1_000.0;
            // The next step but one is at most a hundredth and a half away.
            prop_assert!(number_step(number) < number_step(number * 1.017));
        }
    }
}
