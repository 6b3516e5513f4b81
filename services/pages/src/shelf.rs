//! `GET /shelf`: charts that someone has chosen. Their hashes are in the address, and nothing is stored.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chart_index_domain::search::ParameterError;
use chart_index_domain::{ListedChart, NoteHash, ReadError};
use chart_index_http::{ApiError, CachePolicy, ErrorInPage, MediaType, RequestHeaders, Resource, TextBody};

use crate::PagesState;
use crate::chart_rows::ChartRow;
use crate::feed::Feed;
use crate::format;
use crate::layout::Layout;
use crate::list_page::see_other;
use crate::list_query::raw_parameters;
use crate::render::render;

/// More would not fit into addresses that every program takes.
const MAX_CHARTS: usize = 100;
const HASH_BYTES: usize = 32;
const HASH_DIGITS: usize = 2 * HASH_BYTES;

/// Distinct charts, in the order in which they were chosen.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Shelf(Vec<NoteHash>);

/// What an address asks for.
struct Asked {
    shelf: Shelf,
    /// Whether a form adds to the shelf or removes from it.
    is_changed: bool,
    /// What a form has sent that is wrong. The shelf is as it was before.
    mistake: Option<Mistake>,
}

/// The text of a field, and what is wrong with it.
#[derive(Debug, Clone)]
struct Mistake {
    text: String,
    error: ParameterError,
}

/// `GET /shelf`. What the forms of the page add and remove leads to the address of the shelf that results, and
/// a mistake to the shelf with the error at its field.
pub(crate) async fn page(
    State(state): State<Arc<PagesState>>,
    RawQuery(query_string): RawQuery,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let query_string = query_string.unwrap_or_default();
    let Asked { shelf, is_changed, mistake } = Asked::parse(&query_string)?;
    if is_changed && mistake.is_none() {
        return Ok(see_other(&shelf.path("/shelf")));
    }
    let kind = match &mistake {
        None => "shelf\0".to_owned(),
        Some(_) => format!("mistake of shelf\0{query_string}\0"),
    };
    let error = mistake.as_ref().map(|mistake| mistake.error.clone());
    let html = move |shelf: &Shelf, charts: &[ListedChart], _: &PagesState| {
        render(&ShelfTemplate::new(shelf, charts, mistake))
    };
    let body = read(state, shelf, kind.as_bytes(), html, &headers).await?;
    Ok(match error {
        None => body.into_response(&headers, CachePolicy::Page, MediaType::Html),
        Some(error) => {
            let html = String::from_utf8_lossy(body.bytes()).into_owned();
            (Extension(ErrorInPage(html)), ApiError::from(error)).into_response()
        }
    })
}

/// `GET /shelf.txt`: a line for each chart. As in feeds, addresses are paths without the URL of the site.
pub(crate) async fn text(
    State(state): State<Arc<PagesState>>,
    RawQuery(query_string): RawQuery,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let shelf = Asked::parse(&query_string.unwrap_or_default())?.shelf_without_changes()?;
    let text = |_: &Shelf, charts: &[ListedChart], state: &PagesState| {
        Ok(charts.iter().map(|listed| line(listed, state.site())).collect())
    };
    let body = read(state, shelf, b"text of shelf\0", text, &headers).await?;
    Ok(body.into_response(&headers, CachePolicy::Page, MediaType::Plain))
}

/// `GET /shelf.atom`: the charts as a feed, in the order of the shelf.
pub(crate) async fn feed(
    State(state): State<Arc<PagesState>>,
    RawQuery(query_string): RawQuery,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let shelf = Asked::parse(&query_string.unwrap_or_default())?.shelf_without_changes()?;
    let name = shelf.name_of(b"feed of shelf\0");
    let fill = async move |state: Arc<PagesState>| read_feed(&state, &shelf).await.map(Some);
    let body = state.read(&name, Resource::Chart, &headers, fill).await?;
    Ok(body.into_response(&headers, CachePolicy::Page, MediaType::Atom))
}

async fn read_feed(state: &PagesState, shelf: &Shelf) -> Result<String, ReadError> {
    let charts = state.store.charts_with_curves(&shelf.0).await?;
    let changed = state.store.changed_times(&shelf.0).await?;
    let feed = Feed {
        title: format!("Chart Index: shelf of {}", format::counted(charts.len() as u64, "chart")),
        page: shelf.path("/shelf"),
        path: shelf.path("/shelf.atom"),
        name: format!("shelf:{}", shelf.encoded()),
    };
    feed.of_charts(charts.iter().map(|listed| &listed.chart), &changed, state.site())
}

/// Reads the charts, unless a current response is cached.
async fn read(
    state: Arc<PagesState>,
    shelf: Shelf,
    kind: &[u8],
    write: impl FnOnce(&Shelf, &[ListedChart], &PagesState) -> Result<String, ReadError> + Send + 'static,
    headers: &RequestHeaders,
) -> Result<TextBody, ApiError> {
    let name = shelf.name_of(kind);
    let fill = async move |state: Arc<PagesState>| {
        let charts = state.store.charts_with_curves(&shelf.0).await?;
        write(&shelf, &charts, &state).map(Some)
    };
    state.read(&name, Resource::Chart, headers, fill).await
}

