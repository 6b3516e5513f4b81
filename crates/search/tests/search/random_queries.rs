//! Random queries and their query strings.

use std::fmt::Write as _;

use chart_index_domain::search::{Direction, PageRequest, SearchQuery, Sort, parse_query_string};
use chart_index_domain::{KeyCount, Pattern, SourceKind};
use chart_index_tests::Random;

use crate::random_catalogue::{Entry, WORDS, phrase, thousandths};

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

/// A query, independent of the parser. Numbers are in thousandths, so that they are exact.
#[derive(Debug, Clone, Default)]
pub(crate) struct RandomQuery {
    /// Trimmed; `None` if empty.
    pub(crate) text: Option<String>,
    pub(crate) keys: Vec<KeyCount>,
    pub(crate) source: Option<SourceKind>,
    pub(crate) creator: Option<String>,
    /// Whole tags, without `"`.
    pub(crate) tags: Vec<String>,
    pub(crate) excluded_tags: Vec<String>,
    /// Parts of names, without `"`.
    pub(crate) excluded_creators: Vec<String>,
    /// In thousandths of a beat per minute.
    pub(crate) bpm: Range,
    /// In thousandths of a beat per minute, of one chart.
    pub(crate) bpm_main: Range,
    /// In milliseconds.
    pub(crate) length_ms: Range,
    /// In thousandths of a note per second.
    pub(crate) density_min: Option<u64>,
    /// The same of one chart.
    pub(crate) density_max: Option<u64>,
    /// In hundredths.
    pub(crate) rating: Range,
    /// In percent.
    pub(crate) ln_share: Range,
    pub(crate) notes: Range,
    /// The class, and the least share in percent.
    pub(crate) patterns: Vec<(Pattern, u8)>,
    pub(crate) matches_one_chart: bool,
    pub(crate) includes_rating: bool,
    pub(crate) includes_updated: bool,
    pub(crate) sort: Sort,
    pub(crate) direction: Direction,
    pub(crate) page: PageRequest,
}

/// A range in thousandths, both ends included.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Range {
    pub(crate) min: Option<u64>,
    pub(crate) max: Option<u64>,
}

impl RandomQuery {
    pub(crate) fn query_string(&self) -> String {
        let mut pairs = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            pairs.extend(value.map(|value| format!("{name}={}", percent_encoded(&value))));
        };
        let filters = self.typed_filters();
        match &self.text {
            Some(text) if !filters.is_empty() => add("query", Some(format!("\"{text}\"{filters}"))),
            None if !filters.is_empty() => add("query", Some(filters)),
            text => add("q", text.clone()),
        }
        let keys: Vec<String> = self.keys.iter().map(|keys| keys.get().to_string()).collect();
        add("keys", (!keys.is_empty()).then(|| keys.join(",")));
        add("source", self.source.map(|source| source.as_str().to_owned()));
        add("creator", self.creator.clone());
        add("bpmMin", self.bpm.min.map(decimal));
        add("bpmMax", self.bpm.max.map(decimal));
        add("mainBpmMin", self.bpm_main.min.map(decimal));
        add("mainBpmMax", self.bpm_main.max.map(decimal));
        add("lengthMin", self.length_ms.min.map(decimal));
        add("lengthMax", self.length_ms.max.map(decimal));
        add("densityMin", self.density_min.map(decimal));
        add("densityMax", self.density_max.map(decimal));
        let rating = |hundredths: u64| decimal(hundredths * 10);
        add("ratingMin", self.rating.min.map(rating));
        add("ratingMax", self.rating.max.map(rating));
        let whole = |number: u64| number.to_string();
        add("lnMin", self.ln_share.min.map(whole));
        add("lnMax", self.ln_share.max.map(whole));
        add("notesMin", self.notes.min.map(whole));
        add("notesMax", self.notes.max.map(whole));
        let patterns: Vec<String> =
            self.patterns.iter().map(|(pattern, share)| format!("{}:{share}", pattern.as_str())).collect();
        add("pattern", (!patterns.is_empty()).then(|| patterns.join(",")));
        let included = [self.includes_rating.then_some("rating"), self.includes_updated.then_some("updated")];
        let included: Vec<&str> = included.into_iter().flatten().collect();
        add("include", (!included.is_empty()).then(|| included.join(",")));
        add("match", self.matches_one_chart.then(|| "chart".to_owned()));
        add("sort", Some(self.sort.as_str().to_owned()));
        add("order", Some(self.direction.as_str().to_owned()));
        add("page", Some(self.page.number().to_string()));
        add("perPage", Some(self.page.size().to_string()));
        pairs.join("&")
    }

    /// The filters that only a typed query has.
    fn typed_filters(&self) -> String {
        let required = self.tags.iter().map(|tag| format!(" tag:\"{tag}\""));
        let tags = required.chain(self.excluded_tags.iter().map(|tag| format!(" -tag:\"{tag}\"")));
        tags.chain(self.excluded_creators.iter().map(|part| format!(" -creator:\"{part}\""))).collect()
    }

    /// The query of the engines, parsed from the query string.
    pub(crate) fn parsed(&self) -> SearchQuery {
        let query_string = self.query_string();
        parse_query_string(&query_string).unwrap_or_else(|error| panic!("{query_string}: {error}"))
    }
}

/// The text with every byte percent-encoded.
fn percent_encoded(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        write!(text, "%{byte:02X}").unwrap();
        text
    })
}

