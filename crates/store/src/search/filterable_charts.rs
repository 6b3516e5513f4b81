//! The columns of `shown_charts` by which lists filter charts, as the view `indexed_chartsets` has them.

use chart_index_domain::Patterns;
use chart_index_domain::search::FilterableChart;

use crate::error::corrupt;
use crate::schema::column_values::{parse_keys, parse_rating};

/// The charts of a chartset: each column has an element per chart.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct FilterableChartColumns {
    key_counts: Vec<i16>,
    lowest_bpms: Vec<f64>,
    highest_bpms: Vec<f64>,
    main_bpms: Vec<f64>,
    lengths_ms: Vec<i64>,
    densities: Vec<f64>,
    ln_shares: Vec<i16>,
    note_counts: Vec<i64>,
    ratings: Vec<Option<i16>>,
    row_shares: Vec<Option<[u8; Patterns::CLASSES]>>,
}

impl FilterableChartColumns {
    /// The charts, in no particular order.
    pub(crate) fn into_charts(self) -> Result<Vec<FilterableChart>, sqlx::Error> {
        let charts = self.key_counts.into_iter().enumerate().map(|(index, keys)| {
            Ok(FilterableChart {
                keys: parse_keys(keys)?,
                bpm_min: self.lowest_bpms[index],
                bpm_max: self.highest_bpms[index],
                bpm_main: self.main_bpms[index],
                length_ms: u32::try_from(self.lengths_ms[index]).map_err(corrupt)?,
                density_peak: self.densities[index],
                ln_share: u8::try_from(self.ln_shares[index]).map_err(corrupt)?,
                notes: u32::try_from(self.note_counts[index]).map_err(corrupt)?,
                rating: self.ratings[index].map(parse_rating).transpose()?,
                row_shares: self.row_shares[index],
            })
        });
        charts.collect()
    }
}
