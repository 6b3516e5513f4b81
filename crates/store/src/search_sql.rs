//! Builds the statements of a search.

use chart_index_domain::search::{Bounds, Direction, KeySet, PageRequest, SearchQuery, Sort};
use chart_index_domain::{KeyCount, text};
use sqlx::{Encode, Postgres, QueryBuilder, Type};

use crate::derived_columns::listed_columns;
use crate::sql_text::{contains_pattern, replace_nul};
use crate::text_search::tsquery;

/// Number of matches from which a text is common: chartsets are tested one by one in the order of the list,
/// instead of sorting all matches. With 300,000 chartsets, a common text matches at least one in 15.
const COMMON_TEXT_MATCHES: u64 = 20_000;
/// Maximum end of a page, in matches, that is read by testing chartsets one by one.
const MAX_TESTED_MATCHES: u64 = 300;
/// Maximum number of matches for part of a creator's name that are found by trigrams and then sorted. In the
/// index of the sort, so few would be too far apart.
const MAX_SORTED_MATCHES: u64 = 5_000;

/// The subquery for a [`CatalogueState`](crate::total_cache::CatalogueState).
macro_rules! catalogue_state {
    () => {
        "(SELECT origin, last_sequence, pending, newest_pending FROM change_feed, (
              SELECT count(*) AS pending, max(transaction_id)::text::bigint AS newest_pending FROM pending_changes
              WHERE transaction_id >= pending_changes_from()
          ) AS pending_changes)"
    };
}
/// Appends the statement for a page: its rows, the total and the state of the catalogue, all of one snapshot.
///
/// It counts if no total is given. Separate subqueries for the count and the page have separate plans: the page
/// is read from the index of its sort up to its end. The page is found by id and sort key; only its own rows
/// are joined with the columns that lists show.
pub(crate) fn push_page(sql: &mut QueryBuilder<Postgres>, query: &SearchQuery, total: Option<u64>) {
    let order = Order::new(query);
    let slice = Slice::new(query.page, total);
    sql.push("SELECT state.*, total, chartset.id, ").push(listed_columns!());
    sql.push(" FROM ").push(catalogue_state!()).push(" AS state CROSS JOIN ");
    match total {
        Some(total) => _ = sql.push("(SELECT ").push_bind(bigint(total)).push(" AS total) AS counted"),
        None => push_total(sql, query),
    }
    sql.push(" LEFT JOIN (");
    match (&order.relevance_to, TextLookup::new(total, &slice)) {
        (Some(text), TextLookup::OneByOne) => push_best_of_ranks(sql, query, text, &order, &slice),
        (_, lookup) => push_list(sql, query, total, lookup, &order),
    }
    sql.push(" ORDER BY ").push(order.terms(slice.from_end));
    sql.push(" LIMIT ").push_bind(bigint(slice.limit));
    sql.push(" OFFSET ").push_bind(bigint(slice.offset));
    sql.push(") AS page ON true LEFT JOIN chartsets AS chartset ON chartset.id = page_id ORDER BY ");
    sql.push(order.terms(false));
}

/// Appends the query for the ids and sort keys of all matches.
fn push_list(
    sql: &mut QueryBuilder<Postgres>,
    query: &SearchQuery,
    total: Option<u64>,
    lookup: TextLookup,
    order: &Order,
) {
    sql.push("SELECT listed.id AS page_id, ");
    order.push_keys(sql);
    sql.push(" FROM ");
    if filters_before_sorting(query, total) {
        // OFFSET 0 keeps the planner from searching for the matches in the index of the sort.
        sql.push("(SELECT listed.* FROM ");
        push_filter(sql, query, TextLookup::Index);
        sql.push(" OFFSET 0) AS listed");
    } else {
        push_filter(sql, query, lookup);
    }
}

