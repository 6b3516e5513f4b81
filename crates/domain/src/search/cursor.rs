//! Cursors: where a page of the chartset list begins (docs/api.md, "Chartset list").
//!
//! A cursor is base64url of these bytes. Clients must not interpret it, and another version may refuse it.
//!
//! | Bytes | Content |
//! |---|---|
//! | 1 | The version, 1 |
//! | 1 | The number of the sort |
//! | 1 | The direction: 0 ascending, 1 descending |
//! | 4 | The number of the page that begins here, big-endian |
//! | 8 | The id of the chartset before the page |
//! | rest | The value by which that chartset is sorted, see [`SortValue`] |
//!
//! The sort is in it because a position means nothing in another order.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::{After, Direction, ListPosition, PageRequest, SearchQuery, Sort, SortValue};
use crate::{ChartsetId, text};

const VERSION: u8 = 1;
/// The cursor of the first page.
const START: &str = "start";

impl SearchQuery {
    /// The cursor of the page of this list that begins after the position.
    #[must_use]
    pub fn cursor_after(&self, position: &ListPosition) -> String {
        let number = self.page.number().saturating_add(1).min(PageRequest::MAX_NUMBER);
        encode(self.sort, self.direction, number, position)
    }

    /// The cursor from which this page was read, `start` for the first one; `None` without a cursor.
    #[must_use]
    pub fn cursor(&self) -> Option<String> {
        self.after.as_ref().map(|after| match after {
            After::Start => START.to_owned(),
            After::Position(position) => encode(self.sort, self.direction, self.page.number(), position),
        })
    }
}

