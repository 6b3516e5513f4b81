//! `PostgresSearch` against a search written for clarity, over a few hundred generated chartsets.

use std::cmp::Ordering;

use chart_index_domain::search::{Bounds, ChartsetPage, Direction, PageRequest, SearchQuery, Sort};
use chart_index_domain::{Charted, Chartset, ChartsetDraft, KeyCount, SourceKind, assemble, text};

use crate::support::{Catalogue, Random, alpha, beta, chart, folder};

const SETS: u32 = 300;
const QUERIES: u32 = 1_500;
const WORDS: [&str; 16] = [
    "night",
    "Nightfall",
    "Café",
    "the",
    "100%",
    "旋律",
    "宙の旋律",
    "Ｃｏｏｌ",
    "a_b",
    "x\\y",
    "it's",
    "ÅNG",
    "7K",
    "東方Project",
    "ноч",
    "n",
];

/// What the oracle knows of a set.
struct Entry {
    set: Chartset,
    updated_at_ms: i64,
}

fn phrase(random: &mut Random) -> String {
    let words = 1 + random.below(3);
    (0..words).map(|_| *random.pick(&WORDS)).collect::<Vec<_>>().join(" ")
}

fn generated(random: &mut Random, number: u32) -> ChartsetDraft {
    let charts = (0..=random.below(3)).map(|nth| {
        let mut draft = chart(number * 4 + nth);
        let numbers = &mut draft.numbers;
        // Few values, so that ties are common.
        numbers.keys = KeyCount::try_from(u8::try_from(4 + random.below(4)).unwrap()).unwrap();
        numbers.bpm_min = f64::from(100 + random.below(8) * 10);
        numbers.bpm_max = numbers.bpm_min + f64::from(random.below(3)) * 12.5;
        numbers.length_ms = 60_000 + random.below(10) * 10_000;
        numbers.density_peak = f64::from(random.below(10)) + 0.125;
        draft.text.title = phrase(random);
        draft.text.artist = phrase(random);
        draft.text.creator = if random.one_in(5) { String::new() } else { phrase(random) };
        draft.text.title_romanised = random.one_in(4).then(|| phrase(random));
        draft.text.tags = (0..random.below(3)).map(|_| phrase(random)).collect();
        draft
    });
    let draft = folder(number.into(), charts.collect::<Vec<_>>());
    let exact = match random.below(3) {
        0 => None,
        1 => Some(alpha(1 + u64::from(number))),
        _ => Some(beta(1 + u64::from(random.below(20)))),
    };
    ChartsetDraft { exact, ..draft }
}

fn entry(draft: &ChartsetDraft, updated_at_ms: i64) -> Entry {
    let charted = |draft: &chart_index_domain::ChartDraft| Charted {
        hash: draft.hash,
        numbers: draft.numbers,
        rox_bytes: draft.rox.as_ref().map_or(0, Vec::len) as u64,
        text: draft.text.clone(),
        declared: draft.declared.clone(),
        alpha_beatmap_id: draft.alpha_beatmap_id,
    };
    let mut charts: Vec<Charted> = draft.charts.iter().map(charted).collect();
    Entry { set: assemble(draft.id, draft.exact.as_ref(), &mut charts).unwrap(), updated_at_ms }
}

fn optional<T>(random: &mut Random, value: impl FnOnce(&mut Random) -> T) -> Option<T> {
    random.one_in(3).then(|| value(random))
}

fn bounds(random: &mut Random, base: u32, step: u32) -> Bounds {
    let min = optional(random, |random| f64::from(base + random.below(10) * step));
    let max = optional(random, |random| f64::from(base + random.below(12) * step));
    match (min, max) {
        (Some(min), Some(max)) if min > max => Bounds { min: Some(max), max: Some(min) },
        _ => Bounds { min, max },
    }
}

fn query(random: &mut Random) -> SearchQuery {
    let text = optional(random, |random| {
        let text = phrase(random);
        // Often cut in the middle of its last word.
        let keep = if random.one_in(2) { text.chars().count() } else { 1 + random.below(8) as usize };
        text.chars().take(keep).collect::<String>()
    });
    let creators = ["n", "IGHT", "_", "%", "\\", "'", "旋", "é", "a_b x", "100% the"];
    SearchQuery {
        text: text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()),
        keys: (0..random.below(3))
            .map(|_| KeyCount::try_from(u8::try_from(4 + random.below(4)).unwrap()).unwrap())
            .collect(),
        source: optional(random, |random| *random.pick(&[SourceKind::AlphaSet, SourceKind::BetaPack])),
        creator: random.one_in(5).then(|| (*random.pick(&creators)).to_owned()),
        bpm: bounds(random, 90, 10),
        length_ms: bounds(random, 50_000, 10_000),
        density_min: optional(random, |random| f64::from(random.below(10)) + 0.125),
        sort: *random.pick(&Sort::ALL),
        direction: *random.pick(&[Direction::Ascending, Direction::Descending]),
        page: PageRequest::clamped((1 + random.below(3)).into(), (1 + random.below(60)).into()),
    }
}

fn overlaps(bounds: Bounds, low: f64, high: f64) -> bool {
    bounds.min.is_none_or(|min| high >= min) && bounds.max.is_none_or(|max| low <= max)
}

