//! Links to the pages of a list.

use chart_index_domain::search::ListPosition;

use crate::format;
use crate::list_query::ListQuery;

/// The pages of a list with more than one.
#[derive(Debug)]
pub(crate) struct Pagination {
    pub(crate) links: Vec<PageLink>,
    pub(crate) previous: Option<String>,
    pub(crate) next: Option<String>,
    /// The number of the last page.
    pub(crate) last: u64,
    /// The parameters of the list, for the form that goes to a page.
    pub(crate) parameters: Vec<(&'static str, String)>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PageLink {
    pub(crate) label: String,
    pub(crate) href: String,
    pub(crate) is_current: bool,
    /// Whether pages before this one are left out.
    pub(crate) follows_gap: bool,
}

impl Pagination {
    /// The pages of a list with this many sets; `None` if it has a single page, which is shown.
    ///
    /// The next page begins after the last set of this one, whatever is added before it. The page after one
    /// that was asked for by number has the next number. So have pages with a text: a cursor leads to
    /// PostgreSQL, which tolerates no typos.
    pub(crate) fn new(query: &ListQuery, total: u64, next: Option<&ListPosition>) -> Option<Self> {
        let (current, last) = (u64::from(query.search.page.number()), last_page(query, total));
        let has_cursor = query.search.after.is_some();
        if last <= 1 && current <= 1 && !has_cursor {
            return None;
        }
        let continues = has_cursor || current == 1 && query.search.text.is_none();
        let after = next.filter(|_| continues).map(|position| query.after(position).path());
        let path = |number: u64| query.with_page(u32::try_from(number).unwrap_or(u32::MAX)).path();
        let shown = (1..=last).filter(|number| is_shown(*number, current, last)).collect::<Vec<_>>();
        let mut before = 0;
        let links = shown.into_iter().map(|number| {
            let follows_gap = number != before + 1;
            before = number;
            PageLink {
                label: format::count(number),
                href: path(number),
                is_current: number == current,
                follows_gap,
            }
        });
        let parameters = query.parameters().into_iter().filter(|(name, _)| !["after", "page"].contains(name));
        Some(Self {
            links: links.collect(),
            previous: (current > 1).then(|| path((current - 1).min(last))),
            next: after.or_else(|| (!has_cursor && current < last).then(|| path(current + 1))),
            last,
            parameters: parameters.map(|(name, value)| (name, value.into_owned())).collect(),
        })
    }
}

/// The number of the last page of a list with this many sets.
pub(crate) fn last_page(query: &ListQuery, total: u64) -> u64 {
    total.div_ceil(u64::from(query.search.page.size())).max(1)
}

/// The first, the last, and two on each side of the current page.
const fn is_shown(number: u64, current: u64, last: u64) -> bool {
    number == 1 || number == last || number.abs_diff(current) <= 2
}

#[cfg(test)]
mod tests {
    use chart_index_domain::ChartsetId;
    use chart_index_domain::search::SortValue;

    use super::*;

    fn pages(page: u32, total: u64) -> Option<Pagination> {
        Pagination::new(&ListQuery::parse(&format!("q=a&page={page}")).unwrap().query, total, None)
    }

    fn labels(page: u32, total: u64) -> String {
        let links = pages(page, total).unwrap().links;
        let label = |link: &PageLink| {
            let gap = if link.follows_gap { "…" } else { "" };
            if link.is_current { format!("{gap}[{}]", link.label) } else { format!("{gap}{}", link.label) }
        };
        links.iter().map(label).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn first_last_and_neighbours_are_linked() {
        assert!(pages(1, 30).is_none() && pages(1, 0).is_none());
        for (page, total, expected) in [
            (1, 31, "[1] 2"),
            (1, 30_000, "[1] 2 3 …1,000"),
            (500, 30_000, "1 …498 499 [500] 501 502 …1,000"),
            (4, 300, "1 2 3 [4] 5 6 …10"),
            (99, 60, "1 …2"),
        ] {
            assert_eq!(labels(page, total), expected.replace("1 …2", "1 2"), "page {page} of {total}");
        }
    }

    #[test]
    fn previous_and_next_lead_to_pages_that_exist() {
        let hrefs = |page, total| pages(page, total).map(|pages| (pages.previous, pages.next)).unwrap();
        assert_eq!(hrefs(1, 90), (None, Some("/?page=2&q=a".to_owned())));
        assert_eq!(hrefs(3, 90), (Some("/?page=2&q=a".to_owned()), None));
        assert_eq!(hrefs(99, 90), (Some("/?page=3&q=a".to_owned()), None));
        assert_eq!(hrefs(2, 90).0.as_deref(), Some("/?q=a"));
    }

    #[test]
    fn next_page_begins_after_the_last_set() {
        let value = SortValue::Integer(7);
        let position = ListPosition { value, id: ChartsetId::from_bytes([0xa1; 8]) };
        let next = |query_string: &str, position: Option<&ListPosition>| {
            let query = ListQuery::parse(query_string).unwrap().query;
            Pagination::new(&query, 90, position).unwrap().next
        };
        let second = "/?after=AQABAAAAAqGhoaGhoaGhAAAAAAAAAAc&keys=4";
        let third = "after=AQABAAAAA6GhoaGhoaGhAAAAAAAAAAc&keys=4";
        for (query, position, expected) in [
            ("keys=4", Some(&position), Some(second)),
            ("keys=4", None, Some("/?keys=4&page=2")),
            ("keys=4&page=2", Some(&position), Some("/?keys=4&page=3")),
            ("q=a", Some(&position), Some("/?page=2&q=a")),
            (third, None, None),
        ] {
            assert_eq!(next(query, position).as_deref(), expected, "{query}");
        }
        let query = ListQuery::parse(third).unwrap().query;
        let pages = Pagination::new(&query, 90, Some(&position)).unwrap();
        assert_eq!(pages.previous.as_deref(), Some("/?keys=4&page=2"));
        assert_eq!(pages.links.iter().find(|link| link.is_current).unwrap().label, "3");
        assert_eq!(pages.parameters, [("keys", "4".to_owned())]);
    }
}