/// Appends the query for the ids and sort keys of the matches that a page by relevance may contain: of each
/// rank, as many as there are up to the end of the page. Within a rank the order is that of an index, so only a
/// few of the matches of a common text are read.
fn push_best_of_ranks(
    sql: &mut QueryBuilder<Postgres>,
    query: &SearchQuery,
    text: &str,
    order: &Order,
    slice: &Slice,
) {
    let order_of_rank = Order { relevance_to: None, ..*order };
    sql.push("SELECT page_id, relevance, key FROM (");
    for (position, rank) in Rank::ALL.into_iter().enumerate() {
        sql.push(if position > 0 { ") UNION ALL (SELECT " } else { "(SELECT " });
        sql.push("listed.id AS page_id, ").push(rank.number()).push(" AS relevance, ");
        order_of_rank.push_keys(sql);
        sql.push(" FROM ");
        push_filter(sql, query, TextLookup::OneByOne);
        rank.push_condition(sql, text);
        sql.push(" ORDER BY ").push(order_of_rank.terms(slice.from_end));
        sql.push(" LIMIT ").push_bind(bigint(slice.end()));
    }
    sql.push(")) AS ranks");
}

/// Whether to find the matches first and then sort them. The planner cannot estimate the matches for part of a
/// name.
fn filters_before_sorting(query: &SearchQuery, total: Option<u64>) -> bool {
    query.creator.is_some() && total.is_some_and(|total| total <= MAX_SORTED_MATCHES)
}

/// Appends the statement for the total and the state of the catalogue, both of one snapshot.
pub(crate) fn push_total_with_state(sql: &mut QueryBuilder<Postgres>, query: &SearchQuery) {
    sql.push("SELECT state.*, total FROM ").push(catalogue_state!()).push(" AS state CROSS JOIN ");
    push_total(sql, query);
}

/// Appends a subquery for the number of all matches.
fn push_total(sql: &mut QueryBuilder<Postgres>, query: &SearchQuery) {
    sql.push("(SELECT count(*) AS total FROM ");
    push_filter(sql, query, TextLookup::Index);
    sql.push(") AS counted");
}

fn bigint(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// How the matches of a text are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextLookup {
    /// In the index of the lexemes, all together.
    Index,
    /// By testing chartsets one by one, in the order of the list.
    OneByOne,
}

impl TextLookup {
    fn new(total: Option<u64>, slice: &Slice) -> Self {
        let is_common = total.is_some_and(|total| total >= COMMON_TEXT_MATCHES);
        let is_near = slice.end() <= MAX_TESTED_MATCHES;
        if is_common && is_near { Self::OneByOne } else { Self::Index }
    }
}

/// Appends the table, as `listed`, and the conditions of the query: `shown_chartsets`, which is narrow, or
/// `chartsets`, which also contains the lexemes.
fn push_filter(sql: &mut QueryBuilder<Postgres>, query: &SearchQuery, lookup: TextLookup) {
    let tsquery = query.text.as_deref().and_then(tsquery);
    let is_wide = tsquery.is_some() && lookup == TextLookup::Index;
    match tsquery {
        // A text without words matches nothing (docs/api.md, "Chartset list").
        None if query.text.is_some() => _ = sql.push("shown_chartsets AS listed WHERE false"),
        None => _ = sql.push("shown_chartsets AS listed WHERE true"),
        Some(tsquery) => push_text_filter(sql, tsquery, is_wide),
    }
    if !query.keys.is_empty() && is_wide {
        let keys: Vec<i16> = query.keys.iter().map(|keys| keys.get().into()).collect();
        sql.push(" AND keys && ").push_bind(keys);
    } else if !query.keys.is_empty() {
        sql.push(" AND key_counts = ANY (").push_bind(key_counts_with_any(query.keys)).push(")");
    }
    if let Some(source) = query.source {
        sql.push(" AND source_kind = ").push_bind(source.as_str());
    }
    if let Some(creator) = &query.creator {
        let part = text::lower_case(&replace_nul(creator));
        sql.push(" AND creator_search LIKE ").push_bind(contains_pattern(&part));
    }
    push_overlap(sql, ("bpm_min", "bpm_max"), query.bpm.min, query.bpm.max);
    let (shortest, longest) = whole_milliseconds(query.length_ms);
    push_overlap(sql, ("length_min_ms", "length_max_ms"), shortest, longest);
    if let Some(density) = query.density_min {
        sql.push(" AND density_max >= ").push_bind(density);
    }
}

