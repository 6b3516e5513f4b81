//! Measures the parsing of what clients send: query strings of the list, and note hashes:
//! `cargo bench -p chart-index-benchmarks --bench query_strings`.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::time::Duration;

use chart_index_domain::NoteHash;
use chart_index_domain::search::parse_query_string;
use criterion::Criterion;

const ACCEPTED: [(&str, &str); 4] = [
    ("empty", ""),
    ("page", "sort=updated&page=3&perPage=30"),
    (
        "filters",
        "keys=4,7&source=alphaSet&bpmMin=120&bpmMax=200&lengthMin=60&densityMin=4.5&sort=bpm&order=asc",
    ),
    ("text", "q=%E5%A4%9C%E3%81%AE%E8%88%AA%E8%B7%AF+night+sky&creator=tin%20owl&sort=relevance&page=2"),
];
const REFUSED: [(&str, &str); 2] = [("bad_number", "bpmMin=fast"), ("bad_utf8", "q=%ff%fe")];

fn main() {
    let mut criterion = Criterion::default()
        .without_plots()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let mut group = criterion.benchmark_group("parse_query_string");
    for (name, query) in ACCEPTED {
        group.bench_function(name, |bencher| bencher.iter(|| parse_query_string(black_box(query)).unwrap()));
    }
    for (name, query) in REFUSED {
        group.bench_function(name, |bencher| {
            bencher.iter(|| parse_query_string(black_box(query)).unwrap_err());
        });
    }
    group.finish();
    let hash = "3f0a".repeat(16);
    criterion.bench_function("parse_note_hash", |bencher| {
        bencher.iter(|| black_box(&hash).parse::<NoteHash>().unwrap());
    });
    criterion.final_summary();
}