fn encode(sort: Sort, direction: Direction, number: u32, position: &ListPosition) -> String {
    let mut bytes = vec![VERSION, sort as u8, direction as u8];
    bytes.extend(number.to_be_bytes());
    bytes.extend(position.id.as_bytes());
    match &position.value {
        SortValue::Integer(integer) => bytes.extend(integer.to_be_bytes()),
        SortValue::Number(number) => bytes.extend(number.to_be_bytes()),
        SortValue::Name(name) => {
            bytes.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
            bytes.extend(name.as_bytes());
        }
        SortValue::Relevance(rank, updated_at_ms) => {
            bytes.push(*rank);
            bytes.extend(updated_at_ms.to_be_bytes());
        }
    }
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Parses `start` or a cursor of a list in this order, and returns it with the number of its page. `None` if it
/// is malformed, of another version, or of a list in another order.
pub(super) fn parse(cursor: &str, sort: Sort, direction: Direction) -> Option<(After, u32)> {
    if cursor == START {
        return Some((After::Start, 1));
    }
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let rest = bytes.strip_prefix(&[VERSION, sort as u8, direction as u8])?;
    let (number, rest) = rest.split_first_chunk()?;
    let (id, value) = rest.split_first_chunk()?;
    let number = u32::from_be_bytes(*number);
    let position = ListPosition { value: parse_value(sort, value)?, id: ChartsetId::from_bytes(*id) };
    (1..=PageRequest::MAX_NUMBER).contains(&number).then_some((After::Position(position), number))
}

fn parse_value(sort: Sort, bytes: &[u8]) -> Option<SortValue> {
    match sort {
        Sort::Updated | Sort::Length | Sort::Rating | Sort::Notes => {
            bytes.try_into().ok().map(|bytes| SortValue::Integer(i64::from_be_bytes(bytes)))
        }
        Sort::Bpm | Sort::MainBpm | Sort::Density => {
            let number = f64::from_be_bytes(bytes.try_into().ok()?);
            number.is_finite().then_some(SortValue::Number(number))
        }
        Sort::Title | Sort::Artist => {
            let (length, name) = bytes.split_first()?;
            let is_whole = name.len() == usize::from(*length) && name.len() <= text::MAX_SORT_KEY_BYTES;
            std::str::from_utf8(name).ok().filter(|_| is_whole).map(|name| SortValue::Name(name.to_owned()))
        }
        Sort::Relevance => {
            let (rank, updated_at_ms) = bytes.split_first()?;
            Some(SortValue::Relevance(*rank, i64::from_be_bytes(updated_at_ms.try_into().ok()?)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::parse_query_string;

    fn position(value: SortValue) -> ListPosition {
        ListPosition { value, id: ChartsetId::from_bytes([0xa1; 8]) }
    }

    fn positions() -> [(Sort, ListPosition); 10] {
        [
            (Sort::Updated, position(SortValue::Integer(1_790_000_000_000))),
            (Sort::Title, position(SortValue::Name("旋律".repeat(37)))),
            (Sort::Artist, position(SortValue::Name(String::new()))),
            (Sort::Bpm, position(SortValue::Number(180.125))),
            (Sort::MainBpm, position(SortValue::Number(174.0))),
            (Sort::Length, position(SortValue::Integer(64_100))),
            (Sort::Density, position(SortValue::Number(f64::MAX))),
            (Sort::Rating, position(SortValue::Integer(527))),
            (Sort::Notes, position(SortValue::Integer(1_234))),
            (Sort::Relevance, position(SortValue::Relevance(1, -1))),
        ]
    }

    fn parsed(sort: Sort, cursor: &str) -> Result<SearchQuery, String> {
        let query_string = format!("q=a&sort={}&after={cursor}", sort.as_str());
        parse_query_string(&query_string).map_err(|error| error.to_string())
    }

    #[test]
    fn cursors_of_every_sort_are_read_back() {
        for (sort, position) in positions() {
            let first = parsed(sort, "start").unwrap();
            assert_eq!((&first.after, first.page.number(), first.offset()), (&Some(After::Start), 1, 0));
            let second = parsed(sort, &first.cursor_after(&position)).unwrap();
            assert_eq!(second.after, Some(After::Position(position.clone())));
            assert_eq!((second.page.number(), second.offset()), (2, 0));
            assert_eq!(second.cursor().unwrap(), first.cursor_after(&position));
        }
    }

    /// Clients store cursors: a change of these bytes needs another version.
    #[test]
    fn cursor_of_version_1_has_these_bytes() {
        let cursor = SearchQuery::default().cursor_after(&positions()[0].1);
        assert_eq!(cursor, "AQABAAAAAqGhoaGhoaGhAAABoMRQbAA");
        let sorts = positions().map(|(sort, _)| sort as u8);
        assert_eq!(sorts, [0, 1, 2, 3, 9, 4, 5, 7, 8, 6]);
        assert_eq!([Direction::Ascending as u8, Direction::Descending as u8], [0, 1]);
    }

    #[test]
    fn malformed_cursors_are_refused() {
        let cursors = positions()
            .map(|(sort, position)| (sort, parsed(sort, "start").unwrap().cursor_after(&position)));
        for (sort, cursor) in &cursors {
            let mut malformed = vec![
                String::from("Start"),
                cursor[1..].to_owned(),
                format!("{cursor}="),
                format!("{cursor}%2B"),
                format!("B{}", &cursor[1..]),
                cursor[..20].to_owned(),
            ];
            malformed
                .extend(cursors.iter().filter(|(other, _)| other != sort).map(|(_, cursor)| cursor.clone()));
            for cursor in malformed {
                let error = parsed(*sort, &cursor).unwrap_err();
                assert!(error.starts_with("after: accepts start"), "{cursor}: {error}");
            }
            let reversed = format!("q=a&sort={}&after={cursor}&order=", sort.as_str());
            let order = if sort.default_direction() == Direction::Ascending { "desc" } else { "asc" };
            assert!(parse_query_string(&(reversed + order)).is_err(), "{sort:?}");
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let query =
            |sort| SearchQuery { sort, direction: sort.default_direction(), ..SearchQuery::default() };
        for (sort, value) in [
            (Sort::Bpm, SortValue::Number(f64::NAN)),
            (Sort::Density, SortValue::Number(f64::INFINITY)),
            (Sort::Title, SortValue::Name("x".repeat(225))),
            (Sort::Title, SortValue::Number(f64::from_bits(u64::MAX))),
        ] {
            let cursor = query(sort).cursor_after(&position(value.clone()));
            assert!(parsed(sort, &cursor).is_err(), "{value:?}");
        }
        let zero = encode(Sort::Updated, Direction::Descending, 0, &positions()[0].1);
        assert!(parsed(Sort::Updated, &zero).is_err());
        let last = encode(Sort::Updated, Direction::Descending, PageRequest::MAX_NUMBER, &positions()[0].1);
        let last = parsed(Sort::Updated, &last).unwrap();
        assert_eq!(last.cursor(), Some(last.cursor_after(&positions()[0].1)));
    }

    #[test]
    fn cursor_excludes_a_page_number() {
        let error = parse_query_string("after=start&page=1").unwrap_err();
        assert_eq!(error.parameter, "after");
        assert!(parse_query_string("after=&page=2").unwrap().after.is_none());
    }
}
