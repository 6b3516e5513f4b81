//! Measures the first, the middle and the last page of lists, for every sort in both directions and a range of filters,
//! in an existing catalogue.
//!
//! `DATABASE_URL` is the database, for example one filled by `make catalogue`. `LIST_PAGES_ROUNDS` is the number of
//! rounds, 5 by default, and `LIST_PAGES_FILTER` restricts the run to one filter. Each round reads each page twice: with
//! an engine that has no total cached, and with one that has read the list before. The first table shows the medians in
//! milliseconds per order, the second the slowest order of each filter.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints its results and ends at the first error"
)]

use std::time::{Duration, Instant};

use chart_index_domain::search::{
    Direction, Generation, PageRequest, SearchIndex, SearchQuery, Sort, parse_query_string,
};
use chart_index_store::{CatalogueWatch, PostgresSearch, Store, StoreConfig};

const PAGE_NAMES: [&str; 3] = ["first", "middle", "last"];
/// Query strings, from no filter to filters with few matches. The words occur in the generated catalogue.
const FILTERS: [&str; 24] = [
    "",
    "keys=4",
    "keys=7",
    "keys=5,6",
    "source=alphaSet",
    "source=betaPack",
    "creator=a",
    "creator=an",
    "creator=ana",
    "bpmMin=170&bpmMax=180",
    "bpmMin=300",
    "bpmMax=60",
    "lengthMin=60&lengthMax=120",
    "lengthMax=45",
    "densityMin=10",
    "densityMin=40",
    "q=love",
    "q=night+sky",
    "q=s",
    "q=kirameki",
    "keys=7&bpmMin=150&bpmMax=200",
    "keys=4&source=alphaSet&densityMin=20",
    "keys=5&bpmMax=80&lengthMax=90",
    "q=love&keys=7&bpmMin=150",
];

/// Times of one page without and with a cached total, one of each per round.
#[derive(Default)]
struct Times {
    cold: Vec<Duration>,
    cached: Vec<Duration>,
}

/// The medians of an order, in milliseconds.
struct Measured {
    order: String,
    cold: [f64; 3],
    cached: [f64; 3],
}

fn median_ms(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1_000.0
}

async fn timed(engine: &PostgresSearch, query: &SearchQuery) -> (Duration, u64) {
    let start = Instant::now();
    let total = engine.search(query, Generation::default()).await.unwrap().total;
    (start.elapsed(), total)
}

async fn measure(store: &Store, first: &SearchQuery, rounds: usize) -> (Measured, u64) {
    let engine = || PostgresSearch::new(store.clone(), CatalogueWatch::disabled());
    let warm = engine();
    let (_, total) = timed(&warm, first).await;
    let last = i64::try_from(total.div_ceil(first.page.size().into())).unwrap();
    let pages =
        [1, last / 2, last].map(|page| SearchQuery { page: PageRequest::clamped(page, 30), ..first.clone() });
    let mut times: [Times; 3] = Default::default();
    for _ in 0..rounds {
        for (page, times) in pages.iter().zip(&mut times) {
            times.cold.push(timed(&engine(), page).await.0);
            times.cached.push(timed(&warm, page).await.0);
        }
    }
    let order = format!("{} {}", first.sort.as_str(), first.direction.as_str());
    let cold = times.each_mut().map(|times| median_ms(&mut times.cold));
    let cached = times.each_mut().map(|times| median_ms(&mut times.cached));
    (Measured { order, cold, cached }, total)
}

fn orders(filter: &SearchQuery) -> Vec<SearchQuery> {
    let mut orders = Vec::new();
    for sort in Sort::ALL {
        if sort == Sort::Relevance && filter.text.is_none() {
            continue;
        }
        for direction in [Direction::Ascending, Direction::Descending] {
            orders.push(SearchQuery { sort, direction, ..filter.clone() });
        }
    }
    orders
}

/// Formats the slowest order of each page as `milliseconds (order)`.
fn slowest(measured: &[Measured], times: fn(&Measured) -> [f64; 3]) -> String {
    let slowest_of = |page: usize| {
        let slowest = measured.iter().max_by(|a, b| times(a)[page].total_cmp(&times(b)[page])).unwrap();
        format!("{:.0} ({})", times(slowest)[page], slowest.order)
    };
    (0..PAGE_NAMES.len()).map(slowest_of).collect::<Vec<_>>().join(" | ")
}

#[tokio::main]
async fn main() {
    let url = std::env::var("DATABASE_URL").unwrap().parse().unwrap();
    let rounds = std::env::var("LIST_PAGES_ROUNDS").map_or(5, |rounds| rounds.parse().unwrap());
    let only = std::env::var("LIST_PAGES_FILTER").ok();
    let store =
        Store::new(&StoreConfig { statement_timeout: Duration::from_mins(1), ..StoreConfig::new(url) });
    println!("medians of {rounds}, in ms: {} without a cached total, then with one", PAGE_NAMES.join(", "));
    let mut summary = Vec::new();
    for filter in FILTERS.into_iter().filter(|filter| only.as_deref().is_none_or(|only| only == *filter)) {
        let mut measured = Vec::new();
        let mut total = 0;
        for first in orders(&parse_query_string(filter).unwrap()) {
            let (times, found) = measure(&store, &first, rounds).await;
            total = found;
            let (cold, cached) = (times.cold, times.cached);
            println!("{filter:<36} {total:>7} {:<14} {cold:>7.1?} {cached:>7.1?}", times.order);
            measured.push(times);
        }
        let filter = if filter.is_empty() { "none" } else { filter };
        summary.push(format!(
            "| `{filter}` | {total} | {} | {} |",
            slowest(&measured, |times| times.cold),
            slowest(&measured, |times| times.cached)
        ));
    }
    println!("\n{}", summary.join("\n"));
    store.close().await;
}
