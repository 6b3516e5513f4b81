//! Measures the decoding of chart files by format, the note hash, the variant, the rating and the patterns:
//! `cargo bench -p chart-index-benchmarks --bench chart_files`.
//!
//! The files are the largest of each format in `samples/`. `decode` is what the ingest of a new chart does,
//! `decode_stored` that of a chart whose ROX file is stored already, `inspect_rox` the verification of a stored
//! ROX file. `note_hash` sorts, encodes and hashes generated notes, of which a chart has 500 to 5,000.
//! `library` computes the variant, the rating and the patterns of all charts of a library, of `CHARTS_DIR` if
//! it is set, otherwise of `samples/`, and inspects their ROX files: its elements are charts.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use chart_index_chartfile::{ChartFormat, decode, decode_skipping_stored_rox, inspect_rox, patterns, rating};
use chart_index_rox::{CanonicalNotes, TimedNote, preview};
use chart_index_tests::{real_charts, samples};
use criterion::{BenchmarkId, Criterion, Throughput};
use serde_json::Value;

const FILES: [(&str, &str); 4] = [
    ("osu", "alpha/900101 Paper Lanterns - Harbour Lights/4K tin owl's Expert (tin owl).osu"),
    ("qua", "alpha/900103 Weaver's Knot - Slow Glass/Refraction.qua"),
    ("sm", "beta/71 Kitchen Table Pack/Copper Kettle/kettle.sm"),
    ("ssc", "beta/71 Kitchen Table Pack/Night Bus/bus.ssc"),
];

fn main() {
    let mut criterion = Criterion::default()
        .without_plots()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(4))
        .sample_size(50)
        .configure_from_args();
    files(&mut criterion);
    note_hash(&mut criterion);
    library(&mut criterion);
    criterion.final_summary();
}

fn files(criterion: &mut Criterion) {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples");
    for (name, path) in FILES {
        let (format, bytes) =
            (ChartFormat::from_path(path).unwrap(), std::fs::read(samples.join(path)).unwrap());
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function("decode", |bencher| {
            bencher.iter(|| decode(format, black_box(&bytes)).unwrap());
        });
        group.bench_function("decode_stored", |bencher| {
            bencher.iter(|| decode_skipping_stored_rox(format, black_box(&bytes), &|_| true).unwrap());
        });
        let decoded = decode(format, &bytes).unwrap();
        let rox = decoded.charts[0].rox.as_deref().unwrap();
        group.throughput(Throughput::Bytes(rox.len() as u64));
        group.bench_function("inspect_rox", |bencher| {
            bencher.iter(|| inspect_rox(black_box(rox)).unwrap());
        });
        group.finish();
    }
}

fn note_hash(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("note_hash");
    for count in [500_u16, 5_000] {
        let notes: Vec<TimedNote> = (0..count).map(note).collect();
        group.throughput(Throughput::Elements(count.into()));
        group.bench_with_input(BenchmarkId::from_parameter(count), &notes, |bencher, notes| {
            bencher.iter(|| CanonicalNotes::new(7, black_box(notes)).unwrap().hash());
        });
    }
    group.finish();
}

/// A note every 125 ms, each fourth of them long, in the order of most files: by column last.
fn note(number: u16) -> TimedNote {
    let start_us = i64::from(number) * 125_000;
    let end_us = number.is_multiple_of(4).then_some(start_us + 400_000);
    TimedNote { start_us, column: u8::try_from(number * 5 % 7).unwrap(), end_us }
}

fn library(criterion: &mut Criterion) {
    let rox_files = rox_files();
    let decoded = rox_files.iter().map(|rox| from_preview(&preview(rox).unwrap()));
    let charts: Vec<CanonicalNotes> = decoded.collect();
    let mut group = criterion.benchmark_group("library");
    group.throughput(Throughput::Elements(charts.len() as u64));
    group.bench_function("variant", |bencher| {
        bencher.iter(|| charts.iter().filter_map(|notes| black_box(notes).rows().variant()).count());
    });
    group.bench_function("rating", |bencher| {
        bencher.iter(|| charts.iter().filter_map(|notes| rating(black_box(notes))).count());
    });
    group.bench_function("patterns", |bencher| {
        bencher.iter(|| charts.iter().map(|notes| patterns(black_box(notes)).ln_time_share).max());
    });
    group.bench_function("inspect_rox", |bencher| {
        bencher.iter(|| rox_files.iter().filter(|rox| inspect_rox(black_box(rox)).is_ok()).count());
    });
    group.finish();
}

/// The ROX files of all charts of a library.
fn rox_files() -> Vec<Vec<u8>> {
    let library = if std::env::var_os("CHARTS_DIR").is_some() { real_charts() } else { samples() };
    let mut rox_files = Vec::new();
    for file in walkdir::WalkDir::new(library).sort_by_file_name() {
        let file = file.unwrap();
        let Some(format) = ChartFormat::from_path(file.path().to_str().unwrap()) else { continue };
        // Libraries contain files without charts.
        let Ok(decoded) = decode(format, &std::fs::read(file.path()).unwrap()) else { continue };
        rox_files.extend(decoded.charts.into_iter().filter_map(|chart| chart.rox));
    }
    rox_files
}

/// The notes of a chart whose preview this is (docs/formats/preview.md).
fn from_preview(json: &[u8]) -> CanonicalNotes {
    let preview: Value = serde_json::from_slice(json).unwrap();
    let mut notes: Vec<TimedNote> = Vec::new();
    for (column, numbers) in (0..).zip(preview["columns"].as_array().unwrap()) {
        let mut start_us = 0;
        for number in numbers.as_array().unwrap().iter().map(|number| number.as_i64().unwrap()) {
            if number >= 0 {
                start_us += number * 1000;
                notes.push(TimedNote { start_us, column, end_us: None });
            } else {
                // The length of the long note before it.
                notes.last_mut().unwrap().end_us = Some(start_us - number * 1000);
            }
        }
    }
    CanonicalNotes::new(u8::try_from(preview["keys"].as_u64().unwrap()).unwrap(), &notes).unwrap()
}
