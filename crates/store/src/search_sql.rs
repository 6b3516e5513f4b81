//! The statement behind a page of the list.

use chart_index_domain::search::{Bounds, Direction, SearchQuery, Sort};
use chart_index_domain::text;
use sqlx::{Postgres, QueryBuilder};

use crate::columns::listed_columns;
use crate::text_columns::{like_anywhere, storable};
use crate::words::tsquery;

/// One statement for the total and the page, so that both are of one moment.
///
/// Counting and paging apart lets each take its own plan: the page walks the index of its sort and stops, where
/// a common table of all matches would have to be filled first. The page is found by id and key alone, so that
/// the rows before it are skipped inside the index.
pub(crate) fn page_statement(query: &SearchQuery) -> QueryBuilder<Postgres> {
    let order = Order::new(query);
    let mut sql = QueryBuilder::new("SELECT counted.total, chartset.id, ");
    sql.push(listed_columns!()).push(" FROM (SELECT count(*) AS total FROM chartsets WHERE ");
    push_filter(&mut sql, query);
    sql.push(") AS counted LEFT JOIN (SELECT id AS page_id, ");
    order.push_keys(&mut sql);
    sql.push(" FROM chartsets WHERE ");
    push_filter(&mut sql, query);
    sql.push(" ORDER BY ").push(order.terms());
    sql.push(" LIMIT ").push_bind(i64::from(query.page.size()));
    sql.push(" OFFSET ").push_bind(i64::try_from(query.page.offset()).unwrap_or(i64::MAX));
    sql.push(") AS page ON true LEFT JOIN chartsets AS chartset ON chartset.id = page_id ORDER BY ");
    sql.push(order.terms());
    sql
}

/// Every condition of the query, on `chartsets`.
fn push_filter(sql: &mut QueryBuilder<Postgres>, query: &SearchQuery) {
    sql.push("shown");
    if let Some(tsquery) = query.text.as_deref().and_then(tsquery) {
        sql.push(" AND search_words @@ ").push_bind(tsquery).push("::tsquery");
    }
    if !query.keys.is_empty() {
        let keys: Vec<i16> = query.keys.iter().map(|keys| keys.get().into()).collect();
        sql.push(" AND keys && ").push_bind(keys);
    }
    if let Some(source) = query.source {
        sql.push(" AND source_kind = ").push_bind(source.as_str());
    }
    if let Some(creator) = &query.creator {
        let part = text::lower_case(&storable(creator));
        sql.push(" AND creator_search LIKE ").push_bind(like_anywhere(&part));
    }
    push_overlap(sql, "bpm_min", "bpm_max", query.bpm);
    push_overlap(sql, "length_min_ms", "length_max_ms", query.length_ms);
    if let Some(density) = query.density_min {
        sql.push(" AND density_max >= ").push_bind(density);
    }
}

/// The range in the two columns has a value in common with the bounds, both ends inclusive.
fn push_overlap(sql: &mut QueryBuilder<Postgres>, low: &'static str, high: &'static str, bounds: Bounds) {
    if let Some(min) = bounds.min {
        sql.push(" AND ").push(high).push(" >= ").push_bind(min);
    }
    if let Some(max) = bounds.max {
        sql.push(" AND ").push(low).push(" <= ").push_bind(max);
    }
}

/// What a page is ordered by: one key, or how well the text matches and then when the set changed.
struct Order {
    /// The folded text, where the order is by relevance.
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
            (Sort::Relevance, Some(text)) => Some(text::sort_key(&storable(text))),
            _ => None,
        };
        Self { relevance_to, column, direction: query.direction }
    }

    /// Selects the keys of the order beside the id.
    fn push_keys(&self, sql: &mut QueryBuilder<Postgres>) {
        if let Some(text) = &self.relevance_to {
            sql.push("CASE WHEN title_sort = ").push_bind(text.clone());
            sql.push(" THEN 2 WHEN starts_with(title_sort, ").push_bind(text.clone());
            sql.push(") THEN 1 ELSE 0 END AS relevance, ");
        }
        sql.push(self.column).push(" AS key");
    }

    /// The id always ascends, so that ties come in one order whichever way the keys go.
    fn terms(&self) -> String {
        let direction = self.direction.as_str();
        let relevance = match self.relevance_to {
            Some(_) => format!("relevance {direction}, "),
            None => String::new(),
        };
        format!("{relevance}key {direction}, page_id")
    }
}
