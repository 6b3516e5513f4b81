//! Measures deep pages: the middle and the last page compared with the first, for every sort, with and without filters.
//!
//! It starts its own Meilisearch server with `DEEP_PAGES_CHARTSETS` chartsets (100,000 by default), and prints a line for
//! each sort: the shortest time of each of the three pages, with its ratio to that of the first page; then the medians,
//! which depend more on the load of the machine.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking, and prints its results"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chart_index_domain::search::{
    Bounds, CatalogueChanges, Checkpoint, Direction, Generation, IndexedChartset, PageRequest,
    RecordedCheckpoint, SearchIndex, SearchQuery, Sort, UnappliedChanges,
};
use chart_index_domain::{Chartset, ChartsetId, KeyCount, Keywords, ReadError};
use chart_index_search::{IndexBatch, IndexWriter, MeilisearchEngine, NodeConfig, SearchConfig, Target};
use chart_index_tests::{PrivateMeilisearch, Random};

/// The number of requests for each page.
const ROUNDS: usize = 25;
const SYLLABLES: [&str; 24] = [
    "ka", "mi", "no", "ra", "te", "shi", "dra", "gon", "fire", "night", "sky", "blue", "star", "re", "lu",
    "na", "to", "ha", "zen", "x", "一", "花", "夜", "空",
];

struct NoChanges;

#[async_trait]
impl CatalogueChanges for NoChanges {
    async fn unapplied(&self, _: RecordedCheckpoint) -> Result<UnappliedChanges, ReadError> {
        Ok(UnappliedChanges::default())
    }
}

fn name(random: &mut Random, max_words: u32) -> String {
    let mut name = String::new();
    for _ in 0..=random.below(max_words) {
        for _ in 0..=random.below(3) {
            name.push_str(random.pick::<&str>(&SYLLABLES));
        }
        name.push(' ');
    }
    name.trim_end().to_owned()
}

/// A chartset from realistic distributions: a third have one of three tempos, most were ingested in the same hour.
fn chartset(number: u64, random: &mut Random) -> IndexedChartset {
    let tempo = if random.one_in(3) { *random.pick(&[180, 175, 200]) } else { 100 + random.below(150) };
    let bpm =
        f64::from(tempo) + if random.one_in(6) { f64::from(random.below(1_000)) / 1_000.0 } else { 0.0 };
    let length = 30_000 + random.below(200_000) + random.below(100_000);
    let chartset = Chartset {
        id: ChartsetId::from_bytes(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()),
        title: name(random, 4),
        artist: name(random, 2),
        creator: format!("{}{}", random.pick(&SYLLABLES), random.below(2_000)),
        source: None,
        keys: vec![KeyCount::try_from(if random.one_in(4) { 7 } else { 4 }).unwrap()],
        bpm_min: bpm,
        bpm_max: bpm,
        length_min_ms: length,
        length_max_ms: length,
        density_max: f64::from(random.below(40)),
        chart_count: 3,
    };
    let tags = (0..random.below(8)).map(|_| name(random, 1)).collect();
    let keywords = Keywords { tags, ..Keywords::default() };
    let age_ms = if random.one_in(5) {
        i64::from(random.below(2_000_000_000)) * 40
    } else {
        i64::from(random.below(3_600_000))
    };
    IndexedChartset { chartset, keywords, updated_at_ms: 1_760_000_000_000 - age_ms }
}

async fn filled(server: &PrivateMeilisearch, count: u64) -> NodeConfig {
    let config = NodeConfig::new(server.url().parse().unwrap(), None);
    let writer = IndexWriter::new(&config).unwrap();
    let mut random = Random::new(1);
    writer.begin_rebuild().await.unwrap();
    let sets: Vec<IndexedChartset> = (1..=count).map(|number| chartset(number, &mut random)).collect();
    for put in sets.chunks(20_000) {
        writer.apply(Target::Rebuild, &IndexBatch { put, delete: &[] }).await.unwrap();
    }
    writer.set_checkpoint(Target::Rebuild, Checkpoint(1)).await.unwrap();
    writer.finish_rebuild().await.unwrap();
    config
}

async fn timed(engine: &MeilisearchEngine, query: &SearchQuery) -> (Duration, u64) {
    let start = Instant::now();
    let total = engine.search(query, Generation::default()).await.unwrap().total;
    (start.elapsed(), total)
}

/// The sorted times of the first, the middle and the last page. The pages are requested alternately, so that other load
/// on the machine affects all three.
async fn measured(engine: &MeilisearchEngine, first: &SearchQuery) -> ([Vec<Duration>; 3], u64) {
    let (_, total) = timed(engine, first).await;
    let last = i64::try_from(total.div_ceil(30)).unwrap();
    let pages =
        [1, last / 2, last].map(|page| SearchQuery { page: PageRequest::clamped(page, 30), ..first.clone() });
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (page, times) in pages.iter().zip(&mut times) {
            times.push(timed(engine, page).await.0);
        }
    }
    for times in &mut times {
        times.sort_unstable();
    }
    (times, total)
}

/// The times of a rank, and their ratios to that of the first page.
fn comparison([first, middle, last]: &[Vec<Duration>; 3], rank: usize) -> String {
    let (first, middle, last) = (first[rank], middle[rank], last[rank]);
    let ratio = |page: Duration| page.as_secs_f64() / first.as_secs_f64();
    let (middle_ratio, last_ratio) = (ratio(middle), ratio(last));
    format!(
        "first {first:>7.2?}  middle {middle:>7.2?} {middle_ratio:>4.2}  last {last:>7.2?} {last_ratio:>4.2}"
    )
}

#[tokio::main]
async fn main() {
    let count = std::env::var("DEEP_PAGES_CHARTSETS").map_or(100_000, |count| count.parse().unwrap());
    let server = PrivateMeilisearch::start();
    let start = Instant::now();
    let config = filled(&server, count).await;
    println!("{}, {count} chartsets, filled in {:.0?}", server.version(), start.elapsed());
    let mut config = SearchConfig::new(vec![config]);
    config.search_timeout = Duration::from_secs(30);
    let engine = MeilisearchEngine::connect(config, Arc::new(NoChanges)).await.unwrap();
    let four: chart_index_domain::search::KeySet = [KeyCount::try_from(4).unwrap()].into_iter().collect();
    let bpm = Bounds { min: Some(120.0), max: Some(200.0) };
    let everything = SearchQuery::default();
    for (name, filter) in [
        ("everything", everything.clone()),
        ("keys and bpm", SearchQuery { keys: four, bpm, ..everything.clone() }),
        ("creator", SearchQuery { creator: Some("a1".into()), ..everything.clone() }),
        ("text", SearchQuery { text: Some("night".into()), ..everything.clone() }),
    ] {
        for sort in Sort::ALL {
            for direction in [Direction::Descending, Direction::Ascending] {
                let relevance = sort == Sort::Relevance;
                if relevance && (filter.text.is_none() || direction == Direction::Ascending) {
                    continue;
                }
                let first = SearchQuery { sort, direction, ..filter.clone() };
                let (times, total) = measured(&engine, &first).await;
                let (sort, direction) = (sort.as_str(), direction.as_str());
                let (shortest, medians) = (comparison(&times, 0), comparison(&times, ROUNDS / 2));
                println!("{name:<13} {total:>7} {sort:<9} {direction:<4}  {shortest}  | {medians}");
            }
        }
    }
}
