//! The query of the list page: that of the API and the view, and the query strings of links to it.

use std::borrow::Cow;
use std::fmt::Write as _;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use chart_index_domain::search::{
    After, Bounds, KeySet, ListPosition, PageRequest, ParameterError, SearchQuery, Sort, parse_query_string,
};
use chart_index_domain::{KeyCount, Pattern, SourceKind};
use chart_index_http::ApiError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::format;

/// The characters of a value that are escaped. A comma is not, so that lists of key counts are readable.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b',').remove(b' ');

/// How the list is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum View {
    /// A row for each set.
    #[default]
    Table,
    Cards,
}

impl View {
    /// The value of the parameter `view`, empty for the default.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Table => "",
            Self::Cards => "cards",
        }
    }

    fn parse(value: &str) -> Result<Self, ParameterError> {
        match value {
            "table" => Ok(Self::Table),
            "cards" => Ok(Self::Cards),
            _ => Err(ParameterError { parameter: "view", reason: "accepts cards or table".into() }),
        }
    }
}

/// What the list page shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ListQuery {
    /// The filters, the order and the page.
    pub(crate) search: SearchQuery,
    /// How the result is shown.
    pub(crate) view: View,
}

/// A query string of the list page after it was parsed.
#[derive(Debug, PartialEq)]
pub(crate) struct ParsedList {
    pub(crate) query: ListQuery,
    /// Whether a browser sent it from the form, with a parameter for each empty field and each key count, or an
    /// earlier page had a link to it: the page is at the address that [`ListQuery::path`] returns.
    pub(crate) is_form: bool,
}

/// A part of the query that a link can remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filter {
    Text,
    Keys(KeyCount),
    Source,
    PublishedIn,
    Title,
    Artist,
    Tags,
    Creator,
    ExcludedTitles,
    ExcludedArtists,
    ExcludedCreators,
    ExcludedTags,
    Bpm,
    Length,
    Density,
    Rating,
    LongNotes,
    Notes,
    Patterns,
    OneChart,
}

impl<S: Sync> FromRequestParts<S> for ParsedList {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        Ok(ListQuery::parse(parts.uri.query().unwrap_or_default())?)
    }
}

