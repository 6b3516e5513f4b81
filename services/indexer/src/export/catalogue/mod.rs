//! The files of an export for SQLite and of Parquet (docs/formats/catalogue.md).

mod parquet_file;
mod patch;
mod sqlite_file;

use std::path::Path;

use anyhow::{Context, Result};
use chart_index_domain::{
    ChartRecord, Chartset, ChartsetId, ChartsetRecord, ExportFile, ExportedFile, Keywords, NoteHash,
    Patterns, PublicSource,
};
use rusqlite::types::Value;

use self::parquet_file::ParquetFile;
use self::sqlite_file::SqliteFile;

/// Fills the index of words from the table of chartsets, and merges its parts into one.
const FILL_WORDS: &str = "INSERT INTO chartset_words (chartset_words) VALUES ('rebuild');
                          INSERT INTO chartset_words (chartset_words) VALUES ('optimize')";
/// Sorts the hashes on disk.
const FILL_HASHES: &str = "INSERT INTO charts SELECT hash, min(preference) & 0xffffffff
                           FROM occurrences GROUP BY hash ORDER BY hash";
/// Added to the preference of a chartset without a source.
const WITHOUT_SOURCE: i64 = 1 << 32;

/// The files while they are written.
pub(super) struct CatalogueFiles {
    sqlite: Option<SqliteFiles>,
    parquet: Option<ParquetFile>,
    /// The number of the last chartset.
    last_number: i64,
}

struct SqliteFiles {
    catalogue: SqliteFile,
    hashes: SqliteFile,
}

impl CatalogueFiles {
    pub(super) fn create(folder: &Path, sqlite: bool, parquet: bool) -> Result<Self> {
        Ok(Self {
            sqlite: sqlite.then(|| SqliteFiles::create(folder)).transpose()?,
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
        if let Some(files) = &self.sqlite {
            files.insert_chartset(&of_chartset)?;
        }
        let mut charts: Vec<&ChartRecord> = record.charts.iter().collect();
        charts.sort_unstable_by_key(|chart| chart.hash);
        for chart in charts {
            let of_chart = chart_row(number, &chartset, chart);
            if let Some(file) = &mut self.parquet {
                file.insert(joined_row(&of_chartset, &of_chart))?;
            }
            if let Some(files) = &self.sqlite {
                let preference = if chartset.source.is_some() { number } else { number | WITHOUT_SOURCE };
                files.insert_chart(of_chart, chart.hash, preference)?;
            }
        }
        Ok(())
    }

    /// Completes the files, and writes those for SQLite as patches of those of an earlier export, if it has
    /// them.
    pub(super) fn finish(self, earlier: Option<&Path>) -> Result<Vec<ExportedFile>> {
        let mut files = match self.sqlite {
            Some(files) => files.finish(earlier)?,
            None => Vec::new(),
        };
        files.extend(self.parquet.map(ParquetFile::finish).transpose()?);
        Ok(files)
    }
}

impl SqliteFiles {
    fn create(folder: &Path) -> Result<Self> {
        let (catalogue, hashes) = (include_str!("catalogue.sql"), include_str!("hashes.sql"));
        Ok(Self {
            catalogue: SqliteFile::create(folder, ExportFile::Catalogue, catalogue)?,
            hashes: SqliteFile::create(folder, ExportFile::Hashes, hashes)?,
        })
    }

    fn insert_chartset(&self, row: &[Value]) -> Result<()> {
        self.catalogue.insert("chartsets", row.to_vec())?;
        // Number, id and source.
        self.hashes.insert("chartsets", [0, 1, 7, 8].map(|column| row[column].clone()).into())
    }

    fn insert_chart(&self, row: Vec<Value>, hash: NoteHash, preference: i64) -> Result<()> {
        self.catalogue.insert("charts", row)?;
        let hash = first_64_bits(hash.as_bytes());
        self.hashes.insert("occurrences", vec![hash.into(), preference.into()])
    }

    fn finish(self, earlier: Option<&Path>) -> Result<Vec<ExportedFile>> {
        let mut files = self.catalogue.finish(FILL_WORDS, ExportFile::CataloguePatch, earlier)?;
        files.extend(self.hashes.finish(FILL_HASHES, ExportFile::HashesPatch, earlier)?);
        Ok(files)
    }
}

/// The first 31 bits, so that nearly all numbers take 4 bytes: a chartset that is added moves the rows of
/// others, but does not change them, and patches stay small.
fn number_of(id: ChartsetId) -> i64 {
    (u64::from_be_bytes(*id.as_bytes()) >> 33).cast_signed()
}

/// As SQLite reads a hexadecimal literal: the greater half are negative.
fn first_64_bits(hash: &[u8; 32]) -> i64 {
    hash.first_chunk().map_or(0, |first| i64::from_be_bytes(*first))
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
        chart.variant.map(|variant| first_64_bits(variant.as_bytes())).into(),
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
