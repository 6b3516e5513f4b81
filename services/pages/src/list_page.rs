//! `GET /`: the list of chartsets.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use askama::Template;
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use chart_index_browse::{ListPage, ListRead, PageFormat, Search};
use chart_index_cache::{CacheKey, Filled};
use chart_index_domain::search::{ChartsetPage, ParameterError, SearchQuery, Sort};
use chart_index_domain::{ChartsetId, ReadError};
use chart_index_http::{ApiError, CachePolicy, ErrorInPage, MediaType, RequestHeaders, TextBody};

use crate::PagesState;
use crate::closest::{self, Closest};
use crate::filter_form::{Chip, FilterForm, chips, describe};
use crate::histogram::Histogram;
use crate::layout::Layout;
use crate::list_query::{ListQuery, View};
use crate::pagination::{Pagination, last_page};
use crate::render::render;
use crate::set_view::{SetItem, SetView};
use crate::shortcuts::Shortcut;
use crate::structured_data::StructuredData;
use crate::{format, list_title};

/// Older pages are shown with the time of their search: the cache revalidates earlier than this unless that
/// fails.
const OUT_OF_DATE: Duration = Duration::from_mins(1);

/// `GET /`. A query that names one chart or chartset leads to its page; one that a form sent leads to the
/// address without its empty fields.
pub(crate) async fn list(
    State(state): State<Arc<PagesState>>,
    RawQuery(query_string): RawQuery,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let query_string = query_string.unwrap_or_default();
    let parsed = match ListQuery::parse(&query_string) {
        Ok(parsed) => parsed,
        Err(error) => return list_without_mistake(&state, query_string, error, &headers).await,
    };
    let shortcut = Shortcut::of_query(&parsed.query.search, &state.source_pages, &state.settings);
    let path = match shortcut {
        Some(shortcut) => shortcut.path(&state.store).await,
        None => None,
    };
    if let Some(path) = path.or_else(|| parsed.is_form.then(|| parsed.query.path())) {
        return Ok(see_other(&path));
    }
    let read = ListRead { cache: &state.cache, headers: &headers };
    let format = Arc::new(HtmlFormat { state: Arc::clone(&state), view: parsed.query.view, mistake: None });
    let page = state.engines.read_page(read, parsed.query.search, &format).await?;
    Ok(respond(page, &headers))
}

/// The list without the parameters that are wrong, with the first error at its field.
async fn list_without_mistake(
    state: &Arc<PagesState>,
    query_string: String,
    error: ParameterError,
    headers: &RequestHeaders,
) -> Result<Response, ApiError> {
    let query = ListQuery::parse_without_mistakes(&query_string, &error);
    let read = ListRead { cache: &state.cache, headers };
    let mistake = Some(Mistake { query_string, error: error.clone() });
    let format = Arc::new(HtmlFormat { state: Arc::clone(state), view: query.view, mistake });
    let page = state.engines.read_page(read, query.search, &format).await?;
    let html = String::from_utf8_lossy(page.body.bytes()).into_owned();
    Ok((Extension(ErrorInPage(html)), ApiError::from(error)).into_response())
}

/// `GET /chartsets`: the list has the address `/`.
pub(crate) async fn moved(RawQuery(query_string): RawQuery) -> Response {
    let path = query_string.map_or_else(|| "/".to_owned(), |query_string| format!("/?{query_string}"));
    (StatusCode::PERMANENT_REDIRECT, CachePolicy::Redirect, [(LOCATION, path)]).into_response()
}

/// A redirect to a page. Not cached: what a text leads to may change.
pub(crate) fn see_other(path: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, path)]).into_response()
}

fn respond(page: ListPage, headers: &RequestHeaders) -> Response {
    match page.age.filter(|age| *age > OUT_OF_DATE) {
        None => page.body.into_response(headers, CachePolicy::Page, MediaType::Html),
        Some(age) => {
            let html = with_search_time(&page.body, SystemTime::now() - age);
            TextBody::new(html).into_response(headers, CachePolicy::NoStore, MediaType::Html)
        }
    }
}

