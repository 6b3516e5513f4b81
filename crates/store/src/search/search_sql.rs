//! Builds the statements of a search.

use chart_index_domain::search::{Bounds, ChartConditions, ChartValue, KeySet, SearchQuery, Sort, SortValue};
use chart_index_domain::{KeyCount, PublicSource, Rating, SourceKind, text};
use sqlx::{Encode, Postgres, QueryBuilder, Type};

use crate::schema::derived_columns::listed_columns;
use crate::schema::sql_text::{contains_pattern, replace_nul};
use crate::schema::text_search::{excluded_tsquery, required_tsquery};
use crate::search::search_order::{Order, Range, Rank, Slice, bigint, position};

/// Number of matches from which a text is common: chartsets are tested one by one in the order of the list,
/// instead of sorting all matches. With 300,000 chartsets, a common text matches at least one in 15.
const COMMON_TEXT_MATCHES: u64 = 20_000;
/// Maximum end of a page, in matches, that is read by testing chartsets one by one.
const MAX_TESTED_MATCHES: u64 = 300;
/// Maximum number of matches for part of a creator's name that are found by trigrams and then sorted. In the
/// index of the sort, so few would be too far apart.
const MAX_SORTED_MATCHES: u64 = 5_000;
/// The part of more matches, one in this number, up to which a page is read in the index of the sort.
const NEAR_PART: u64 = 32;

/// The subquery for a [`CatalogueState`](crate::search::total_cache::CatalogueState).
const CATALOGUE_STATE: &str = "(SELECT origin, last_sequence FROM change_feed)";

/// Appends the statement for a page: its rows, the total and the state of the catalogue, all of one snapshot.
/// After a cursor there is one row more than the page has, if the list continues.
///
/// It counts if no total is given. Separate subqueries for the count and the page have separate plans: the page
/// is read from the index of its sort up to its end. The page is found by id and sort key; only its own rows
/// are joined with the columns that lists show.
pub(crate) fn push_page(sql: &mut QueryBuilder<Postgres>, query: &SearchQuery, total: Option<u64>) {
    let order = Order::new(query);
    let slice = Slice::new(query, total);
    sql.push("SELECT state.*, total, page.*, chartset.id, ").push(listed_columns!());
    if query.includes_rating {
        sql.push(
            ", (SELECT ARRAY[rating_min, rating_max] FROM shown_chartsets WHERE id = page_id) AS ratings",
        );
    }
    if query.includes_updated {
        sql.push(", chartset.updated_at_ms AS updated");
    }
    sql.push(" FROM ").push(CATALOGUE_STATE).push(" AS state CROSS JOIN ");
    match total {
        Some(total) => _ = sql.push("(SELECT ").push_bind(bigint(total)).push(" AS total) AS counted"),
        None => push_total(sql, query),
    }
    sql.push(" LEFT JOIN (");
    let lookup = Lookup::new(query, total, &slice);
    match Part::in_index_order(query, total, lookup, &order, &slice) {
        Some(parts) => push_parts(sql, query, &parts, &order, &slice),
        None => push_list(sql, query, total, lookup, &order, &slice),
    }
    sql.push(" ORDER BY ").push(order.terms(slice.from_end));
    sql.push(" LIMIT ").push_bind(bigint(slice.limit));
    sql.push(" OFFSET ").push_bind(bigint(slice.offset));
    sql.push(") AS page ON true LEFT JOIN chartsets AS chartset ON chartset.id = page_id ORDER BY ");
    sql.push(order.terms(false));
}

/// Appends the query for the ids and sort keys of all matches, or of those after the position of a cursor.
fn push_list(
    sql: &mut QueryBuilder<Postgres>,
    query: &SearchQuery,
    total: Option<u64>,
    lookup: Lookup,
    order: &Order,
    slice: &Slice,
) {
    let position = position(query);
    if position.is_some() {
        sql.push("SELECT * FROM (");
    }
    sql.push("SELECT listed.id AS page_id, ");
    let sorts_after = filters_before_sorting(query, total, slice);
    let lookup = if sorts_after { Lookup::Index } else { lookup };
    match (is_wide(query, lookup), sorts_after) {
        (true, _) => order.push_keys_of_chartsets(sql),
        (false, true) => order.push_keys_without_index(sql),
        (false, false) => order.push_keys(sql),
    }
    sql.push(" FROM ");
    push_filter(sql, query, lookup);
    if let Some(position) = position {
        sql.push(") AS matches WHERE ");
        order.push_is_after(sql, position);
    }
}

/// A part of a list that an index returns in the order of the list.
struct Part {
    /// The matches of this rank only.
    rank: Option<Rank>,
    range: Range,
}