impl ListQuery {
    /// Parses the query string of the list page, by the rules of the API. A form sends `keys` once for each
    /// key count and `pattern` once for each pattern, and lengths as they were typed, such as `1:40`. The BPM
    /// of the page is the main one.
    pub(crate) fn parse(query_string: &str) -> Result<ParsedList, ParameterError> {
        let (mut others, mut keys, mut patterns, mut views) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut is_form, mut is_typed) = (false, false);
        for pair in query_string.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name);
            is_form |= value.is_empty();
            is_typed |= name == "query";
            match name.as_str() {
                "keys" if !value.is_empty() => keys.push(value),
                "pattern" if !value.is_empty() => patterns.push(value),
                "view" => views.push(value),
                "bpmMin" | "bpmMax" => {
                    is_form = true;
                    others.push(Cow::Owned(format!("{}={value}", name_on_page(&name))));
                }
                "lengthMin" | "lengthMax" => match format::parse_length(&decode(value)) {
                    Some(seconds) => {
                        is_form = true;
                        others.push(Cow::Owned(format!("{name}={seconds}")));
                    }
                    None => others.push(pair.into()),
                },
                _ => others.push(pair.into()),
            }
        }
        is_form |= keys.len() > 1 || patterns.len() > 1;
        let view =
            views.into_iter().find(|view| !view.is_empty()).map_or(Ok(View::default()), View::parse)?;
        for (name, values) in [("keys", keys), ("pattern", patterns)] {
            others.push(format!("{name}={}", values.join(",")).into());
        }
        let mut search = parse_query_string(&others.join("&"))?;
        // What was typed has parameters of its own.
        is_form |= is_typed && search.typed_query().is_none();
        // Earlier pages sorted by the highest BPM. A cursor is a position in that order.
        if search.sort == Sort::Bpm && !matches!(search.after, Some(After::Position(_))) {
            search.sort = Sort::MainBpm;
            is_form = true;
        }
        Ok(ParsedList { query: Self { search, view }, is_form })
    }

    /// Parses a query string without the parameters that are wrong: each with its other bound.
    pub(crate) fn parse_without_mistakes(query_string: &str, first: &ParameterError) -> Self {
        let mut rest: Vec<&str> = query_string.split('&').collect();
        let mut parameter = first.parameter;
        loop {
            rest.retain(|pair| {
                let name = decode(pair.split_once('=').map_or(*pair, |(name, _)| name));
                without_bound(name_on_page(&name)) != without_bound(parameter)
            });
            match Self::parse(&rest.join("&")) {
                Ok(parsed) => return parsed.query,
                Err(next) if next.parameter == parameter => return Self::default(),
                Err(next) => parameter = next.parameter,
            }
        }
    }

    /// The path of the list with this query, as short as possible.
    pub(crate) fn path(&self) -> String {
        self.path_below("/")
    }

    /// The path of another resource that takes the parameters of the list, such as the feed.
    pub(crate) fn path_below(&self, resource: &str) -> String {
        let query_string = self.query_string();
        if query_string.is_empty() { resource.to_owned() } else { format!("{resource}?{query_string}") }
    }

    /// The parameters that differ from their defaults, sorted by name.
    pub(crate) fn query_string(&self) -> String {
        let mut query_string = String::new();
        for (name, value) in self.parameters() {
            let separator = if query_string.is_empty() { "" } else { "&" };
            let _ = write!(query_string, "{separator}{name}={}", escape(&value));
        }
        query_string
    }

    /// The parameters that differ from their defaults, sorted by name, not escaped.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        let search = &self.search;
        let number = |value: Option<f64>| value.map(|value| Cow::Owned(value.to_string()));
        let seconds = |value: Option<f64>| number(value.map(|ms| ms / 1000.0));
        let page = |number: u32, default: u32| (number != default).then(|| Cow::Owned(number.to_string()));
        let keys = search.keys.iter().map(|keys| keys.get().to_string()).collect::<Vec<_>>().join(",");
        let chart = &search.chart;
        let stars = |value: Option<f64>| number(value.map(|hundredths| hundredths / 100.0));
        let pattern = |(pattern, percent): &(Pattern, u8)| format!("{}:{percent}", pattern.as_str());
        let patterns = chart.patterns.iter().map(pattern).collect::<Vec<_>>().join(",");
        let order = (search.direction != search.sort.default_direction()).then(|| search.direction.as_str());
        let sort = (search.sort != Sort::default()).then(|| search.sort.as_str());
        let published_in = |kind| {
            let source = search.published_in.as_ref().filter(|source| source.kind == kind)?;
            Some(Cow::Borrowed(source.reference.as_str()))
        };
        // A cursor has the number of its page.
        let number_of_page = if search.after.is_some() { 1 } else { search.page.number() };
        let typed = search.typed_query();
        let parameters = [
            ("after", search.cursor().map(Cow::Owned)),
            ("creator", search.creator.as_deref().map(Cow::Borrowed)),
            ("densityMax", number(chart.density_max)),
            ("densityMin", number(search.density_min)),
            ("keys", (!keys.is_empty()).then_some(Cow::Owned(keys))),
            ("lengthMax", seconds(search.length_ms.max)),
            ("lengthMin", seconds(search.length_ms.min)),
            ("lnMax", number(chart.ln_share.max)),
            ("lnMin", number(chart.ln_share.min)),
            ("mainBpmMax", number(chart.bpm_main.max)),
            ("mainBpmMin", number(chart.bpm_main.min)),
            ("match", search.matches_one_chart.then_some(Cow::Borrowed("chart"))),
            ("notesMax", number(chart.notes.max)),
            ("notesMin", number(chart.notes.min)),
            ("order", order.map(Cow::Borrowed)),
            ("pack", published_in(SourceKind::BetaPack)),
            ("page", page(number_of_page, 1)),
            ("pattern", (!patterns.is_empty()).then_some(Cow::Owned(patterns))),
            ("perPage", page(search.page.size(), PageRequest::DEFAULT_SIZE)),
            ("q", search.text.as_deref().filter(|_| typed.is_none()).map(Cow::Borrowed)),
            ("query", typed.map(Cow::Owned)),
            ("ratingMax", stars(chart.rating.max)),
            ("ratingMin", stars(chart.rating.min)),
            ("set", published_in(SourceKind::AlphaSet)),
            ("sort", sort.map(Cow::Borrowed)),
            ("source", search.source.map(|source| Cow::Borrowed(source.as_str()))),
            ("view", (self.view != View::default()).then(|| Cow::Borrowed(self.view.as_str()))),
        ];
        parameters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The filters, in the order of the form.
    pub(crate) fn filters(&self) -> Vec<Filter> {
        let search = &self.search;
        let is_bounded = |bounds: Bounds| !bounds.is_unbounded();
        let keys = search.keys.iter().map(|keys| (Filter::Keys(keys), true));
        let others = [
            (Filter::Source, search.source.is_some()),
            (Filter::PublishedIn, search.published_in.is_some()),
            (Filter::Title, search.title.is_some()),
            (Filter::Artist, search.artist.is_some()),
            (Filter::Tags, !search.tags.is_empty()),
            (Filter::Creator, search.creator.is_some()),
            (Filter::ExcludedTitles, !search.excluded_titles.is_empty()),
            (Filter::ExcludedArtists, !search.excluded_artists.is_empty()),
            (Filter::ExcludedCreators, !search.excluded_creators.is_empty()),
            (Filter::ExcludedTags, !search.excluded_tags.is_empty()),
            (Filter::Rating, is_bounded(search.chart.rating)),
            (Filter::Bpm, is_bounded(search.chart.bpm_main)),
            (Filter::Length, is_bounded(search.length_ms)),
            (Filter::Density, search.density_min.or(search.chart.density_max).is_some()),
            (Filter::LongNotes, is_bounded(search.chart.ln_share)),
            (Filter::Notes, is_bounded(search.chart.notes)),
            (Filter::Patterns, !search.chart.patterns.is_empty()),
            (Filter::OneChart, search.matches_one_chart),
        ];
        let all = [(Filter::Text, search.text.is_some())].into_iter().chain(keys).chain(others);
        all.filter_map(|(filter, is_active)| is_active.then_some(filter)).collect()
    }

    /// The first page without this filter.
    pub(crate) fn without(&self, filter: Filter) -> Self {
        self.changed(|search| match filter {
            Filter::Text => {
                search.text = None;
                search.hints = Vec::new();
                if search.sort == Sort::Relevance {
                    (search.sort, search.direction) = (Sort::default(), Sort::default().default_direction());
                }
            }
            Filter::Keys(removed) => {
                search.keys = search.keys.iter().filter(|keys| *keys != removed).collect::<KeySet>();
            }
            Filter::Source => search.source = None,
            Filter::PublishedIn => search.published_in = None,
            Filter::Title => search.title = None,
            Filter::Artist => search.artist = None,
            Filter::Tags => search.tags = Vec::new(),
            Filter::Creator => search.creator = None,
            Filter::ExcludedTitles => search.excluded_titles = Vec::new(),
            Filter::ExcludedArtists => search.excluded_artists = Vec::new(),
            Filter::ExcludedCreators => search.excluded_creators = Vec::new(),
            Filter::ExcludedTags => search.excluded_tags = Vec::new(),
            Filter::Bpm => search.chart.bpm_main = Bounds::default(),
            Filter::Length => search.length_ms = Bounds::default(),
            Filter::Density => (search.density_min, search.chart.density_max) = (None, None),
            Filter::Rating => search.chart.rating = Bounds::default(),
            Filter::LongNotes => search.chart.ln_share = Bounds::default(),
            Filter::Notes => search.chart.notes = Bounds::default(),
            Filter::Patterns => search.chart.patterns = Vec::new(),
            Filter::OneChart => search.matches_one_chart = false,
        })
    }

    /// The first page of a changed query.
    pub(crate) fn changed(&self, change: impl FnOnce(&mut SearchQuery)) -> Self {
        let mut query = self.with_page(1);
        change(&mut query.search);
        query
    }

    /// The same query for the page with this number.
    pub(crate) fn with_page(&self, number: u32) -> Self {
        let page = PageRequest::clamped(number.into(), self.search.page.size().into());
        Self { search: SearchQuery { page, after: None, ..self.search.clone() }, view: self.view }
    }

    /// The same query for the page after this one, which begins after the position.
    pub(crate) fn after(&self, position: &ListPosition) -> Self {
        let mut next = self.with_page(self.search.page.number().saturating_add(1));
        next.search.after = Some(After::Position(position.clone()));
        next
    }

    /// The same query, shown in another way.
    pub(crate) fn with_view(&self, view: View) -> Self {
        Self { view, ..self.clone() }
    }

    /// The filters without that of the difficulty: its histogram shows what they find.
    pub(crate) fn of_any_difficulty(&self) -> Self {
        Self { search: self.without(Filter::Rating).search.filters(), view: View::default() }
    }

    /// The query without a page and a view: what a feed or a random choice takes.
    pub(crate) fn selection(&self) -> Self {
        let search = SearchQuery { page: PageRequest::default(), after: None, ..self.search.clone() };
        Self { search, view: View::default() }
    }
}