/// The element of every page before the content. No text of a chart contains it, since `<` is escaped.
const MAIN: &str = "<main id=\"main\" tabindex=\"-1\">";

/// The page with a note of the time of its search.
fn with_search_time(body: &TextBody, searched_at: SystemTime) -> String {
    let html = String::from_utf8_lossy(body.bytes());
    let epoch_ms = searched_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let epoch_ms = i64::try_from(epoch_ms).unwrap_or_default();
    let note = format!(
        "{MAIN}<p class=\"note\" id=\"stale\">The index is unavailable. This is the list as of <time datetime=\"{}\">{} UTC</time>.</p>",
        format::rfc3339(epoch_ms),
        format::time_of_day(epoch_ms)
    );
    html.replacen(MAIN, &note, 1)
}

/// The list as a page.
struct HtmlFormat {
    state: Arc<PagesState>,
    view: View,
    mistake: Option<Mistake>,
}

/// What was sent, and what is wrong with it.
struct Mistake {
    query_string: String,
    error: ParameterError,
}

impl PageFormat for HtmlFormat {
    fn cache_key(&self, name: &[u8]) -> CacheKey {
        self.state.key(name)
    }

    fn with_name(&self, mut name: Vec<u8>, is_fallback: bool) -> Vec<u8> {
        name.extend_from_slice(self.view.as_str().as_bytes());
        name.push(u8::from(is_fallback));
        if let Some(mistake) = &self.mistake {
            name.extend_from_slice(mistake.query_string.as_bytes());
        }
        name
    }

    async fn fill(&self, search: Search) -> Result<Filled, ReadError> {
        let page = search.find_page(&search.query).await?;
        let query = ListQuery { search: SearchQuery::clone(&search.query), view: self.view };
        let sets = self.read_sets(&page, &query.search).await?;
        let (mut drops, mut all, mut closest) = (Vec::new(), None, Vec::new());
        if page.total == 0 {
            drops = count_without_filters(&search, &query).await;
            all = count_without_any(&search, &query).await;
            closest = closest::titles(&search).await;
        }
        // Without it the page is complete.
        let known = self.state.store.distributions().await.unwrap_or_default();
        let histogram = Histogram::of_filter(&known, &query);
        let template = ListTemplate {
            layout: self.layout(&query, page.total, page.total > 0 && sets.is_empty()),
            form: FilterForm { histogram, ..self.form(&query) },
            chips: chips(&query),
            result: ResultView {
                drops,
                all,
                closest,
                ..ResultView::new(&query, &page, sets, search.is_fallback)
            },
        };
        Ok(Filled { response: TextBody::new(render(&template)?).into_cached(), position: page.position })
    }
}

impl HtmlFormat {
    /// The sets of a page with their charts, which are read together. A set that is no longer shown has none.
    async fn read_sets(&self, page: &ChartsetPage, search: &SearchQuery) -> Result<Vec<SetView>, ReadError> {
        let items = page.items.iter().map(SetItem::read).collect::<Result<Vec<_>, _>>()?;
        let ids: Vec<ChartsetId> = items.iter().filter_map(SetItem::id).collect();
        let (mut listed, mut copies) = (Vec::new(), Vec::new());
        if !ids.is_empty() {
            listed = self.state.store.charts_of_chartsets(&ids).await?;
            copies = self.state.store.copies_of_chartsets(&ids).await?;
        }
        Ok(SetView::all(items, listed, copies, search))
    }

    fn form(&self, query: &ListQuery) -> FilterForm {
        match &self.mistake {
            None => FilterForm::new(query),
            Some(Mistake { query_string, error }) => FilterForm::with_error(query_string, error, query),
        }
    }