impl Part {
    /// The parts that make up a list in this order; `None` if its matches are found together and then sorted.
    ///
    /// A list by relevance has a part for each rank: the order within a rank is that of an index, so only a few
    /// of the matches of a common text are read. The rest of a list after a position has two parts: a single
    /// condition would skip all chartsets with the same key as the position.
    fn in_index_order(
        query: &SearchQuery,
        total: Option<u64>,
        lookup: Lookup,
        order: &Order,
        slice: &Slice,
    ) -> Option<Vec<Self>> {
        let position = position(query);
        let has_few = (query.has_words() || query.published_in.is_some()) && lookup == Lookup::Index
            || filters_before_sorting(query, total, slice);
        if has_few || position.is_none() && order.relevance_to.is_none() {
            return None;
        }
        let ranks = order.ranks();
        let Some(position) = position else {
            return Some(ranks.into_iter().map(|rank| Self { rank, range: Range::All }).collect());
        };
        let rank = match position.value {
            SortValue::Relevance(number, _) => Some(Rank::from_number(number)?),
            _ => None,
        };
        let rest = ranks.into_iter().skip_while(|other| *other != rank).skip(1);
        let ranges = [Range::Tied, Range::After].map(|range| Self { rank, range });
        Some(ranges.into_iter().chain(rest.map(|rank| Self { rank, range: Range::All })).collect())
    }
}

/// Appends the query for the ids and sort keys of each part, up to the end of the page.
fn push_parts(
    sql: &mut QueryBuilder<Postgres>,
    query: &SearchQuery,
    parts: &[Part],
    order: &Order,
    slice: &Slice,
) {
    let order_of_part = Order { relevance_to: None, ..*order };
    sql.push("SELECT * FROM (");
    for (index, Part { rank, range }) in parts.iter().enumerate() {
        sql.push(if index > 0 { ") UNION ALL (SELECT " } else { "(SELECT " });
        sql.push("listed.id AS page_id, ");
        if let Some(rank) = rank {
            sql.push(rank.number()).push(" AS relevance, ");
        }
        order_of_part.push_keys(sql);
        sql.push(" FROM ");
        push_filter(sql, query, Lookup::OneByOne);
        if let (Some(rank), Some(text)) = (rank, &order.relevance_to) {
            rank.push_condition(sql, text);
        }
        if let Some(position) = position(query) {
            order.push_range(sql, *range, position);
        }
        sql.push(" ORDER BY ").push(order_of_part.terms(slice.from_end));
        sql.push(" LIMIT ").push_bind(bigint(slice.end()));
    }
    sql.push(")) AS parts");
}

/// Whether to find the matches for part of a name first and then sort them. In the index of the sort, each
/// chartset before the end of the page is looked up in the table. The planner does not know how many these are:
/// it cannot estimate the matches, nor how they are spread over the index.
fn filters_before_sorting(query: &SearchQuery, total: Option<u64>, slice: &Slice) -> bool {
    let Some(total) = total.filter(|_| query.creator.is_some()) else { return false };
    total <= MAX_SORTED_MATCHES || slice.end() > MAX_SORTED_MATCHES.max(total / NEAR_PART)
}

/// Appends the statement for the total and the state of the catalogue, both of one snapshot.
pub(crate) fn push_total_with_state(sql: &mut QueryBuilder<Postgres>, query: &SearchQuery) {
    sql.push("SELECT state.*, total FROM ").push(CATALOGUE_STATE).push(" AS state CROSS JOIN ");
    push_total(sql, query);
}

/// Appends a subquery for the number of all matches.
fn push_total(sql: &mut QueryBuilder<Postgres>, query: &SearchQuery) {
    sql.push("(SELECT count(*) AS total FROM ");
    push_filter(sql, query, Lookup::Index);
    sql.push(") AS counted");
}

/// Appends the statement for the number of matches in each bin of ratings. The bins of a chartset are bits of a
/// number, so that the charts need not be sorted to count it once in each.
pub(crate) fn push_rating_histogram(sql: &mut QueryBuilder<Postgres>, query: &SearchQuery) {
    let query = query.rated();
    for bin in 0..Rating::BINS {
        sql.push(if bin == 0 { "SELECT ARRAY[" } else { ", " });
        sql.push("count(*) FILTER (WHERE bins & ").push(1 << bin).push(" <> 0)");
    }
    sql.push("] FROM (SELECT bit_or(1 << least(chart.rating / ").push(Rating::BIN_WIDTH);
    sql.push(", ")
        .push(Rating::BINS - 1)
        .push(")) AS bins FROM shown_charts AS chart WHERE chartset_id IN (SELECT listed.id FROM ");
    push_chartset_filter(sql, &query, Lookup::Index);
    sql.push(")");
    if let Some(conditions) = query.chart_conditions() {
        push_chart_conditions(sql, &conditions);
    }
    sql.push(" GROUP BY chartset_id) AS rated");
}