/// Thousandths as a decimal number without trailing zeros.
fn decimal(thousandths: u64) -> String {
    let digits = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A random query that is likely to find something in the catalogue.
pub(crate) fn random_query(entries: &[Entry], random: &mut Random) -> RandomQuery {
    let sets = u32::try_from(entries.len()).unwrap();
    let mut text = random.one_in(3).then(|| text(random));
    let (excluded_tags, excluded_creators) =
        if random.one_in(5) { exclusions(entries, random) } else { Default::default() };
    let tags = if random.one_in(8) { exclusions(entries, random).0 } else { Vec::new() };
    if !(tags.is_empty() && excluded_tags.is_empty() && excluded_creators.is_empty()) {
        // In a typed query it is quoted.
        text = text.map(|text| text.replace('"', ""));
    }
    let size = if random.one_in(2) { PageRequest::MAX_SIZE } else { 1 + random.below(60) };
    let number = match random.below(4) {
        0 => 1 + random.below(sets / size + 2),
        1 => 1 + random.below(10),
        2 => 1,
        _ => *random.pick(&[2, 3, 1_000_000, PageRequest::MAX_NUMBER]),
    };
    let density_min =
        random.one_in(5).then(|| thousandths(random.pick(entries).indexed.chartset.density_max));
    let densities = match density_min {
        None => {
            chart_range(random, |random| thousandths(random.pick(entries).indexed.charts[0].density_peak))
        }
        Some(_) => Range::default(),
    };
    RandomQuery {
        text: text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()),
        keys: (0..random.below(3))
            .map(|_| KeyCount::try_from(u8::try_from(4 + random.below(4)).unwrap()).unwrap())
            .collect(),
        source: random.one_in(4).then(|| *random.pick(&[SourceKind::AlphaSet, SourceKind::BetaPack])),
        creator: random.one_in(5).then(|| creator(random)),
        tags,
        excluded_tags,
        excluded_creators,
        bpm: range(random, |random| {
            let set = &random.pick(entries).indexed.chartset;
            thousandths(*random.pick(&[set.bpm_min, set.bpm_max]))
        }),
        bpm_main: chart_range(random, |random| thousandths(random.pick(entries).indexed.charts[0].bpm_main)),
        length_ms: range(random, |random| {
            let set = &random.pick(entries).indexed.chartset;
            u64::from(*random.pick(&[set.length_min_ms, set.length_max_ms]))
        }),
        density_min: density_min.or(densities.min),
        density_max: densities.max,
        rating: chart_range(random, |random| {
            random.pick(entries).indexed.ratings().map_or(0, |(least, _)| least.hundredths().into())
        }),
        ln_share: chart_range(random, |random| random.pick(entries).indexed.charts[0].ln_share.into()),
        notes: chart_range(random, |random| random.pick(entries).indexed.charts[0].notes.into()),
        patterns: if random.one_in(16) { patterns(random) } else { Vec::new() },
        matches_one_chart: random.one_in(16),
        includes_rating: random.one_in(8),
        includes_updated: random.one_in(8),
        sort: *random.pick(Sort::ALL),
        direction: *random.pick(&[Direction::Ascending, Direction::Descending]),
        page: PageRequest::clamped(number.into(), size.into()),
    }
}

/// A few words, often cut within the last one.
fn text(random: &mut Random) -> String {
    let text = phrase(random, 3);
    let length = if random.one_in(2) { text.chars().count() } else { 1 + random.below(8) as usize };
    text.chars().take(length).collect()
}

fn creator(random: &mut Random) -> String {
    let name = if random.one_in(2) { *random.pick(&CREATORS) } else { *random.pick(&WORDS) };
    name.trim().to_owned()
}

/// Up to three tags, most of them of the catalogue, and up to two parts of creators' names.
fn exclusions(entries: &[Entry], random: &mut Random) -> (Vec<String>, Vec<String>) {
    let tag = |random: &mut Random| {
        let tags = &random.pick(entries).indexed.keywords.tags;
        if tags.is_empty() { phrase(random, 1) } else { random.pick(tags).clone() }
    };
    let tags: Vec<String> = (0..random.below(4)).map(|_| tag(random)).collect();
    let creators: Vec<String> = (0..random.below(3)).map(|_| creator(random)).collect();
    let typed = |values: Vec<String>| values.into_iter().filter(|value| !value.contains('"')).collect();
    (typed(tags), typed(creators))
}

/// A range of a number of one chart. It is rare, since Meilisearch does not support two of them.
fn chart_range(random: &mut Random, value: impl Fn(&mut Random) -> u64) -> Range {
    if random.one_in(8) { range(random, value) } else { Range::default() }
}

fn patterns(random: &mut Random) -> Vec<(Pattern, u8)> {
    let mut patterns: Vec<Pattern> = (0..=random.below(2)).map(|_| *random.pick(Pattern::ALL)).collect();
    patterns.sort_unstable();
    patterns.dedup();
    patterns.into_iter().map(|pattern| (pattern, u8::try_from(1 + random.below(20)).unwrap())).collect()
}

/// A range whose ends are values of the catalogue, or differ from one by a thousandth.
fn range(random: &mut Random, value: impl Fn(&mut Random) -> u64) -> Range {
    if random.one_in(20) {
        return Range { min: Some(0), max: Some(1_000_000_000_000) };
    }
    let end = |random: &mut Random| (value(random) + u64::from(random.below(3))).saturating_sub(1);
    let min = random.one_in(4).then(|| end(random));
    let max = random.one_in(4).then(|| end(random));
    match (min, max) {
        (Some(min), Some(max)) if min > max => Range { min: Some(max), max: Some(min) },
        _ => Range { min, max },
    }
}
