//! The order of a list, and the rows of a page in it.

use chart_index_domain::search::{After, Direction, ListPosition, SearchQuery, Sort, SortValue};
use chart_index_domain::text;
use sqlx::{Postgres, QueryBuilder};

use crate::schema::sql_text::replace_nul;

/// Pages up to this offset are read from the start of the list, and can be read together with their total.
pub(crate) const MAX_OFFSET_FROM_START: u64 = 1_000;

/// The rows of a page, counted from one end of the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) limit: u64,
    pub(crate) offset: u64,
    pub(crate) from_end: bool,
}

impl Slice {
    /// Counts a page at a higher offset than [`MAX_OFFSET_FROM_START`] from the nearer end if the total is
    /// known, so that at most half of the list is skipped. An old total moves such a page by as many rows as it
    /// differs.
    pub(crate) fn new(query: &SearchQuery, total: Option<u64>) -> Self {
        let (size, before) = (u64::from(query.page.size()), query.offset());
        let from_start = Self { limit: size, offset: before, from_end: false };
        if query.after.is_some() {
            // One more shows whether the list continues.
            return Self { limit: size + 1, offset: 0, from_end: false };
        }
        let Some(total) = total.filter(|_| before > MAX_OFFSET_FROM_START) else { return from_start };
        if before > total {
            // The result is empty, so no rows need to be skipped.
            return Self { limit: 0, offset: 0, from_end: false };
        }
        let limit = size.min(total - before);
        let after = total - before - limit;
        if after < before { Self { limit, offset: after, from_end: true } } else { from_start }
    }

    /// The number of rows up to the end of the page.
    pub(crate) const fn end(&self) -> u64 {
        self.offset.saturating_add(self.limit)
    }
}

/// The position after which the page begins.
pub(crate) const fn position(query: &SearchQuery) -> Option<&ListPosition> {
    match &query.after {
        Some(After::Position(position)) => Some(position),
        _ => None,
    }
}

/// The keys of the chartsets of a part of a list, compared with the position after which a page begins.
#[derive(Clone, Copy)]
pub(crate) enum Range {
    All,
    /// That of the position; their ids are after its id.
    Tied,
    /// After that of the position.
    After,
}

/// How well a chartset matches the text: the first key of an order by relevance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    /// The folded title is the text.
    Title,
    /// The folded title starts with the text.
    StartOfTitle,
    Other,
}