/// How the matches of a text, or the chartsets of a set or pack, are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lookup {
    /// In the index of the lexemes or of the sources, all together.
    Index,
    /// By testing chartsets one by one, in the order of the list.
    OneByOne,
}

impl Lookup {
    fn new(query: &SearchQuery, total: Option<u64>, slice: &Slice) -> Self {
        if query.published_in.is_some() {
            return Self::Index;
        }
        let is_common = total.is_some_and(|total| total >= COMMON_TEXT_MATCHES);
        let is_near = slice.end() <= MAX_TESTED_MATCHES;
        if is_common && is_near { Self::OneByOne } else { Self::Index }
    }
}

/// Whether the matches are found in `chartsets`.
fn is_wide(query: &SearchQuery, lookup: Lookup) -> bool {
    (required_tsquery(query).is_some() || query.published_in.is_some()) && lookup == Lookup::Index
}

/// Appends the table, as `listed`, and the conditions of the query: `shown_chartsets`, which is narrow, or
/// `chartsets`, which also contains the lexemes.
fn push_filter(sql: &mut QueryBuilder<Postgres>, query: &SearchQuery, lookup: Lookup) {
    push_chartset_filter(sql, query, lookup);
    if let Some(conditions) = query.chart_conditions() {
        sql.push(" AND EXISTS (SELECT FROM shown_charts AS chart WHERE chart.chartset_id = listed.id");
        push_chart_conditions(sql, &conditions);
        sql.push(")");
        if !is_wide(query, lookup) {
            push_least_sort_key(sql, query.sort, &conditions);
        }
    }
}