impl Asked {
    /// Parses `charts`, the hashes one after another in base64url, and what a form adds to it or removes from
    /// it.
    fn parse(query_string: &str) -> Result<Self, ParameterError> {
        let parameters = raw_parameters(query_string);
        let mut shelf = Shelf::default();
        for (_, value) in parameters.iter().filter(|(name, _)| name == "charts") {
            for hash in decode(value)? {
                shelf.add(hash);
            }
        }
        if shelf.0.len() > MAX_CHARTS {
            return Err(too_many("charts", shelf.0.len()));
        }
        let mut asked = Self { shelf, is_changed: false, mistake: None };
        for (name, text) in parameters {
            let changed = match name.as_str() {
                "add" => asked.shelf.with("add", &text),
                "remove" => asked.shelf.without("remove", &text),
                _ => continue,
            };
            asked.is_changed = true;
            match changed {
                Ok(shelf) => asked.shelf = shelf,
                Err(error) => asked.mistake = Some(Mistake { text, error }),
            }
        }
        Ok(asked)
    }

    /// The shelf, for a format that has no forms.
    fn shelf_without_changes(self) -> Result<Shelf, ParameterError> {
        self.mistake.map_or(Ok(self.shelf), |mistake| Err(mistake.error))
    }
}

impl Shelf {
    /// The shelf with one more chart.
    fn with(&self, parameter: &'static str, text: &str) -> Result<Self, ParameterError> {
        let mut charts = Self(self.0.clone());
        charts.add(hash_in(parameter, text)?);
        if charts.0.len() > MAX_CHARTS { Err(too_many(parameter, charts.0.len())) } else { Ok(charts) }
    }

    fn without(&self, parameter: &'static str, text: &str) -> Result<Self, ParameterError> {
        let removed = hash_in(parameter, text)?;
        Ok(Self(self.0.iter().copied().filter(|hash| *hash != removed).collect()))
    }

    fn add(&mut self, hash: NoteHash) {
        if !self.0.contains(&hash) {
            self.0.push(hash);
        }
    }

    /// The address of the shelf as this resource.
    fn path(&self, resource: &str) -> String {
        if self.0.is_empty() { resource.to_owned() } else { format!("{resource}?charts={}", self.encoded()) }
    }

    fn encoded(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.bytes())
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|hash| *hash.as_bytes()).collect()
    }

    /// The name of a response; no kind is the beginning of another one.
    fn name_of(&self, kind: &[u8]) -> Vec<u8> {
        [kind, &self.bytes()].concat()
    }
}

fn too_many(parameter: &'static str, charts: usize) -> ParameterError {
    let reason = format!("would have {charts} charts: a shelf has at most {MAX_CHARTS}");
    ParameterError { parameter, reason: reason.into() }
}

/// The address of a shelf with one chart.
pub(crate) fn path_of(hash: NoteHash) -> String {
    Shelf(vec![hash]).path("/shelf")
}

fn decode(value: &str) -> Result<Vec<NoteHash>, ParameterError> {
    let wrong = |reason: String| ParameterError { parameter: "charts", reason: reason.into() };
    let bytes = BASE64_URL_SAFE_NO_PAD
        .decode(value)
        .map_err(|_| wrong("is not base64url: a part of the address may be missing".to_owned()))?;
    let (hashes, rest) = bytes.as_chunks::<HASH_BYTES>();
    if !rest.is_empty() {
        return Err(wrong(format!(
            "has {} bytes, not {HASH_BYTES} for each chart: a part of the address may be missing",
            bytes.len()
        )));
    }
    Ok(hashes.iter().map(|hash| NoteHash::from_bytes(*hash)).collect())
}

/// The note hash that a text ends with, such as the address of a chart.
pub(crate) fn hash_in(parameter: &'static str, text: &str) -> Result<NoteHash, ParameterError> {
    let address = text.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let digits = address.len().checked_sub(HASH_DIGITS).and_then(|start| address.get(start..));
    digits.and_then(|digits| digits.to_ascii_lowercase().parse().ok()).ok_or(ParameterError {
        parameter,
        reason: "accepts a note hash of 64 digits, or the address of a chart".into(),
    })
}

#[derive(Template)]
#[template(path = "shelf.html", whitespace = "minimize")]
struct ShelfTemplate {
    layout: Layout,
    facts: String,
    /// The value of `charts`.
    encoded: String,
    text: String,
    charts: Vec<ChartRow>,
    hashes: Vec<String>,
    /// That the index does not have some of its charts, and the address of the shelf without them.
    missing: Option<(String, String)>,
    is_full: bool,
    mistake: Option<Mistake>,
}