/// The name on the page of a parameter of the API.
pub(crate) fn name_on_page(name: &str) -> &str {
    match name {
        "bpmMin" => "mainBpmMin",
        "bpmMax" => "mainBpmMax",
        name => name,
    }
}

/// The name of a parameter without `Min` or `Max`.
fn without_bound(name: &str) -> &str {
    name.strip_suffix("Min").or_else(|| name.strip_suffix("Max")).unwrap_or(name)
}

/// Escapes a value for a query string.
pub(crate) fn escape(value: &str) -> String {
    utf8_percent_encode(value, ESCAPED).to_string().replace(' ', "+")
}

/// The parameters of a query string as they were sent, decoded where possible.
pub(crate) fn raw_parameters(query_string: &str) -> Vec<(String, String)> {
    let pairs = query_string.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

fn decode(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(query_string: &str) -> ListQuery {
        ListQuery::parse(query_string).unwrap_or_else(|error| panic!("{query_string}: {error}")).query
    }

    #[test]
    fn raw_parameters_have_the_names_that_were_sent() {
        let sent = raw_parameters("bpmMin=1&q=a+b&x=%41");
        assert_eq!(sent, [("bpmMin", "1"), ("q", "a b"), ("x", "A")].map(|(a, b)| (a.into(), b.into())));
    }

    #[test]
    fn path_is_sorted_and_has_no_defaults() {
        for (sent, path) in [
            ("", "/"),
            ("page=1&perPage=30&sort=updated&order=desc&view=", "/"),
            (
                "q=a+b&keys=7,4&bpmMin=174.50&mainBpmMax=180",
                "/?keys=4,7&mainBpmMax=180&mainBpmMin=174.5&q=a+b",
            ),
            ("keys=4&keys=7&q=&creator=&source=", "/?keys=4,7"),
            ("pattern=stream:20&pattern=jack:50&lnMin=1", "/?lnMin=1&pattern=jack%3A50,stream%3A20"),
            ("lengthMin=64.1&view=table&sort=title", "/?lengthMin=64.1&sort=title"),
            ("lengthMin=1%3A40&lengthMax=2:20", "/?lengthMax=140&lengthMin=100"),
            ("sort=title&order=desc&page=3&perPage=60", "/?order=desc&page=3&perPage=60&sort=title"),
            ("sort=bpm&order=asc&page=3", "/?order=asc&page=3&sort=mainBpm"),
            ("query=a+keys%3D4+rating%3E5", "/?keys=4&q=a&ratingMin=5.01"),
            ("query=-tag:A+b+keys%3D4&page=2", "/?keys=4&page=2&query=b+-tag%3Aa"),
            ("query=keys%3D9", "/?query=keys%3D9"),
            ("q=%E6%97%8B+%26+%23%2B%3D%25", "/?q=%E6%97%8B+%26+%23%2B%3D%25"),
            (
                "view=cards&perPage=60&after=AQABAAAAAqGhoaGhoaGhAAABoMRQbAA",
                "/?after=AQABAAAAAqGhoaGhoaGhAAABoMRQbAA&perPage=60&view=cards",
            ),
        ] {
            let parsed = query(sent);
            assert_eq!(parsed.path(), path, "{sent}");
            let again = parsed.path();
            assert_eq!(query(again.strip_prefix("/?").unwrap_or_default()), parsed, "{sent}");
        }
    }

    #[test]
    fn form_is_recognised_by_its_empty_or_repeated_parameters() {
        for (sent, is_form) in [
            ("", false),
            ("q=a&keys=4,7", false),
            ("utm_source=x", false),
            ("q=a&keys=4&keys=7", true),
            ("q=&keys=4", true),
            ("q", true),
            ("query=a", true),
            ("query=-tag:a", false),
            ("pattern=jack:1&pattern=stream:1", true),
            ("pattern=jack:1,stream:1", false),
            ("mainBpmMin=100", false),
            ("bpmMin=100", true),
            ("lengthMin=1:40", true),
            ("lengthMin=100", false),
            ("sort=bpm", true),
            ("sort=mainBpm", false),
            ("sort=bpm&after=AQMBAAAAAqGhoaGhoaGhQGaEAAAAAAA", false),
        ] {
            assert_eq!(ListQuery::parse(sent).unwrap().is_form, is_form, "{sent}");
        }
    }

    #[test]
    fn parameters_follow_the_rules_of_the_api() {
        for (sent, parameter) in
            [("keys=8", "keys"), ("keys=4&keys=x", "keys"), ("view=x", "view"), ("q=a&q=b", "q")]
        {
            assert_eq!(ListQuery::parse(sent).unwrap_err().parameter, parameter, "{sent}");
        }
    }

    #[test]
    fn mistakes_are_left_out() {
        for (sent, path) in [
            ("lengthMin=abc&lengthMax=2:00&keys=4", "/?keys=4"),
            ("bpmMin=200&bpm%4dax=100&q=a", "/?q=a"),
            ("keys=9&keys=4&page=2", "/?page=2"),
            ("sort=best&view=x&ratingMin=hard&creator=zoe", "/?creator=zoe"),
            ("q=a&q=b&keys=4", "/?keys=4"),
            ("q=a&query=b&keys=4", "/?keys=4&q=b"),
            ("query=keys%3D4+a&keys=5", "/?keys=4&q=a"),
            ("bpmMax=100&query=bpm%3E90", "/?mainBpmMin=90.001"),
        ] {
            let error = ListQuery::parse(sent).unwrap_err();
            assert_eq!(ListQuery::parse_without_mistakes(sent, &error).path(), path, "{sent}");
        }
    }

    #[test]
    fn each_filter_can_be_removed() {
        let all = query(
            "q=a&keys=4,7&source=alphaSet&set=5&creator=c&bpmMin=1&lengthMax=2&densityMin=3&page=5&sort=relevance",
        );
        let typed = query("query=a+-tag:b+-tag:c+-creator:d+keys%3D9");
        assert_eq!(typed.filters(), [Filter::Text, Filter::ExcludedCreators, Filter::ExcludedTags]);
        assert_eq!(typed.without(Filter::Text).path(), "/?query=-tag%3Ab+-tag%3Ac+-creator%3Ad");
        assert_eq!(typed.without(Filter::ExcludedTags).path(), "/?query=a+keys%3D9+-creator%3Ad");
        let filters = all.filters();
        assert_eq!(filters.len(), 9);
        let rest = filters.iter().fold(all.clone(), |query, filter| query.without(*filter));
        assert_eq!(rest.path(), "/");
        assert!(!all.without(Filter::Text).query_string().contains("relevance"));
    }
}