    fn layout(&self, query: &ListQuery, total: u64, is_past_the_end: bool) -> Layout {
        let public_url = self.state.settings.public_url.as_ref();
        let canonical = query.with_page(query.search.page.number()).with_view(View::default());
        // The results of a search are for the one who searches, and what is past the end is empty.
        let is_indexed = query.search.text.is_none() && !is_past_the_end && self.mistake.is_none();
        let is_home = canonical.path() == "/";
        let json = query.with_view(View::default());
        let description = format!(
            "{} with charts of 4 to 7 keys: search by title, artist and creator, filter by BPM, length and density.",
            format::counted(total, "set")
        );
        Layout {
            description,
            json: Some(json.path_below("/api/chartsets")),
            feed: Some(query.selection().path_below("/feed.atom")),
            structured_data: public_url.filter(|_| is_home).map(|url| StructuredData::site(url.as_str())),
            canonical: is_indexed.then(|| canonical.path()),
            ..Layout::new(list_title::title(query), "", public_url)
        }
    }
}

#[derive(Template)]
#[template(path = "list.html", whitespace = "minimize")]
struct ListTemplate {
    layout: Layout,
    form: FilterForm,
    chips: Vec<Chip>,
    result: ResultView,
}

/// What a search found.
struct ResultView {
    /// Such as `31–60 of 1,234 sets`.
    shown: String,
    /// How many of these are listed with another one, if any are.
    folded: Option<String>,
    sets: Vec<SetView>,
    /// The number of the first set.
    start: u64,
    sorts: Vec<SortLink>,
    views: Vec<ViewLink>,
    view: &'static str,
    pagination: Option<Pagination>,
    /// Links to the list without one of the filters, if nothing was found.
    drops: Vec<DropLink>,
    /// The number of all sets, if nothing was found with several filters.
    all: Option<String>,
    /// The number of sets, for the button that leads from the filters to them.
    total: String,
    /// Sets with a similar title, if nothing was found.
    closest: Vec<Closest>,
    /// The last page, if the page is past it.
    last_page: Option<String>,
    random: String,
    feed: String,
    /// Whether words with typing errors do not match because the primary search engine is unavailable.
    is_without_typo_tolerance: bool,
}

struct SortLink {
    label: &'static str,
    href: String,
    is_current: bool,
    /// How the current order begins; what a link to it reverses.
    direction: &'static str,
}

struct ViewLink {
    label: &'static str,
    href: String,
    is_current: bool,
}

/// A filter, with the address of the list without it and the number of its sets, unless that search failed.
struct DropLink {
    name: &'static str,
    value: String,
    href: String,
    total: Option<String>,
}

impl ResultView {
    fn new(query: &ListQuery, page: &ChartsetPage, sets: Vec<SetView>, is_fallback: bool) -> Self {
        let (start, total) = (query.search.page.offset() + 1, page.total);
        let is_past_the_end = total > 0 && page.items.is_empty();
        let last = u32::try_from(last_page(query, total)).unwrap_or(u32::MAX);
        let selection = query.selection();
        Self {
            shown: shown(start, page.items.len() as u64, total),
            folded: folded(page.items.len().saturating_sub(sets.len()) as u64),
            start,
            sorts: sorts(query),
            views: views(query),
            view: query.view.as_str(),
            pagination: Pagination::new(query, total, page.next.as_ref()),
            drops: Vec::new(),
            all: None,
            total: format::counted(total, "set"),
            closest: Vec::new(),
            last_page: is_past_the_end.then(|| query.with_page(last).path()),
            random: selection.path_below("/random"),
            feed: selection.path_below("/feed.atom"),
            is_without_typo_tolerance: is_fallback
                && query.search.text.is_some()
                && query.search.after.is_none(),
            sets,
        }
    }
}

/// The sets of a page.
fn shown(start: u64, number: u64, total: u64) -> String {
    let all = format::counted(total, "set");
    if number == 0 || number == total {
        return all;
    }
    format!("{}–{} of {all}", format::count(start), format::count(start + number - 1))
}

