//! Conversions of charts find their original through the API (docs/formats/variant.md).

use chart_index_tests::{ChartSpec, Service, notes_of_preview, real_charts};
use serde_json::Value;

use super::*;

/// A change of times that converters make.
struct Conversion {
    name: &'static str,
    convert: fn(i64) -> i64,
    /// Added to the ends of long notes.
    longer_ms: i64,
}

const CONVERSIONS: [Conversion; 7] = [
    Conversion { name: "offset", convert: |ms| ms + 777, longer_ms: 0 },
    Conversion { name: "rate 0.8", convert: |ms| (10 * ms + 4) / 8, longer_ms: 0 },
    Conversion { name: "rate 0.9", convert: |ms| (10 * ms + 4) / 9, longer_ms: 0 },
    Conversion { name: "rate 1.1", convert: |ms| (10 * ms + 5) / 11, longer_ms: 0 },
    Conversion { name: "rate 1.25, truncated", convert: |ms| 4 * ms / 5, longer_ms: 0 },
    Conversion { name: "rate 1.5", convert: |ms| (2 * ms + 1) / 3, longer_ms: 0 },
    Conversion { name: "ends of long notes", convert: |ms| ms, longer_ms: -20 },
];

/// Ingests a library, converts its charts, and looks the conversions up.
async fn assert_conversions_are_found(library: &str) {
    let database = Database::new().await;
    database.run(&["ingest", library]);
    let service = Service::start(database.0.url());
    let (client, base) = (service.client(), format!("http://{}", service.address()));
    let charts =
        database.0.psql("SELECT encode(hash, 'hex'), keys FROM charts WHERE variant IS NOT NULL ORDER BY 1");
    let conversions = Library::new();
    let mut originals = std::collections::HashMap::new();
    for line in charts.lines() {
        let (hash, keys) = line.split_once('|').unwrap();
        let preview = client.get(&format!("/api/charts/{hash}/preview")).await.json();
        let original = notes_of_preview(&preview);
        for Conversion { name, convert, longer_ms } in &CONVERSIONS {
            let end = |start: i64, end: i64| (convert(end) + longer_ms).max(convert(start) + 1);
            let converted = original.iter().map(|(start, column, ends)| {
                (convert(*start), *column, ends.map(|note_end| end(*start, note_end)))
            });
            let notes = converted.collect();
            let file = format!("alpha/{name}/{hash}.osu");
            let chart = ChartSpec { keys: keys.parse().unwrap(), notes, ..ChartSpec::default() };
            originals.insert(file.clone(), hash.to_owned());
            conversions.osu(&file, chart);
        }
    }
    let run = IndexerRun::run(&mut hash_command(&[&conversions.argument(), "--lookup", &base]));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let mut lost = Vec::new();
    for line in run.stdout.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (path, lookup) = (line["file"].as_str().unwrap(), &line["lookup"]);
        let (_, file) = path.split_once("/library/").unwrap();
        let original = &originals[file];
        let items = lookup["variants"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_found =
            lookup["chartHash"] == **original || items.iter().any(|item| item["hash"] == **original);
        if !is_found {
            lost.push(file.to_owned());
        }
    }
    let count = run.stdout.lines().count();
    assert_eq!(count, originals.len(), "no conversion is refused");
    assert!(!originals.is_empty() && lost.len() * 500 <= originals.len(), "lost: {lost:?}");
}

#[tokio::test]
async fn conversions_of_samples_are_found() {
    assert_conversions_are_found(samples().to_str().unwrap()).await;
}

#[tokio::test]
#[ignore = "needs the real charts: make test-system"]
async fn conversions_of_real_charts_are_found() {
    assert_conversions_are_found(real_charts().to_str().unwrap()).await;
}
