//! Random queries.

use chart_index_domain::search::{Bounds, Direction, PageRequest, SearchQuery, Sort};
use chart_index_domain::{KeyCount, SourceKind};
use chart_index_tests::Random;

use crate::catalogue::{WORDS, phrase};

const CREATORS: [&str; 18] = [
    "n",
    "IGHT",
    "_",
    "%",
    "\\",
    "'",
    "旋",
    "é",
    "e",
    "a_b x",
    "100% the",
    "한국",
    "\" OR 1=1",
    "OR",
    "42",
    ", ",
    "👩‍🎤",
    "ß",
];

/// A query over a catalogue of that size.
pub(crate) fn random_query(sets: u32, random: &mut Random) -> SearchQuery {
    let text = optional(random, |random| {
        let text = phrase(random, 3);
        // Often cut in the middle of its last word.
        let keep = if random.one_in(2) { text.chars().count() } else { 1 + random.below(8) as usize };
        text.chars().take(keep).collect::<String>()
    });
    let size = if random.one_in(2) { PageRequest::MAX_SIZE } else { 1 + random.below(60) };
    let number = match random.below(4) {
        0 => 1 + random.below(sets / size + 2),
        1 => 1 + random.below(10),
        2 => 1,
        _ => *random.pick(&[2, 3, 1_000_000, PageRequest::MAX_NUMBER]),
    };
    SearchQuery {
        text: text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()),
        keys: (0..random.below(3))
            .map(|_| KeyCount::try_from(u8::try_from(4 + random.below(4)).unwrap()).unwrap())
            .collect(),
        source: random.one_in(4).then(|| *random.pick(&[SourceKind::AlphaSet, SourceKind::BetaPack])),
        creator: random.one_in(5).then(|| creator(random)),
        bpm: bounds(random, 90, 10),
        length_ms: bounds(random, 50_000, 10_000),
        density_min: random.one_in(5).then(|| f64::from(random.below(30))),
        sort: *random.pick(&Sort::ALL),
        direction: *random.pick(&[Direction::Ascending, Direction::Descending]),
        page: PageRequest::clamped(number.into(), size.into()),
    }
}

fn creator(random: &mut Random) -> String {
    let name = if random.one_in(2) { *random.pick(&CREATORS) } else { *random.pick(&WORDS) };
    name.to_owned()
}

fn optional<T>(random: &mut Random, value: impl FnOnce(&mut Random) -> T) -> Option<T> {
    random.one_in(3).then(|| value(random))
}

fn bounds(random: &mut Random, base: u32, step: u32) -> Bounds {
    if random.one_in(20) {
        return Bounds { min: Some(0.0), max: Some(1e300) };
    }
    let value = |random: &mut Random| {
        f64::from(base + random.below(12) * step) + f64::from(random.below(2)) / 1_000.0
    };
    let min = random.one_in(4).then(|| value(random));
    let max = random.one_in(4).then(|| value(random));
    match (min, max) {
        (Some(min), Some(max)) if min > max => Bounds { min: Some(max), max: Some(min) },
        _ => Bounds { min, max },
    }
}