/// Appends the table and the condition that the lexemes of a chartset match.
fn push_text_filter(sql: &mut QueryBuilder<Postgres>, tsquery: String, is_wide: bool) {
    if is_wide {
        sql.push("chartsets AS listed WHERE shown AND search_words @@ ").push_bind(tsquery).push("::tsquery");
    } else {
        sql.push("shown_chartsets AS listed WHERE EXISTS (SELECT FROM chartsets AS found");
        sql.push(" WHERE found.id = listed.id AND found.search_words @@ ").push_bind(tsquery);
        sql.push("::tsquery)");
    }
}

/// All values of `key_counts` with any of these bits. A list of values lets the planner estimate the number of
/// matches.
fn key_counts_with_any(keys: KeySet) -> Vec<i16> {
    let bits = keys.iter().fold(0_i16, |bits, keys| bits | 1 << keys.get());
    let all: i16 = (KeyCount::MIN..=KeyCount::MAX).map(|keys| 1 << keys).sum();
    (1..=all).filter(|counts| counts & !all == 0 && counts & bits != 0).collect()
}

/// Appends the condition that the range between two columns overlaps the bounds, all ends inclusive.
fn push_overlap<T>(
    sql: &mut QueryBuilder<Postgres>,
    (low, high): (&'static str, &'static str),
    min: Option<T>,
    max: Option<T>,
) where
    T: for<'q> Encode<'q, Postgres> + Type<Postgres>,
{
    if let Some(min) = min {
        sql.push(" AND ").push(high).push(" >= ").push_bind(min);
    }
    if let Some(max) = max {
        sql.push(" AND ").push(low).push(" <= ").push_bind(max);
    }
}

/// Converts the bounds to the type of the columns. A comparison with a float would convert every row and use no
/// index.
#[expect(clippy::cast_possible_truncation, reason = "the parser clamps bounds to 1e15, and a cast saturates")]
fn whole_milliseconds(bounds: Bounds) -> (Option<i64>, Option<i64>) {
    (bounds.min.map(|min| min.ceil() as i64), bounds.max.map(|max| max.floor() as i64))
}

/// The rows of a page, counted from one end of the list.
#[derive(Debug, PartialEq, Eq)]
struct Slice {
    limit: u64,
    offset: u64,
    from_end: bool,
}

impl Slice {
    /// Counts from the nearer end if the total is known, so that at most half of the list is skipped.
    fn new(page: PageRequest, total: Option<u64>) -> Self {
        let (size, before) = (u64::from(page.size()), page.offset());
        let Some(total) = total else { return Self { limit: size, offset: before, from_end: false } };
        let limit = size.min(total.saturating_sub(before));
        let after = total.saturating_sub(before).saturating_sub(limit);
        if limit > 0 && after < before {
            Self { limit, offset: after, from_end: true }
        } else {
            // After the last page the result is empty, so no rows need to be skipped.
            Self { limit, offset: if limit == 0 { 0 } else { before }, from_end: false }
        }
    }

    /// The number of rows up to the end of the page.
    const fn end(&self) -> u64 {
        self.offset.saturating_add(self.limit)
    }
}

/// How well a chartset matches the text: the first key of an order by relevance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rank {
    /// The folded title is the text.
    Title,
    /// The folded title starts with the text.
    StartOfTitle,
    Other,
}

impl Rank {
    const ALL: [Self; 3] = [Self::Title, Self::StartOfTitle, Self::Other];

