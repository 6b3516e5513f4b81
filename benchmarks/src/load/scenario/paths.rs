//! The requests of each scenario. They are the same in every run on the same catalogue.

use anyhow::Result;
use chart_index_benchmarks::catalogue::Zipf;
use chart_index_domain::NoteHash;
use fastrand::Rng;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{Expected, Request, Requests};
use crate::target::Catalogue;

const SEED: u64 = 14;
/// The charts that all requests of a hot scenario share.
const HOT_CHARTS: usize = 1_000;
/// ROX files of one size.
const ROX_FILES: usize = 100;
/// Draws of a Zipf scenario.
const DRAWS: usize = 300_000;
/// Different queries of a Zipf scenario of lists.
const QUERIES: usize = 3_000;
/// Requests that are all different.
const DIFFERENT: usize = 100_000;
const SORTS: [&str; 6] = ["updated", "title", "artist", "bpm", "length", "density"];

pub(super) fn hot_lookups(catalogue: &Catalogue) -> Result<Requests> {
    Ok(Requests::in_order(catalogue.hashes(HOT_CHARTS)?.into_iter().map(lookup).collect()))
}

/// The same with the entity tag of each chart.
pub(super) fn conditional_lookups(catalogue: &Catalogue) -> Result<Requests> {
    let lookups = hot_lookups(catalogue)?;
    Ok(Requests::in_order(lookups.distinct.iter().map(Request::conditional).collect()))
}

/// Each chart once. The order of hashes is random.
pub(super) fn all_lookups(catalogue: &Catalogue) -> Result<Requests> {
    Ok(Requests::in_order(catalogue.hashes(usize::MAX)?.into_iter().map(lookup).collect()))
}

pub(super) fn zipf_lookups(catalogue: &Catalogue) -> Result<Requests> {
    let requests = all_lookups(catalogue)?;
    Ok(by_popularity(requests.distinct))
}

pub(super) fn unknown_hashes() -> Requests {
    let mut random = Rng::with_seed(SEED);
    let unknown = |_| {
        let mut bytes = [0; 32];
        random.fill(&mut bytes);
        let hash = NoteHash::from_bytes(bytes);
        Request::new(format!("/api/charts/{hash}"), Expected::UnknownChart(hash))
    };
    Requests::in_order((0..DIFFERENT).map(unknown).collect())
}

/// ROX files whose size is closest to this one.
pub(super) fn rox_files(catalogue: &Catalogue, bytes: u32) -> Result<Requests> {
    let files = catalogue.rox_files(ROX_FILES, bytes)?;
    Ok(Requests::in_order(files.into_iter().map(|(hash, bytes)| rox(hash, bytes)).collect()))
}

pub(super) fn first_page() -> Requests {
    Requests::in_order(vec![list("")])
}

/// Queries like those of users: mostly the first pages, filters by keys, and words of titles.
pub(super) fn zipf_lists(catalogue: &Catalogue) -> Requests {
    by_popularity(user_queries(catalogue).iter().map(|query| list(query)).collect())
}

/// Queries that differ in a lower bound of the BPM that excludes nothing.
pub(super) fn different_lists() -> Requests {
    let filters = ["", "&keys=4", "&keys=4,7&source=alphaSet&bpmMax=240", "&lengthMin=90&densityMin=4"];
    let query = |number: usize| {
        let (sort, filter) = (SORTS[number % SORTS.len()], filters[number / SORTS.len() % filters.len()]);
        list(&format!("?sort={sort}{filter}&page={}&bpmMin=0.{number:07}1", 1 + number % 20))
    };
    Requests::in_order((0..DIFFERENT).map(query).collect())
}

pub(super) fn deep_pages(catalogue: &Catalogue) -> Requests {
    let pages = catalogue.chartsets().div_ceil(20).max(2);
    let query = |number: usize| {
        let page = (100 + number as u64 * 7 % 900) % pages + 1;
        list(&format!("?sort={}&page={page}&bpmMin=0.{number:07}1", SORTS[number % SORTS.len()]))
    };
    Requests::in_order((0..DIFFERENT).map(query).collect())
}