impl ShelfTemplate {
    fn new(shelf: &Shelf, charts: &[ListedChart], mistake: Option<Mistake>) -> Self {
        let known = Shelf(charts.iter().map(|listed| listed.chart.hash).collect());
        let missing = match shelf.0.len() - charts.len() {
            0 => None,
            1 => Some("1 chart of this shelf is not in the index. It may have been removed.".to_owned()),
            count => Some(format!(
                "{count} charts of this shelf are not in the index. They may have been removed."
            )),
        };
        Self {
            layout: Layout {
                feed: (!shelf.0.is_empty()).then(|| shelf.path("/shelf.atom")),
                ..Layout::not_indexed("Shelf")
            },
            facts: format::counted(charts.len() as u64, "chart"),
            encoded: shelf.encoded(),
            text: shelf.path("/shelf.txt"),
            charts: charts.iter().map(|listed| ChartRow::new(&listed.chart, listed.curve.as_ref())).collect(),
            hashes: charts.iter().map(|listed| listed.chart.hash.to_string()).collect(),
            missing: missing.map(|text| (text, known.path("/shelf"))),
            is_full: shelf.0.len() >= MAX_CHARTS,
            mistake,
        }
    }

    /// The mistake in the field of this name.
    fn mistake_in(&self, name: &str) -> Option<&Mistake> {
        self.mistake.as_ref().filter(|mistake| mistake.error.parameter == name)
    }
}

/// Such as `xi – Blue Zenith [4K Another] https://charts.example/charts/…`. What a terminal would
/// obey, or would show in another order, are spaces.
fn line(ListedChart { chart, .. }: &ListedChart, site: &str) -> String {
    let row = ChartRow::new(chart, None);
    let name = format!(
        "{} – {} [{}{}]{}",
        row.artist,
        row.title,
        row.keys_if_not_named(),
        row.difficulty,
        format::charted_by(&chart.creator)
    );
    format!("{} {site}{}\n", name.replace(is_obeyed, " "), row.href)
}

/// Whether a character is a control character, ends a line, or changes the direction of the text around it
/// (Unicode, `Bidi_Control`).
fn is_obeyed(character: char) -> bool {
    let is_direction = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    character.is_control() || is_direction || matches!(character, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u8) -> NoteHash {
        NoteHash::from_bytes([number; HASH_BYTES])
    }

    fn parsed(query_string: &str) -> (String, bool) {
        let Asked { shelf, is_changed, .. } = Asked::parse(query_string).unwrap();
        (shelf.path("/shelf"), is_changed)
    }

    #[test]
    fn address_has_the_charts() {
        let shelf = Shelf(vec![hash(7), hash(255)]);
        let path = shelf.path("/shelf");
        assert!(path.starts_with("/shelf?charts=BwcHBwcH") && path.ends_with("_____w"), "{path}");
        let query_string = path.split_once('?').unwrap().1;
        assert_eq!(Asked::parse(query_string).unwrap().shelf, shelf);
        assert_eq!(parsed("charts="), ("/shelf".to_owned(), false));
        let twice = format!("{query_string}&{query_string}");
        assert_eq!(parsed(&twice), (path, false));
    }

    #[test]
    fn charts_are_added_and_removed() {
        let both = Shelf(vec![hash(1), hash(2)]).path("/shelf");
        let one = path_of(hash(1));
        let charts = one.split_once('?').unwrap().1;
        for added in [
            hash(2).to_string(),
            hash(2).to_string().to_uppercase(),
            format!("https%3A%2F%2Fcharts.example%2Fcharts%2F{}%23t=3", hash(2)),
        ] {
            assert_eq!(parsed(&format!("{charts}&add={added}")), (both.clone(), true), "{added}");
        }
        let removed = format!("{}&remove={}", both.split_once('?').unwrap().1, hash(2));
        assert_eq!(parsed(&removed), (one, true));
    }

    #[test]
    fn mistakes_are_named() {
        let full = Shelf((1..=100).map(hash).collect());
        let path = |shelf: &Shelf| shelf.path("/shelf").split_once('?').unwrap().1.to_owned();
        let many = path(&Shelf((0..=100).map(hash).collect()));
        let one_more = format!("{}&add={}", path(&full), hash(101));
        for (query_string, parameter, reason) in [
            ("charts=%C3%A9", "charts", "is not base64url"),
            ("charts=AAAA", "charts", "has 3 bytes, not 32 for each chart"),
            (many.as_str(), "charts", "would have 101 charts: a shelf has at most 100"),
            ("add=x", "add", "accepts a note hash of 64 digits"),
            ("remove=%E2%82%AC", "remove", "accepts a note hash"),
            (one_more.as_str(), "add", "would have 101 charts"),
        ] {
            let mistake = Asked::parse(query_string).map(|asked| asked.mistake.unwrap().error);
            let error = mistake.unwrap_or_else(|error| error);
            assert_eq!(error.parameter, parameter, "{query_string}");
            assert!(error.reason.contains(reason), "{query_string}: {error}");
        }
        let asked = Asked::parse(&one_more).unwrap();
        assert_eq!(asked.shelf, full, "the others stay");
    }

    #[test]
    fn lines_have_no_characters_that_terminals_obey() {
        let name = "a\u{1b}b\u{202e}c\u{2066}d\u{2028}e\u{200f}旋\u{2026}";
        assert_eq!(name.replace(is_obeyed, " "), "a b c d e 旋\u{2026}");
    }
}
