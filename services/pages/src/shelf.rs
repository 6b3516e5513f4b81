//! `GET /shelf`: charts that someone has chosen. Their hashes are in the address, and nothing is stored.

use std::sync::Arc;

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chart_index_cache::{CacheKey, CachedResponse};
use chart_index_domain::search::ParameterError;
use chart_index_domain::{ListedChart, NoteHash, ReadError};
use chart_index_http::{ApiError, CachePolicy, MediaType, RequestHeaders, Resource, TextBody};

use crate::PagesState;
use crate::chart_rows::ChartRow;
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

/// `GET /shelf`. What the forms of the page add and remove leads to the address of the shelf that results.
pub(crate) async fn page(
    State(state): State<Arc<PagesState>>,
    RawQuery(query_string): RawQuery,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let (shelf, is_changed) = Shelf::parse(&query_string.unwrap_or_default())?;
    if is_changed {
        return Ok(see_other(&shelf.path("/shelf")));
    }
    let html =
        |shelf: &Shelf, charts: &[ListedChart], _: &PagesState| render(&ShelfTemplate::new(shelf, charts));
    let body = read(state, shelf, b"shelf ", html, &headers).await?;
    Ok(body.into_response(&headers, CachePolicy::Page, MediaType::Html))
}

/// `GET /shelf.txt`: a line for each chart.
pub(crate) async fn text(
    State(state): State<Arc<PagesState>>,
    RawQuery(query_string): RawQuery,
    headers: RequestHeaders,
) -> Result<Response, ApiError> {
    let (shelf, _) = Shelf::parse(&query_string.unwrap_or_default())?;
    let text = |_: &Shelf, charts: &[ListedChart], state: &PagesState| {
        let site = state.settings.public_url.as_ref().map_or("", |url| url.as_str());
        Ok(charts.iter().map(|listed| line(listed, site)).collect())
    };
    let body = read(state, shelf, b"shelf text ", text, &headers).await?;
    Ok(body.into_response(&headers, CachePolicy::Page, MediaType::Plain))
}

/// Reads the charts, unless a current response is cached.
async fn read(
    state: Arc<PagesState>,
    shelf: Shelf,
    kind: &[u8],
    write: impl Fn(&Shelf, &[ListedChart], &PagesState) -> Result<String, ReadError> + Send + Sync + 'static,
    headers: &RequestHeaders,
) -> Result<TextBody, ApiError> {
    let hashes = shelf.0.iter().flat_map(|hash| *hash.as_bytes());
    let key = CacheKey::page(&kind.iter().copied().chain(hashes).collect::<Vec<_>>());
    let fill = {
        let state = Arc::clone(&state);
        move || async move {
            let charts = state.store.charts_with_curves(&shelf.0).await?;
            Ok::<CachedResponse, ReadError>(TextBody::new(write(&shelf, &charts, &state)?).into_cached())
        }
    };
    let body = state.cache.read_text(key, headers, fill).await?;
    body.ok_or(ApiError::NotFound(Resource::Chart))
}

impl Shelf {
    /// Parses `charts`, the hashes one after another in base64url, and what a form adds to it or removes from
    /// it; returns as well whether one does.
    fn parse(query_string: &str) -> Result<(Self, bool), ParameterError> {
        let mut shelf = Self::default();
        let parameters = raw_parameters(query_string);
        let values = |name: &'static str| {
            let of_name = parameters.iter().filter(move |(sent, _)| sent == name);
            of_name.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
        };
        for value in values("charts") {
            for hash in decode(value)? {
                shelf.add(hash);
            }
        }
        for value in values("add") {
            shelf.add(hash_in("add", value)?);
        }
        for value in values("remove") {
            let removed = hash_in("remove", value)?;
            shelf.0.retain(|hash| *hash != removed);
        }
        if shelf.0.len() > MAX_CHARTS {
            return Err(ParameterError {
                parameter: "charts",
                reason: format!("has {} charts: a shelf has at most {MAX_CHARTS}", shelf.0.len()).into(),
            });
        }
        let is_changed = parameters.iter().any(|(name, _)| name == "add" || name == "remove");
        Ok((shelf, is_changed))
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
        BASE64_URL_SAFE_NO_PAD.encode(self.0.iter().flat_map(|hash| *hash.as_bytes()).collect::<Vec<_>>())
    }
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
fn hash_in(parameter: &'static str, text: &str) -> Result<NoteHash, ParameterError> {
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
}

impl ShelfTemplate {
    fn new(shelf: &Shelf, charts: &[ListedChart]) -> Self {
        let known = Shelf(charts.iter().map(|listed| listed.chart.hash).collect());
        let missing = match shelf.0.len() - charts.len() {
            0 => None,
            1 => Some("1 chart of this shelf is not in the index. It may have been removed.".to_owned()),
            count => Some(format!(
                "{count} charts of this shelf are not in the index. They may have been removed."
            )),
        };
        Self {
            layout: Layout::not_indexed("Shelf"),
            facts: format::counted(charts.len() as u64, "chart"),
            encoded: shelf.encoded(),
            text: shelf.path("/shelf.txt"),
            charts: charts.iter().map(|listed| ChartRow::new(&listed.chart, listed.curve.as_ref())).collect(),
            hashes: charts.iter().map(|listed| listed.chart.hash.to_string()).collect(),
            missing: missing.map(|text| (text, known.path("/shelf"))),
            is_full: shelf.0.len() >= MAX_CHARTS,
        }
    }
}

/// Such as `xi – Blue Zenith [4K Another] https://charts.example/charts/…`. Control characters, which a terminal
/// would obey, are spaces.
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
    format!("{} {site}{}\n", name.replace(char::is_control, " "), row.href)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u8) -> NoteHash {
        NoteHash::from_bytes([number; HASH_BYTES])
    }

    fn parsed(query_string: &str) -> (String, bool) {
        let (shelf, is_changed) = Shelf::parse(query_string).unwrap();
        (shelf.path("/shelf"), is_changed)
    }

    #[test]
    fn address_has_the_charts() {
        let shelf = Shelf(vec![hash(7), hash(255)]);
        let path = shelf.path("/shelf");
        assert!(path.starts_with("/shelf?charts=BwcHBwcH") && path.ends_with("_____w"), "{path}");
        let query_string = path.split_once('?').unwrap().1;
        assert_eq!(Shelf::parse(query_string).unwrap(), (shelf, false));
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
        let many = Shelf((0..=100).map(hash).collect()).path("/shelf");
        for (query_string, parameter, reason) in [
            ("charts=%C3%A9", "charts", "is not base64url"),
            ("charts=AAAA", "charts", "has 3 bytes, not 32 for each chart"),
            ("add=x", "add", "accepts a note hash of 64 digits"),
            ("remove=%E2%82%AC", "remove", "accepts a note hash"),
            (many.split_once('?').unwrap().1, "charts", "has 101 charts: a shelf has at most 100"),
        ] {
            let error = Shelf::parse(query_string).unwrap_err();
            assert_eq!(error.parameter, parameter, "{query_string}");
            assert!(error.reason.contains(reason), "{query_string}: {error}");
        }
    }
}