/// The mix of a Browse page. Lookups and lists are drawn by popularity.
pub(super) fn browse(catalogue: &Catalogue) -> Result<Requests> {
    let mut random = Rng::with_seed(SEED);
    let lookups: Vec<Request> = catalogue.hashes(usize::MAX)?.into_iter().map(lookup).collect();
    let lists: Vec<Request> = user_queries(catalogue).iter().map(|query| list(query)).collect();
    let details = catalogue.chartset_ids(HOT_CHARTS);
    let details = details.iter().map(|id| Request::new(format!("/api/chartsets/{id}"), Expected::Detail));
    let redirects = catalogue.chartset_ids_with_source(HOT_CHARTS);
    let redirects = redirects.iter().map(|id| Request::new(format!("/go/chartset/{id}"), Expected::Redirect));
    let rox_files = rox_files(catalogue, 6_000)?.distinct;
    let conditional: Vec<Request> = lookups.iter().take(HOT_CHARTS).map(Request::conditional).collect();
    let kinds: [(u32, Vec<Request>); 6] = [
        (60, lookups),
        (15, lists),
        (10, conditional),
        (8, details.collect()),
        (5, rox_files),
        (2, redirects.collect()),
    ];
    let (mut distinct, mut choices) = (Vec::new(), Vec::new());
    for (share, requests) in kinds {
        choices.push((share, distinct.len(), zipf(&requests)));
        distinct.extend(requests);
    }
    let order = (0..DRAWS).map(|_| {
        let mut point = random.u32(0..100);
        let chosen = choices.iter().find(|(share, ..)| {
            let is_chosen = point < *share;
            point = point.saturating_sub(*share);
            is_chosen
        });
        chosen.map_or(0, |(_, first, zipf)| index(*first as u64 + zipf.rank(&mut random)))
    });
    let order = order.collect();
    Ok(Requests { distinct, order })
}

/// Queries in the order of their popularity.
fn user_queries(catalogue: &Catalogue) -> Vec<String> {
    let mut random = Rng::with_seed(SEED);
    let words = catalogue.title_words(QUERIES);
    let mut queries = vec![String::new(), "?page=2".to_owned(), "?keys=4".to_owned(), "?keys=7".to_owned()];
    while queries.len() < QUERIES {
        let sort = SORTS[random.usize(0..SORTS.len())];
        let keys = random.u8(4..=7);
        let word = words.get(random.usize(0..words.len().max(1))).map_or("a", String::as_str);
        let word = utf8_percent_encode(word, NON_ALPHANUMERIC);
        let page = 1 + random.u32(0..5);
        queries.push(match random.u8(0..10) {
            0..4 => format!("?q={word}"),
            4 | 5 => format!("?q={word}&keys={keys}"),
            6 => format!("?sort={sort}&page={page}"),
            7 => format!("?keys={keys}&sort={sort}&page={page}"),
            8 => format!("?keys={keys}&bpmMin={}&bpmMax=220", random.u32(100..200)),
            _ => {
                format!("?source=alphaSet&densityMin={}&lengthMin={}", random.u32(2..12), random.u32(60..180))
            }
        });
    }
    queries
}

fn by_popularity(distinct: Vec<Request>) -> Requests {
    let (zipf, mut random) = (zipf(&distinct), Rng::with_seed(SEED));
    let order = (0..DRAWS).map(|_| index(zipf.rank(&mut random))).collect();
    Requests { distinct, order }
}

/// Popularity with the exponent 1: request n is sent 1 / (n + 1) as often as request 0.
fn zipf(requests: &[Request]) -> Zipf {
    Zipf::new(requests.len() as u64, 1)
}

fn index(index: u64) -> u32 {
    u32::try_from(index).unwrap_or_default()
}

fn lookup(hash: NoteHash) -> Request {
    Request::new(format!("/api/charts/{hash}"), Expected::Chart(hash))
}

fn rox(hash: NoteHash, bytes: u64) -> Request {
    Request::new(format!("/api/charts/{hash}/rox"), Expected::Rox(hash, bytes))
}

fn list(query: &str) -> Request {
    Request::new(format!("/api/chartsets{query}"), Expected::List)
}