fn matches_text(set: &Chartset, text: &str) -> bool {
    let names = [&set.title, &set.artist, &set.creator];
    let texts = names.into_iter().chain(&set.tags).chain(&set.romanised_names);
    let of_set: Vec<String> = texts.flat_map(|text| text::words(text)).collect();
    let of_query = text::words(text);
    of_query.iter().enumerate().all(|(position, word)| {
        let last = position + 1 == of_query.len();
        of_set.iter().any(|candidate| match word.chars().all(text::is_written_without_spaces) {
            true => candidate.contains(word),
            false if last => candidate.starts_with(word),
            false => candidate == word,
        })
    })
}

fn matches(entry: &Entry, query: &SearchQuery) -> bool {
    let set = &entry.set;
    let creator = text::lower_case(&set.creator);
    (query.keys.is_empty() || query.keys.iter().any(|keys| set.keys.contains(&keys)))
        && query.source.is_none_or(|kind| set.source.as_ref().is_some_and(|source| source.kind == kind))
        && query.creator.as_ref().is_none_or(|part| creator.contains(&text::lower_case(part)))
        && overlaps(query.bpm, set.bpm_min, set.bpm_max)
        && overlaps(query.length_ms, set.length_min_ms.into(), set.length_max_ms.into())
        && query.density_min.is_none_or(|density| set.density_max >= density)
        && query.text.as_ref().is_none_or(|text| matches_text(set, text))
}

/// 2 for the title itself, 1 for its beginning.
fn relevance(set: &Chartset, text: &str) -> u8 {
    let (title, text) = (text::fold(&set.title), text::fold(text));
    u8::from(title.starts_with(&text)) + u8::from(title == text)
}

fn compare(a: &Entry, b: &Entry, query: &SearchQuery) -> Ordering {
    let updated = a.updated_at_ms.cmp(&b.updated_at_ms);
    let keys = match (query.sort, &query.text) {
        (Sort::Relevance, Some(text)) => relevance(&a.set, text).cmp(&relevance(&b.set, text)).then(updated),
        (Sort::Updated | Sort::Relevance, _) => updated,
        (Sort::Title, _) => text::fold(&a.set.title).cmp(&text::fold(&b.set.title)),
        (Sort::Artist, _) => text::fold(&a.set.artist).cmp(&text::fold(&b.set.artist)),
        (Sort::Bpm, _) => a.set.bpm_max.total_cmp(&b.set.bpm_max),
        (Sort::Length, _) => a.set.length_max_ms.cmp(&b.set.length_max_ms),
        (Sort::Density, _) => a.set.density_max.total_cmp(&b.set.density_max),
    };
    let keys = if query.direction == Direction::Descending { keys.reverse() } else { keys };
    keys.then(a.set.id.cmp(&b.set.id))
}

fn expected(entries: &[Entry], query: &SearchQuery) -> ChartsetPage {
    let mut found: Vec<&Entry> = entries.iter().filter(|entry| matches(entry, query)).collect();
    found.sort_by(|a, b| compare(a, b, query));
    let offset = usize::try_from(query.page.offset()).unwrap();
    let page = found.iter().skip(offset).take(query.page.size() as usize);
    ChartsetPage { items: page.map(|entry| entry.set.clone()).collect(), total: found.len() as u64 }
}

async fn generated_catalogue(random: &mut Random) -> (Catalogue, Vec<Entry>) {
    let catalogue = Catalogue::create().await;
    let mut entries = Vec::new();
    for number in 1..=SETS {
        let draft = generated(random, number);
        let updated_at_ms = i64::from(random.below(60));
        catalogue.put(&draft, updated_at_ms).await;
        entries.push(entry(&draft, updated_at_ms));
    }
    (catalogue, entries)
}

#[tokio::test]
async fn random_queries_give_what_a_plain_search_gives() {
    let mut random = Random(20_260_101);
    let (catalogue, entries) = generated_catalogue(&mut random).await;
    let mut found = 0;
    for _ in 0..QUERIES {
        let query = query(&mut random);
        let page = catalogue.search(&query).await;
        assert_eq!(page, expected(&entries, &query), "{query:?}");
        found += u32::from(!page.items.is_empty());
    }
    assert!(found > QUERIES / 4, "only {found} queries found anything");
}

#[tokio::test]
async fn paging_through_never_repeats_or_skips_a_set() {
    let mut random = Random(7);
    let (catalogue, entries) = generated_catalogue(&mut random).await;
    for sort in Sort::ALL {
        for direction in [Direction::Ascending, Direction::Descending] {
            let page_of = |number, size| PageRequest::clamped(number, size);
            let whole = |number| SearchQuery {
                sort,
                direction,
                page: page_of(number, 37),
                text: Some("n".into()),
                ..SearchQuery::default()
            };
            let mut listed = Vec::new();
            for number in 1.. {
                let page = catalogue.search(&whole(number)).await;
                if page.items.is_empty() {
                    assert_eq!(page.total, listed.len() as u64);
                    break;
                }
                listed.extend(page.items);
            }
            let all = entries.iter().filter(|entry| matches(entry, &whole(1)));
            let mut all: Vec<&Entry> = all.collect();
            all.sort_by(|a, b| compare(a, b, &whole(1)));
            assert_eq!(listed, all.into_iter().map(|entry| entry.set.clone()).collect::<Vec<_>>());
        }
    }
}
