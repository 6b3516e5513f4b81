//! The closest titles to a text that no chartset matches.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chart_index_browse::Search;
use chart_index_domain::search::{Direction, PageRequest, SearchQuery, Sort};
use chart_index_domain::text;
use strsim::normalized_damerau_levenshtein;

use crate::format::named;
use crate::set_view::SetItem;

/// A chartset whose title or artist is similar to the text.
#[derive(Debug)]
pub(crate) struct Closest {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) artist: String,
}

/// How many words of the text are searched for by their beginnings, the longest ones.
const MAX_WORDS: usize = 3;
/// Shorter beginnings match too much.
const MIN_CHARACTERS: usize = 3;
const MAX_TITLES: usize = 5;
/// The least similarity, of 1.
const MIN_SIMILARITY: f64 = 0.65;

/// Searches for the beginnings of the words, which typing errors rarely change, and compares what is found with
/// the text. Nothing without a text, or if these searches fail.
pub(crate) async fn titles(search: &Search) -> Vec<Closest> {
    let words = search.query.text.as_deref().map(text::words).unwrap_or_default();
    let mut found = BTreeMap::new();
    for beginning in beginnings(&words) {
        let query = SearchQuery {
            text: Some(beginning),
            sort: Sort::Relevance,
            direction: Direction::Descending,
            page: PageRequest::clamped(1, 60),
            after: None,
            ..SearchQuery::clone(&search.query)
        };
        let items = search.find_page(&query).await.map(|page| page.items).unwrap_or_default();
        let items = items.iter().filter_map(|item| SetItem::read(item).ok());
        found.extend(items.map(|item| (item.id.clone(), item)));
    }
    let similarity =
        |item: &SetItem| similarity(&words, &text::words(&format!("{} {}", item.title, item.artist)));
    let mut similar: Vec<_> = found.into_values().map(|item| (similarity(&item), item)).collect();
    similar.retain(|(similarity, _)| *similarity >= MIN_SIMILARITY);
    similar.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    similar.truncate(MAX_TITLES);
    let closest = |(_, item): (f64, SetItem)| Closest {
        id: item.id,
        title: named(item.title, "Untitled"),
        artist: named(item.artist, "Unknown artist"),
    };
    similar.into_iter().map(closest).collect()
}

/// The first half of each word.
fn beginnings(words: &[String]) -> Vec<String> {
    let mut words: Vec<&String> = words.iter().collect();
    words.sort_by_key(|word| Reverse(word.chars().count()));
    let beginning = |word: &&String| {
        let count = word.chars().count();
        let length = count.div_ceil(2).max(MIN_CHARACTERS);
        (length < count).then(|| word.chars().take(length).collect::<String>())
    };
    words.iter().filter_map(beginning).take(MAX_WORDS).collect()
}

/// The mean over the words of the text of the similarity to the nearest word of a set.
#[expect(clippy::cast_precision_loss, reason = "the words are few")]
fn similarity(words: &[String], of_set: &[String]) -> f64 {
    let nearest = |word: &String| {
        let similarities = of_set.iter().map(|other| normalized_damerau_levenshtein(word, other));
        similarities.fold(0.0, f64::max)
    };
    words.iter().map(nearest).sum::<f64>() / words.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_similar() {
        for (text, of_set, is_similar) in [
            ("valkyre dimention", "Valkyrie dimension Spriggan", true),
            ("kamelia", "Nacreous Snowmelt Camellia", true),
            ("harbour nights", "Harbour Lights Paper Lanterns", true),
            ("valkyre dimention", "Valley of the Dinosaurs", false),
            ("harbour", "Step It Shirobon", false),
        ] {
            let similarity = similarity(&text::words(text), &text::words(of_set));
            assert_eq!(similarity >= MIN_SIMILARITY, is_similar, "{text}: {similarity}");
        }
    }

    #[test]
    fn longest_words_are_searched_for_by_their_first_half() {
        let beginnings = |text| beginnings(&text::words(text));
        assert_eq!(beginnings("valkyre dimention"), ["dimen", "valk"]);
        assert_eq!(beginnings("it go 冥"), [""; 0]);
        assert_eq!(beginnings("step"), ["ste"]);
    }
}
