//! Reads `shown_charts`: what lists filter the charts of a chartset by.

use chart_index_domain::search::FilterableChart;

use crate::error::corrupt;
use crate::schema::column_values::{parse_keys, parse_rating};

/// The charts of a chartset: the columns of [`filterable_charts`], each with an element per chart.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct FilterableChartColumns {
    key_counts: Vec<i16>,
    lowest_bpms: Vec<f64>,
    highest_bpms: Vec<f64>,
    lengths_ms: Vec<i64>,
    densities: Vec<f64>,
    ln_shares: Vec<i16>,
    note_counts: Vec<i64>,
    ratings: Vec<Option<i16>>,
    row_shares: Vec<Option<Vec<u8>>>,
}

/// A subquery for the charts of `chartsets`, which has one row, as `charts`.
macro_rules! filterable_charts {
    () => {
        "(SELECT coalesce(array_agg(chart.keys), '{}') AS key_counts,
                 coalesce(array_agg(chart.bpm_min), '{}') AS lowest_bpms,
                 coalesce(array_agg(chart.bpm_max), '{}') AS highest_bpms,
                 coalesce(array_agg(chart.length_ms), '{}') AS lengths_ms,
                 coalesce(array_agg(chart.density_peak), '{}') AS densities,
                 coalesce(array_agg(chart.ln_share), '{}') AS ln_shares,
                 coalesce(array_agg(chart.notes), '{}') AS note_counts,
                 coalesce(array_agg(chart.rating), '{}') AS ratings,
                 coalesce(array_agg(chart.row_shares), '{}') AS row_shares
          FROM shown_charts AS chart WHERE chart.chartset_id = chartsets.id) AS charts"
    };
}
pub(crate) use filterable_charts;

impl FilterableChartColumns {
    /// The charts, in no particular order.
    pub(crate) fn into_charts(self) -> Result<Vec<FilterableChart>, sqlx::Error> {
        let charts = self.key_counts.into_iter().enumerate().map(|(index, keys)| {
            Ok(FilterableChart {
                keys: parse_keys(keys)?,
                bpm_min: self.lowest_bpms[index],
                bpm_max: self.highest_bpms[index],
                length_ms: u32::try_from(self.lengths_ms[index]).map_err(corrupt)?,
                density_peak: self.densities[index],
                ln_share: u8::try_from(self.ln_shares[index]).map_err(corrupt)?,
                notes: u32::try_from(self.note_counts[index]).map_err(corrupt)?,
                rating: self.ratings[index].map(parse_rating).transpose()?,
                row_shares: self.row_shares[index]
                    .as_deref()
                    .map(TryInto::try_into)
                    .transpose()
                    .map_err(corrupt)?,
            })
        });
        charts.collect()
    }
}