impl Rank {
    const ALL: [Self; 3] = [Self::Title, Self::StartOfTitle, Self::Other];

    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Title => 2,
            Self::StartOfTitle => 1,
            Self::Other => 0,
        }
    }

    /// `None` for a rank that does not exist, as in a cursor that someone made up.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|rank| rank.number() == number)
    }

    /// Appends the condition that chartsets of this rank, and no others, meet.
    pub(crate) fn push_condition(self, sql: &mut QueryBuilder<Postgres>, text: &str) {
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
pub(crate) struct Order {
    /// The folded text, if the order is by relevance.
    pub(crate) relevance_to: Option<String>,
    pub(crate) column: &'static str,
    pub(crate) direction: Direction,
}

impl Order {
    pub(crate) fn new(query: &SearchQuery) -> Self {
        let column = match query.sort {
            Sort::Updated | Sort::Relevance => "updated_at_ms",
            Sort::Title => "title_sort",
            Sort::Artist => "artist_sort",
            Sort::Bpm => "bpm_max",
            Sort::MainBpm => "bpm_main_max",
            Sort::Length => "length_max_ms",
            Sort::Density => "density_max",
            Sort::Rating => "rating_max",
            Sort::Notes => "notes_max",
        };
        let relevance_to = match (query.sort, &query.text) {
            (Sort::Relevance, Some(text)) => Some(text::sort_key(&replace_nul(text))),
            _ => None,
        };
        Self { relevance_to, column, direction: query.direction }
    }

    /// The ranks of an order by relevance, in the order of the list; else a single `None`.
    pub(crate) fn ranks(&self) -> Vec<Option<Rank>> {
        match (&self.relevance_to, self.direction) {
            (None, _) => vec![None],
            (Some(_), Direction::Descending) => Rank::ALL.map(Some).into(),
            (Some(_), Direction::Ascending) => Rank::ALL.map(Some).into_iter().rev().collect(),
        }
    }

    /// Appends the sort keys to the selected columns of `shown_chartsets`.
    pub(crate) fn push_keys(&self, sql: &mut QueryBuilder<Postgres>) {
        self.push_relevance(sql);
        sql.push("listed.").push(self.column).push(" AS key");
    }

    /// Appends the sort keys as expressions, so that the planner cannot read the list in the order of an index.
    pub(crate) fn push_keys_without_index(&self, sql: &mut QueryBuilder<Postgres>) {
        let column = self.column;
        self.push_relevance(sql);
        sql.push(format_args!("coalesce(listed.{column}, listed.{column}) AS key"));
    }

    /// Appends the sort keys to the selected columns of `chartsets`, which does not have all of them.
    pub(crate) fn push_keys_of_chartsets(&self, sql: &mut QueryBuilder<Postgres>) {
        if !matches!(self.column, "bpm_main_max" | "rating_max" | "notes_max") {
            return self.push_keys(sql);
        }
        self.push_relevance(sql);
        let column = self.column;
        sql.push(format_args!(
            "(SELECT shown.{column} FROM shown_chartsets AS shown WHERE shown.id = listed.id) AS key"
        ));
    }

    fn push_relevance(&self, sql: &mut QueryBuilder<Postgres>) {
        if let Some(text) = &self.relevance_to {
            sql.push("CASE WHEN title_sort = ").push_bind(text.clone());
            sql.push(" THEN 2 WHEN starts_with(title_sort, ").push_bind(text.clone());
            sql.push(") THEN 1 ELSE 0 END AS relevance, ");
        }
    }

    /// Appends the condition that a match is after the position.
    pub(crate) fn push_is_after(
        &self,
        sql: &mut QueryBuilder<Postgres>,
        ListPosition { value, id }: &ListPosition,
    ) {
        let after = self.after();
        if let SortValue::Relevance(rank, _) = value {
            let rank = i32::from(*rank);
            sql.push("(relevance")
                .push(after)
                .push_bind(rank)
                .push(" OR relevance = ")
                .push_bind(rank)
                .push(" AND ");
        }
        sql.push("(key").push(after);
        push_value(sql, value);
        sql.push(" OR key = ");
        push_value(sql, value);
        sql.push(" AND page_id > ").push_bind(id.to_string()).push(")");
        if let SortValue::Relevance(..) = value {
            sql.push(")");
        }
    }

    /// Appends the condition that the key of a chartset is in this range.
    pub(crate) fn push_range(
        &self,
        sql: &mut QueryBuilder<Postgres>,
        range: Range,
        ListPosition { value, id }: &ListPosition,
    ) {
        let comparison = match range {
            Range::All => return,
            Range::Tied => " = ",
            Range::After => self.after(),
        };
        sql.push(" AND listed.").push(self.column).push(comparison);
        push_value(sql, value);
        if let Range::Tied = range {
            sql.push(" AND listed.id > ").push_bind(id.to_string());
        }
    }

    /// Compares a key with one that is before it in the list.
    const fn after(&self) -> &'static str {
        match self.direction {
            Direction::Ascending => " > ",
            Direction::Descending => " < ",
        }
    }

    /// The terms of `ORDER BY`, or of the reverse order. Ties are ordered by ascending id in both directions of
    /// the key; the reverse order has descending ids.
    pub(crate) fn terms(&self, reversed: bool) -> String {
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

/// Appends the key of a position.
fn push_value(sql: &mut QueryBuilder<Postgres>, value: &SortValue) {
    match value {
        SortValue::Integer(integer) | SortValue::Relevance(_, integer) => _ = sql.push_bind(*integer),
        SortValue::Number(number) => _ = sql.push_bind(*number),
        SortValue::Name(name) => _ = sql.push_bind(replace_nul(name).into_owned()),
    }
}

pub(crate) fn bigint(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use chart_index_domain::search::PageRequest;

    use super::*;

    #[test]
    fn pages_are_read_from_the_nearer_end() {
        let slice = |limit, offset, from_end| Slice { limit, offset, from_end };
        for (page, total, expected) in [
            (1, None, slice(30, 0, false)),
            (90, None, slice(30, 2_670, false)),
            (1, Some(0), slice(30, 0, false)),
            (1, Some(7), slice(30, 0, false)),
            (34, Some(1_000), slice(30, 990, false)),
            (35, Some(1_010), slice(0, 0, false)),
            (35, Some(1_020), slice(0, 0, true)),
            (35, Some(1_027), slice(7, 0, true)),
            (40, Some(2_370), slice(30, 1_170, false)),
            (40, Some(2_369), slice(30, 1_169, true)),
            (i64::MAX, Some(5_000), slice(0, 0, false)),
        ] {
            let query = SearchQuery { page: PageRequest::clamped(page, 30), ..SearchQuery::default() };
            assert_eq!(Slice::new(&query, total), expected, "{page} of {total:?}");
        }
    }
}
