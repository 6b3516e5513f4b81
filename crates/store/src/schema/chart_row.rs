//! The columns of `charts` that follow from a ROX file: how they are read, and how they are written.

use chart_index_domain::{
    ANALYSIS_VERSION, ChartAnalysis, ChartDraft, ChartNumbers, ChartValues, DensityCurve, NOTE_HASH_VERSION,
    NoteHash, Patterns, Variant,
};

use crate::error::corrupt;
use crate::schema::column_values::{parse_keys, parse_rating};
use crate::schema::statement_columns::{Columns, Parameters};

/// A row of `charts`: the columns of [`chart_columns`].
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct ChartRow {
    hash: [u8; 32],
    keys: i16,
    bpm_min: f64,
    bpm_max: f64,
    bpm_main: f64,
    length_ms: i64,
    notes: i64,
    lns: i64,
    density_avg: f64,
    density_peak: f64,
    rox_bytes: i64,
    variant: Option<[u8; 32]>,
    rating: Option<i16>,
    patterns: Option<Vec<u8>>,
    /// 0 until the rating and the patterns are computed.
    analysis_version: i16,
    density_curve: Option<[u8; DensityCurve::PARTS]>,
}

/// The columns of [`ChartRow`], from `charts AS chart`.
macro_rules! chart_columns {
    () => {
        "chart.hash, chart.keys, chart.bpm_min, chart.bpm_max, chart.bpm_main, chart.length_ms, chart.notes, \
         chart.lns, chart.density_avg, chart.density_peak, chart.rox_bytes, chart.variant, chart.rating, \
         chart.patterns, chart.analysis_version, chart.density_curve"
    };
}
pub(crate) use chart_columns;

impl ChartRow {
    pub(crate) const fn hash(&self) -> NoteHash {
        NoteHash::from_bytes(self.hash)
    }

    pub(crate) fn values(&self) -> Result<ChartValues, sqlx::Error> {
        Ok(ChartValues {
            numbers: self.numbers()?,
            variant: self.variant.map(Variant::from_bytes),
            analysis: self.analysis()?,
            rox_bytes: u64::try_from(self.rox_bytes).map_err(corrupt)?,
            curve: self.density_curve.map(DensityCurve::from_bytes),
        })
    }

    /// Whether it has all that `chart-indexer backfill` computes.
    pub(crate) fn is_complete(&self) -> bool {
        self.analysis_version == i16::from(ANALYSIS_VERSION) && self.density_curve.is_some()
    }

    fn numbers(&self) -> Result<ChartNumbers, sqlx::Error> {
        Ok(ChartNumbers {
            keys: parse_keys(self.keys)?,
            bpm_min: self.bpm_min,
            bpm_max: self.bpm_max,
            bpm_main: self.bpm_main,
            length_ms: u32::try_from(self.length_ms).map_err(corrupt)?,
            notes: u32::try_from(self.notes).map_err(corrupt)?,
            lns: u32::try_from(self.lns).map_err(corrupt)?,
            density_avg: self.density_avg,
            density_peak: self.density_peak,
        })
    }

    /// The rating and the patterns; `None` if this version has not computed them.
    fn analysis(&self) -> Result<Option<ChartAnalysis>, sqlx::Error> {
        if self.analysis_version != i16::from(ANALYSIS_VERSION) {
            return Ok(None);
        }
        let rating = self.rating.map(parse_rating).transpose()?;
        let patterns = self.patterns.as_deref().unwrap_or_default().try_into().map_err(corrupt)?;
        Ok(Some(ChartAnalysis { rating, patterns: Patterns::from_bytes(patterns) }))
    }
}

/// The columns of `charts` with the values of these charts.
pub(crate) fn new_chart_columns(
    parameters: &mut Parameters,
    charts: &[&ChartDraft],
    rox_files: &[&[u8]],
) -> Columns {
    let mut columns = Columns::default();
    let integers = |value: fn(&ChartNumbers) -> u32| -> Vec<i64> {
        charts.iter().map(|chart| value(&chart.numbers).into()).collect()
    };
    let floats = |value: fn(&ChartNumbers) -> f64| -> Vec<f64> {
        charts.iter().map(|chart| value(&chart.numbers)).collect()
    };
    let keys: Vec<i16> = charts.iter().map(|chart| chart.numbers.keys.get().into()).collect();
    let sizes = rox_files.iter().map(|rox| i64::try_from(rox.len()).unwrap_or(i64::MAX));
    let versions = vec![i32::try_from(NOTE_HASH_VERSION).unwrap_or(i32::MAX); charts.len()];
    columns.add("note_hash_version", parameters.bind(versions));
    columns.add("keys", parameters.bind(keys));
    columns.add("bpm_min", parameters.bind(floats(|numbers| numbers.bpm_min)));
    columns.add("bpm_max", parameters.bind(floats(|numbers| numbers.bpm_max)));
    columns.add("bpm_main", parameters.bind(floats(|numbers| numbers.bpm_main)));
    columns.add("length_ms", parameters.bind(integers(|numbers| numbers.length_ms)));
    columns.add("notes", parameters.bind(integers(|numbers| numbers.notes)));
    columns.add("lns", parameters.bind(integers(|numbers| numbers.lns)));
    columns.add("density_avg", parameters.bind(floats(|numbers| numbers.density_avg)));
    columns.add("density_peak", parameters.bind(floats(|numbers| numbers.density_peak)));
    columns.add("rox_bytes", parameters.bind(sizes.collect::<Vec<_>>()));
    let variants = charts.iter().map(|chart| chart.variant.as_ref().map(Variant::as_bytes));
    columns.add("variant", parameters.bind(variants.collect::<Vec<_>>()));
    Columns::concat([&columns, &curve_column(parameters, charts), &backfilled_columns(parameters, charts)])
}

/// The density curve, which no record has.
pub(crate) fn curve_column(parameters: &mut Parameters, charts: &[&ChartDraft]) -> Columns {
    let curves = charts.iter().map(|chart| chart.curve.as_ref().map(DensityCurve::as_bytes));
    Columns::single("density_curve", parameters.bind(curves.collect::<Vec<_>>()))
}

/// The columns that records have and `chart-indexer backfill` computes for charts of an older version.
pub(crate) fn backfilled_columns(parameters: &mut Parameters, charts: &[&ChartDraft]) -> Columns {
    let mut columns = Columns::default();
    let analyses = || charts.iter().map(|chart| chart.analysis.as_ref());
    let ratings = analyses().map(|analysis| i16::try_from(analysis?.rating?.hundredths()).ok());
    columns.add("rating", parameters.bind(ratings.collect::<Vec<_>>()));
    let patterns = analyses().map(|analysis| Some(analysis?.patterns.to_bytes()));
    columns.add("patterns", parameters.bind(patterns.collect::<Vec<_>>()));
    let versions = analyses().map(|analysis| analysis.map_or(0, |_| i16::from(ANALYSIS_VERSION)));
    columns.add("analysis_version", parameters.bind(versions.collect::<Vec<_>>()));
    columns
}
