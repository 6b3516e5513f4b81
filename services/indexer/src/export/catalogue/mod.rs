//! The file of an export for SQLite, and that of Parquet (docs/formats/catalogue.md).

mod parquet_file;
mod sqlite_file;

use std::path::Path;

use anyhow::{Context, Result};
use chart_index_domain::{
    ChartRecord, Chartset, ChartsetId, ChartsetRecord, ExportFile, ExportedFile, Keywords, Patterns,
    PublicSource, text,
};
use rusqlite::types::Value;

use self::parquet_file::ParquetFile;
use self::sqlite_file::SqliteFile;

/// Merges the parts of the index of words into one.
const MERGE_WORDS: &str = "INSERT INTO chartset_words (chartset_words) VALUES ('optimize')";

/// How many bytes of a variant the files have.
const VARIANT_BYTES: usize = 8;

/// The files while they are written.
pub(super) struct CatalogueFiles {
    sqlite: Option<SqliteFile>,
    parquet: Option<ParquetFile>,
    /// The number of the last chartset.
    last_number: i64,
}

impl CatalogueFiles {
    pub(super) fn create(folder: &Path, sqlite: bool, parquet: bool) -> Result<Self> {
        Ok(Self {
            sqlite: sqlite
                .then(|| SqliteFile::create(folder, ExportFile::Catalogue, include_str!("catalogue.sql")))
                .transpose()?,
            parquet: parquet.then(|| ParquetFile::create(folder)).transpose()?,
            last_number: -1,
        })
    }

    /// Adds a chartset with its charts. Chartsets come in the order of their ids.
    pub(super) fn insert(&mut self, record: &ChartsetRecord) -> Result<()> {
        if self.sqlite.is_none() && self.parquet.is_none() {
            return Ok(());
        }
        let (chartset, keywords) = record.assemble().context("a chartset has no charts")?;
        let number = number_of(record.id).max(self.last_number + 1);
        self.last_number = number;
        let of_chartset = chartset_row(number, record, &chartset, &keywords);
        if let Some(file) = &self.sqlite {
            file.insert("chartsets", of_chartset.clone())?;
            let words = words_row(number, &chartset, &keywords);
            file.insert("chartset_words (rowid, title, artist, creator, romanised, tags)", words)?;
        }
        let mut charts: Vec<&ChartRecord> = record.charts.iter().collect();
        charts.sort_unstable_by_key(|chart| chart.hash);
        for chart in charts {
            let of_chart = chart_row(number, &chartset, chart);
            if let Some(file) = &mut self.parquet {
                file.insert(joined_row(&of_chartset, &of_chart))?;
            }
            if let Some(file) = &self.sqlite {
                file.insert("charts", of_chart)?;
            }
        }
        Ok(())
    }

    /// Completes the files.
    pub(super) fn finish(self) -> Result<Vec<ExportedFile>> {
        let sqlite = self.sqlite.map(|file| file.finish(MERGE_WORDS)).transpose()?;
        let parquet = self.parquet.map(ParquetFile::finish).transpose()?;
        Ok(sqlite.into_iter().chain(parquet).collect())
    }
}

/// The first 31 bits, so that nearly all numbers take 4 bytes, and the rows of a chartset do not depend on
/// others: when a chartset is removed, numbers in sequence would change for all later ones.
fn number_of(id: ChartsetId) -> i64 {
    (u64::from_be_bytes(*id.as_bytes()) >> 33).cast_signed()
}

fn source_columns(source: Option<&PublicSource>) -> (Value, Value) {
    let reference = |source: &PublicSource| source.reference.as_str().parse::<i64>().ok();
    let kind = source.map(|source| source.kind.as_str().to_owned());
    (kind.into(), source.and_then(reference).into())
}