/// Appends the table and the conditions, but those for one chart.
fn push_chartset_filter(sql: &mut QueryBuilder<Postgres>, query: &SearchQuery, lookup: Lookup) {
    let tsquery = required_tsquery(query);
    let is_wide = is_wide(query, lookup);
    match tsquery {
        // A text without words matches nothing (docs/api.md, "Chartset list").
        None if query.has_words() => _ = sql.push("shown_chartsets AS listed WHERE false"),
        None if is_wide => _ = sql.push("chartsets AS listed WHERE shown"),
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
    if let Some(PublicSource { kind, reference }) = &query.published_in {
        // A constant: there is an index for each kind.
        let kind = match kind {
            SourceKind::AlphaSet => "'alphaSet'",
            SourceKind::BetaPack => "'betaPack'",
        };
        sql.push(" AND source_kind = ").push(kind).push(" AND source_ref = ").push_bind(reference.as_str());
    }
    if let Some(creator) = &query.creator {
        let part = text::fold_case(&replace_nul(creator));
        sql.push(" AND creator_search LIKE ").push_bind(contains_pattern(&part));
    }
    push_exclusions(sql, query, is_wide);
    push_overlap(sql, ("bpm_min", "bpm_max"), query.bpm.min, query.bpm.max);
    let (shortest, longest) = whole_numbers(query.length_ms);
    push_overlap(sql, ("length_min_ms", "length_max_ms"), shortest, longest);
    if let Some(density) = query.density_min {
        sql.push(" AND density_max >= ").push_bind(density);
    }
}

/// Appends that the sort key is at least what the conditions require of it: a list by rising rating would test
/// all easier chartsets first.
fn push_least_sort_key(sql: &mut QueryBuilder<Postgres>, sort: Sort, conditions: &ChartConditions) {
    for (value, bounds) in &conditions.values {
        match (sort, value) {
            (Sort::Rating, ChartValue::Rating) => {
                push_range(sql, "listed.rating_max", whole_numbers(*bounds).0, None);
            }
            (Sort::Notes, ChartValue::Notes) => {
                push_range(sql, "listed.notes_max", whole_numbers(*bounds).0, None);
            }
            (Sort::MainBpm, ChartValue::MainBpm) => {
                push_range(sql, "listed.bpm_main_max", bounds.min, None);
            }
            _ => {}
        }
    }
}

/// Appends the conditions that nothing is excluded. The chartsets with an excluded title, artist or tag are
/// found in the index of the lexemes, or tested one by one, as the planner chooses.
fn push_exclusions(sql: &mut QueryBuilder<Postgres>, query: &SearchQuery, is_wide: bool) {
    for part in &query.excluded_creators {
        sql.push(" AND creator_search NOT LIKE ").push_bind(contains_pattern(&replace_nul(part)));
    }
    let Some(tsquery) = excluded_tsquery(query) else { return };
    if is_wide {
        sql.push(" AND NOT search_words @@ ").push_bind(tsquery).push("::tsquery");
    } else {
        sql.push(" AND NOT EXISTS (SELECT FROM chartsets AS excluded WHERE excluded.id = listed.id");
        sql.push(" AND excluded.shown AND excluded.search_words @@ ").push_bind(tsquery).push("::tsquery)");
    }
}

/// Appends that `chart` meets these conditions.
fn push_chart_conditions(sql: &mut QueryBuilder<Postgres>, conditions: &ChartConditions) {
    let ChartConditions { keys, values, bpm, length_ms } = conditions;
    if !keys.is_empty() {
        let keys: Vec<i16> = keys.iter().map(|keys| keys.get().into()).collect();
        sql.push(" AND chart.keys = ANY (").push_bind(keys).push(")");
    }
    for (value, bounds) in values {
        match value {
            ChartValue::Density => push_range(sql, "chart.density_peak", bounds.min, bounds.max),
            ChartValue::MainBpm => push_range(sql, "chart.bpm_main", bounds.min, bounds.max),
            ChartValue::Notes => push_whole_range::<i64>(sql, "chart.notes", *bounds),
            ChartValue::Rating => push_whole_range::<i16>(sql, "chart.rating", *bounds),
            ChartValue::LnShare => push_whole_range::<i16>(sql, "chart.ln_share", *bounds),
            ChartValue::RowShare(pattern) => {
                let share = format!("get_byte(chart.row_shares, {})", *pattern as u8);
                push_whole_range::<i32>(sql, &share, *bounds);
            }
        }
    }
    push_overlap(sql, ("chart.bpm_min", "chart.bpm_max"), bpm.min, bpm.max);
    push_whole_range::<i64>(sql, "chart.length_ms", *length_ms);
}

/// Appends the condition that a column of whole numbers is within the bounds.
fn push_whole_range<T>(sql: &mut QueryBuilder<Postgres>, column: &str, bounds: Bounds)
where
    T: TryFrom<i64> + for<'q> Encode<'q, Postgres> + Type<Postgres>,
{
    let (min, max) = whole_numbers(bounds);
    match (min.map(T::try_from).transpose(), max.map(T::try_from).transpose()) {
        (Ok(min), Ok(max)) => push_range(sql, column, min, max),
        // Bounds are not negative. No number is above those of the type.
        (Err(_), _) => _ = sql.push(" AND false"),
        (Ok(min), Err(_)) => {
            push_range(sql, column, min, None);
            sql.push(" AND ").push(column).push(" IS NOT NULL");
        }
    }
}

fn push_range<T>(sql: &mut QueryBuilder<Postgres>, column: &str, min: Option<T>, max: Option<T>)
where
    T: for<'q> Encode<'q, Postgres> + Type<Postgres>,
{
    push_overlap(sql, (column, column), min, max);
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
    (low, high): (&str, &str),
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
#[expect(clippy::cast_possible_truncation, reason = "the parser clamps bounds to 1e12, and a cast saturates")]
fn whole_numbers(bounds: Bounds) -> (Option<i64>, Option<i64>) {
    (bounds.min.map(|min| min.ceil() as i64), bounds.max.map(|max| max.floor() as i64))
}

#[cfg(test)]
mod tests {
    use chart_index_domain::search::parse_query_string;

    use super::*;

    #[test]
    fn deep_pages_of_a_part_of_a_name_are_sorted() {
        let is_sorted = |query: &str, total| {
            let query = parse_query_string(query).unwrap();
            filters_before_sorting(&query, total, &Slice::new(&query, total))
        };
        let common = Some(640_000);
        assert!(is_sorted("creator=a&page=2", Some(5_000)));
        assert!(!is_sorted("creator=a", Some(5_001)));
        assert!(!is_sorted("creator=a&page=600&perPage=30", common));
        assert!(is_sorted("creator=a&page=700&perPage=30", common));
        assert!(!is_sorted("creator=a&page=21300&perPage=30", common), "it is near the end");
        assert!(!is_sorted("keys=7&page=700&perPage=30", common));
    }

    #[test]
    fn key_counts_include_every_combination() {
        let values = |keys: &[u8]| {
            key_counts_with_any(keys.iter().map(|keys| KeyCount::try_from(*keys).unwrap()).collect())
        };
        assert_eq!(values(&[7]), [128, 144, 160, 176, 192, 208, 224, 240]);
        assert_eq!(values(&[4, 5, 6, 7]).len(), 15);
        assert_eq!(values(&[4, 5]).len(), 12);
    }
}
