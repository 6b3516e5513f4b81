//! A search written for clarity: it looks at every set, and knows nothing of query strings, SQL or Meilisearch.

use std::cmp::Ordering;

use chart_index_domain::search::{ChartsetPage, Direction, IndexedChartset, ListItem, Sort};
use chart_index_domain::{Chartset, text};

use crate::catalogue::{Entry, thousandths};
use crate::queries::{Asked, Range};

/// The page that every engine has to give.
pub(crate) fn expected(entries: &[Entry], asked: &Asked) -> ChartsetPage {
    let sets = entries.iter().map(|entry| &entry.indexed);
    let mut found: Vec<&IndexedChartset> = sets.filter(|set| matches(set, asked)).collect();
    found.sort_by(|a, b| compare(a, b, asked));
    let offset = usize::try_from(asked.page.offset()).unwrap();
    let page = found.iter().skip(offset).take(asked.page.size() as usize);
    let items = page.map(|set| ListItem::new(&set.chartset).unwrap()).collect();
    ChartsetPage { items, total: found.len() as u64 }
}

fn matches(indexed: &IndexedChartset, asked: &Asked) -> bool {
    let set = &indexed.chartset;
    let creator = text::lower_case(&set.creator);
    (asked.keys.is_empty() || asked.keys.iter().any(|keys| set.keys.contains(keys)))
        && asked.source.is_none_or(|kind| set.source.as_ref().is_some_and(|source| source.kind == kind))
        && asked.creator.as_ref().is_none_or(|part| creator.contains(&text::lower_case(part)))
        && overlaps(asked.bpm, thousandths(set.bpm_min), thousandths(set.bpm_max))
        && overlaps(asked.length_ms, set.length_min_ms.into(), set.length_max_ms.into())
        && asked.density_min.is_none_or(|density| thousandths(set.density_max) >= density)
        && asked.text.as_ref().is_none_or(|text| matches_text(indexed, text))
}

fn overlaps(range: Range, low: u64, high: u64) -> bool {
    range.min.is_none_or(|min| high >= min) && range.max.is_none_or(|max| low <= max)
}

fn matches_text(indexed: &IndexedChartset, text: &str) -> bool {
    let (set, keywords) = (&indexed.chartset, &indexed.keywords);
    let names = [&set.title, &set.artist, &set.creator];
    let texts = names.into_iter().chain(&keywords.tags).chain(&keywords.romanised_names);
    let of_set: Vec<String> = texts.flat_map(|text| text::words(text)).collect();
    let of_query = text::words(text);
    !of_query.is_empty()
        && of_query.iter().enumerate().all(|(position, word)| {
            let last = position + 1 == of_query.len();
            of_set.iter().any(|candidate| match word.chars().all(text::is_written_without_spaces) {
                true => candidate.contains(word),
                false if last => candidate.starts_with(word),
                false => candidate == word,
            })
        })
}

/// 2 for the title itself, 1 for its beginning.
fn relevance(set: &Chartset, text: &str) -> u8 {
    let (title, text) = (text::sort_key(&set.title), text::sort_key(text));
    u8::from(title.starts_with(&text)) + u8::from(title == text)
}

fn compare(a: &IndexedChartset, b: &IndexedChartset, asked: &Asked) -> Ordering {
    let updated = a.updated_at_ms.cmp(&b.updated_at_ms);
    let (a, b) = (&a.chartset, &b.chartset);
    let keys = match (asked.sort, &asked.text) {
        (Sort::Relevance, Some(text)) => relevance(a, text).cmp(&relevance(b, text)).then(updated),
        (Sort::Updated | Sort::Relevance, _) => updated,
        (Sort::Title, _) => text::sort_key(&a.title).cmp(&text::sort_key(&b.title)),
        (Sort::Artist, _) => text::sort_key(&a.artist).cmp(&text::sort_key(&b.artist)),
        (Sort::Bpm, _) => a.bpm_max.total_cmp(&b.bpm_max),
        (Sort::Length, _) => a.length_max_ms.cmp(&b.length_max_ms),
        (Sort::Density, _) => a.density_max.total_cmp(&b.density_max),
    };
    let keys = if asked.direction == Direction::Descending { keys.reverse() } else { keys };
    keys.then(a.id.cmp(&b.id))
}