    const fn number(self) -> &'static str {
        match self {
            Self::Title => "2",
            Self::StartOfTitle => "1",
            Self::Other => "0",
        }
    }

    /// Appends the condition that chartsets of this rank, and no others, meet.
    fn push_condition(self, sql: &mut QueryBuilder<Postgres>, text: &str) {
        let text = || text.to_owned();
        match self {
            Self::Title => _ = sql.push(" AND title_sort = ").push_bind(text()),
            Self::StartOfTitle => {
                sql.push(" AND starts_with(title_sort, ").push_bind(text());
                sql.push(") AND title_sort <> ").push_bind(text());
            }
            Self::Other => _ = sql.push(" AND NOT starts_with(title_sort, ").push_bind(text()).push(")"),
        }
    }
}

/// The order of a page: one key, or the relevance and then the time of the last change.
struct Order {
    /// The folded text, if the order is by relevance.
    relevance_to: Option<String>,
    column: &'static str,
    direction: Direction,
}

impl Order {
    fn new(query: &SearchQuery) -> Self {
        let column = match query.sort {
            Sort::Updated | Sort::Relevance => "updated_at_ms",
            Sort::Title => "title_sort",
            Sort::Artist => "artist_sort",
            Sort::Bpm => "bpm_max",
            Sort::Length => "length_max_ms",
            Sort::Density => "density_max",
        };
        let relevance_to = match (query.sort, &query.text) {
            (Sort::Relevance, Some(text)) => Some(text::sort_key(&replace_nul(text))),
            _ => None,
        };
        Self { relevance_to, column, direction: query.direction }
    }

    /// Appends the sort keys to the selected columns.
    fn push_keys(&self, sql: &mut QueryBuilder<Postgres>) {
        if let Some(text) = &self.relevance_to {
            sql.push("CASE WHEN title_sort = ").push_bind(text.clone());
            sql.push(" THEN 2 WHEN starts_with(title_sort, ").push_bind(text.clone());
            sql.push(") THEN 1 ELSE 0 END AS relevance, ");
        }
        sql.push("listed.").push(self.column).push(" AS key");
    }

    /// The terms of `ORDER BY`, or of the reverse order. Ties are ordered by ascending id in both directions of
    /// the key; the reverse order has descending ids.
    fn terms(&self, reversed: bool) -> String {
        let (direction, id_direction) = match (self.direction, reversed) {
            (Direction::Ascending, false) => ("asc", "asc"),
            (Direction::Descending, false) => ("desc", "asc"),
            (Direction::Ascending, true) => ("desc", "desc"),
            (Direction::Descending, true) => ("asc", "desc"),
        };
        let relevance = match self.relevance_to {
            Some(_) => format!("relevance {direction}, "),
            None => String::new(),
        };
        format!("{relevance}key {direction}, page_id {id_direction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_counts_include_every_combination() {
        let values = |keys: &[u8]| {
            key_counts_with_any(keys.iter().map(|keys| KeyCount::try_from(*keys).unwrap()).collect())
        };
        assert_eq!(values(&[7]), [128, 144, 160, 176, 192, 208, 224, 240]);
        assert_eq!(values(&[4, 5, 6, 7]).len(), 15);
        assert_eq!(values(&[4, 5]).len(), 12);
    }

    #[test]
    fn pages_are_read_from_the_nearer_end() {
        let slice = |limit, offset, from_end| Slice { limit, offset, from_end };
        for (page, total, expected) in [
            (1, None, slice(30, 0, false)),
            (9, None, slice(30, 240, false)),
            (1, Some(100), slice(30, 0, false)),
            (2, Some(90), slice(30, 30, false)),
            (2, Some(89), slice(30, 29, true)),
            (3, Some(100), slice(30, 10, true)),
            (4, Some(100), slice(10, 0, true)),
            (5, Some(100), slice(0, 0, false)),
            (1, Some(0), slice(0, 0, false)),
            (1, Some(7), slice(7, 0, false)),
            (i64::MAX, Some(100), slice(0, 0, false)),
        ] {
            assert_eq!(Slice::new(PageRequest::clamped(page, 30), total), expected, "{page} of {total:?}");
        }
    }
}