fn chartset_row(
    number: i64,
    record: &ChartsetRecord,
    chartset: &Chartset,
    keywords: &Keywords,
) -> Vec<Value> {
    let (kind, reference) = source_columns(chartset.source.as_ref());
    let confidence = if record.exact_source.is_some() { "exact" } else { "declared" };
    let confidence = chartset.source.as_ref().map(|_| confidence.to_owned());
    vec![
        number.into(),
        record.id.to_string().into(),
        chartset.title.clone().into(),
        chartset.artist.clone().into(),
        chartset.creator.clone().into(),
        keywords.romanised_names.join("\n").into(),
        keywords.tags.join("\n").into(),
        kind,
        reference,
        confidence.into(),
        record.updated_at_ms.into(),
    ]
}

/// The texts of a chartset as they are and folded, for queries that are not folded and those that are.
fn words_row(number: i64, chartset: &Chartset, keywords: &Keywords) -> Vec<Value> {
    let names = [&chartset.title, &chartset.artist, &chartset.creator].map(String::clone);
    let texts = names.into_iter().chain([keywords.romanised_names.join("\n"), keywords.tags.join("\n")]);
    let indexed = |text: String| {
        if text.is_ascii() { text } else { text::compose(&text) + "\n" + &text::fold(&text) }
    };
    std::iter::once(number.into()).chain(texts.map(indexed).map(Value::Text)).collect()
}

fn chart_row(number: i64, chartset: &Chartset, chart: &ChartRecord) -> Vec<Value> {
    let other = |text: &String, of_chartset: &String| (text != of_chartset).then(|| text.clone());
    let (metadata, numbers) = (&chart.metadata, &chart.numbers);
    let (declared_kind, declared_ref) = source_columns(chart.declared_source.as_ref());
    let integer = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut row = vec![
        number.into(),
        chart.hash.as_bytes().to_vec().into(),
        other(&metadata.title, &chartset.title).into(),
        other(&metadata.artist, &chartset.artist).into(),
        other(&metadata.creator, &chartset.creator).into(),
        metadata.difficulty.clone().into(),
        i64::from(numbers.keys.get()).into(),
        numbers.bpm_min.into(),
        numbers.bpm_max.into(),
        numbers.bpm_main.into(),
        i64::from(numbers.length_ms).into(),
        i64::from(numbers.notes).into(),
        i64::from(numbers.lns).into(),
        numbers.density_peak.into(),
        integer(chart.rox_bytes).into(),
        chart.alpha_beatmap_id.map(integer).into(),
        declared_kind,
        declared_ref,
        chart.variant.map(|variant| variant.as_bytes()[..VARIANT_BYTES].to_vec()).into(),
        chart.rating.map(|rating| i64::from(rating.hundredths())).into(),
    ];
    row.extend(pattern_columns(chart.patterns.as_ref()));
    row
}

/// A row of the Parquet file: that of the chartset with title, artist and creator of the chart, and that of the
/// chart, both without their numbers.
fn joined_row(of_chartset: &[Value], of_chart: &[Value]) -> Vec<Value> {
    let mut row = of_chartset[1..].to_vec();
    for (value, of_chart) in row[1..4].iter_mut().zip(&of_chart[2..5]) {
        if *of_chart != Value::Null {
            value.clone_from(of_chart);
        }
    }
    row.push(of_chart[1].clone());
    row.extend_from_slice(&of_chart[5..]);
    row
}

/// The values in the order of the columns, which is that of [`Pattern`](chart_index_domain::Pattern).
fn pattern_columns(patterns: Option<&Patterns>) -> Vec<Value> {
    let Some(patterns) = patterns else {
        return vec![Value::Null; Patterns::CLASSES + 4];
    };
    let shares = patterns.row_shares.into_iter().chain([patterns.ln_note_share, patterns.ln_time_share]);
    let rates = [patterns.rows_per_second_median, patterns.rows_per_second_p90];
    shares.map(i64::from).chain(rates.map(i64::from)).map(Value::Integer).collect()
}
