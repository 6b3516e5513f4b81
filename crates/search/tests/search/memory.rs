//! A search engine written for clarity: it looks at every set.

use std::cmp::Ordering;

use async_trait::async_trait;
use chart_index_domain::search::{
    Bounds, ChartsetPage, Direction, Engine, Generation, IndexedChartset, ListItem, SearchIndex, SearchQuery,
    Sort,
};
use chart_index_domain::{Chartset, ReadError, text};

/// The engine that the others have to agree with.
pub(crate) struct MemorySearch(pub(crate) Vec<IndexedChartset>);

#[async_trait]
impl SearchIndex for MemorySearch {
    fn engine(&self) -> Engine {
        Engine::Postgres
    }

    fn generation(&self) -> Generation {
        Generation::default()
    }

    async fn search(&self, query: &SearchQuery, _: Generation) -> Result<ChartsetPage, ReadError> {
        let mut found: Vec<&IndexedChartset> = self.0.iter().filter(|set| matches(set, query)).collect();
        found.sort_by(|a, b| compare(a, b, query));
        let offset = usize::try_from(query.page.offset()).unwrap();
        let page = found.iter().skip(offset).take(query.page.size() as usize);
        let items = page.map(|set| ListItem::of(&set.chartset).unwrap()).collect();
        Ok(ChartsetPage { items, total: found.len() as u64 })
    }
}

fn matches(indexed: &IndexedChartset, query: &SearchQuery) -> bool {
    let set = &indexed.chartset;
    let creator = text::lower_case(&set.creator);
    (query.keys.is_empty() || query.keys.iter().any(|keys| set.keys.contains(&keys)))
        && query.source.is_none_or(|kind| set.source.as_ref().is_some_and(|source| source.kind == kind))
        && query.creator.as_ref().is_none_or(|part| creator.contains(&text::lower_case(part)))
        && overlaps(query.bpm, set.bpm_min, set.bpm_max)
        && overlaps(query.length_ms, set.length_min_ms.into(), set.length_max_ms.into())
        && query.density_min.is_none_or(|density| set.density_max >= density)
        && query.text.as_ref().is_none_or(|text| matches_text(indexed, text))
}

fn overlaps(bounds: Bounds, low: f64, high: f64) -> bool {
    bounds.min.is_none_or(|min| high >= min) && bounds.max.is_none_or(|max| low <= max)
}

fn matches_text(indexed: &IndexedChartset, text: &str) -> bool {
    let (set, keywords) = (&indexed.chartset, &indexed.keywords);
    let names = [&set.title, &set.artist, &set.creator];
    let texts = names.into_iter().chain(&keywords.tags).chain(&keywords.romanised_names);
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

/// 2 for the title itself, 1 for its beginning.
fn relevance(set: &Chartset, text: &str) -> u8 {
    let (title, text) = (text::sort_key(&set.title), text::sort_key(text));
    u8::from(title.starts_with(&text)) + u8::from(title == text)
}

fn compare(a: &IndexedChartset, b: &IndexedChartset, query: &SearchQuery) -> Ordering {
    let updated = a.updated_at_ms.cmp(&b.updated_at_ms);
    let (a, b) = (&a.chartset, &b.chartset);
    let keys = match (query.sort, &query.text) {
        (Sort::Relevance, Some(text)) => relevance(a, text).cmp(&relevance(b, text)).then(updated),
        (Sort::Updated | Sort::Relevance, _) => updated,
        (Sort::Title, _) => text::sort_key(&a.title).cmp(&text::sort_key(&b.title)),
        (Sort::Artist, _) => text::sort_key(&a.artist).cmp(&text::sort_key(&b.artist)),
        (Sort::Bpm, _) => a.bpm_max.total_cmp(&b.bpm_max),
        (Sort::Length, _) => a.length_max_ms.cmp(&b.length_max_ms),
        (Sort::Density, _) => a.density_max.total_cmp(&b.density_max),
    };
    let keys = if query.direction == Direction::Descending { keys.reverse() } else { keys };
    keys.then(a.id.cmp(&b.id))
}