/// How many sets of a page have the charts of another one, with which they are listed.
fn folded(number: u64) -> Option<String> {
    let verb = if number == 1 { "is" } else { "are" };
    (number > 0).then(|| {
        format!("{} {verb} listed with another that has the same charts", format::counted(number, "set"))
    })
}

fn sorts(query: &ListQuery) -> Vec<SortLink> {
    let others = Sort::ALL.iter().copied().filter(|sort| !matches!(sort, Sort::Relevance | Sort::Bpm));
    query
        .search
        .text
        .iter()
        .map(|_| Sort::Relevance)
        .chain(others)
        .map(|sort| {
            let is_current = sort == query.search.sort;
            let reversed =
                if is_current { query.search.direction.reversed() } else { sort.default_direction() };
            SortLink {
                label: sort_label(sort),
                href: query.changed(|search| (search.sort, search.direction) = (sort, reversed)).path(),
                is_current,
                direction: query.search.direction.as_str(),
            }
        })
        .collect()
}

const fn sort_label(sort: Sort) -> &'static str {
    match sort {
        Sort::Updated => "Newest",
        Sort::Title => "Title",
        Sort::Artist => "Artist",
        Sort::Bpm | Sort::MainBpm => "BPM",
        Sort::Length => "Length",
        Sort::Density => "Density",
        Sort::Rating => "Difficulty",
        Sort::Notes => "Notes",
        Sort::Relevance => "Best match",
    }
}

fn views(query: &ListQuery) -> Vec<ViewLink> {
    let views = [(View::Table, "Table"), (View::Cards, "Cards")];
    views
        .into_iter()
        .map(|(view, label)| ViewLink {
            label,
            href: query.with_view(view).path(),
            is_current: view == query.view,
        })
        .collect()
}

/// Counts all sets, for a list with several filters.
async fn count_without_any(search: &Search, query: &ListQuery) -> Option<String> {
    if query.filters().len() < 2 {
        return None;
    }
    let all = search.find_page(&SearchQuery::default()).await.ok()?;
    (all.total > 0).then(|| format::counted(all.total, "set"))
}

/// Searches once for each filter, to count the sets that the list has without it. Those that have none are left
/// out.
async fn count_without_filters(search: &Search, query: &ListQuery) -> Vec<DropLink> {
    let mut drops = Vec::new();
    for filter in query.filters() {
        let without = query.without(filter);
        let total = search.find_page(&without.search).await.ok().map(|page| page.total);
        if total == Some(0) {
            continue;
        }
        let total = total.map(|total| format::counted(total, "set"));
        let (name, value) = describe(filter, &query.search);
        drops.push(DropLink { name, value, href: without.path(), total });
    }
    drops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_that_is_out_of_date_names_its_time() {
        let body = TextBody::new(format!("<body>{MAIN}<h1>Charts</h1></main>"));
        let html = with_search_time(&body, UNIX_EPOCH + Duration::from_mins(14 * 60 + 2));
        assert!(html.contains("as of <time datetime=\"1970-01-01T14:02:00Z\">14:02 UTC</time>"), "{html}");
        assert!(html.ends_with("</p><h1>Charts</h1></main>"), "{html}");
    }

    #[test]
    fn base_template_has_the_place_of_the_note() {
        assert_eq!(include_str!("../templates/base.html").matches(MAIN).count(), 1);
    }

    #[test]
    fn shown_sets_are_numbered() {
        assert_eq!(shown(1, 0, 0), "0 sets");
        assert_eq!(shown(1, 1, 1), "1 set");
        assert_eq!(shown(31, 30, 1_234), "31–60 of 1,234 sets");
        assert_eq!(folded(0), None);
        assert_eq!(folded(1).unwrap(), "1 set is listed with another that has the same charts");
        assert_eq!(folded(2).unwrap(), "2 sets are listed with another that has the same charts");
    }
}
