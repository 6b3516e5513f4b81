//! Finds charts that play like another one.

use chart_index_domain::{ListedChart, NoteHash, ReadError, SimilarChart};

use crate::Store;
use crate::rows::{ListedChartRow, listed_chart_columns};

/// The position of `charts AS chart` in the index `charts_by_similarity`.
macro_rules! position {
    () => {
        "point(chart.keys * 1000 + 5 * ln(greatest(chart.bpm_main, 1)), ln(greatest(chart.density_peak, 1)))"
    };
}

/// Returns `chartset_id`, `hash` and `distance` of up to 12 charts, each in another chartset.
///
/// The index returns the nearest 250 charts, and the ranges are tested afterwards: with the ranges as
/// conditions of the scan, PostgreSQL expects few rows and sorts all rows within them, 45,000 of 1,000,000
/// charts. The remaining charts are ordered again by a distance that includes the share of long notes; a
/// difference of 50 % counts as much as 25 % of density.
macro_rules! similar_charts {
    () => {
        concat!(
            "SELECT * FROM (
                 SELECT DISTINCT ON (home.chartset_id) home.chartset_id, nearest.hash, nearest.distance
                 FROM (
                     SELECT candidate.hash,
                            sqrt(candidate.distance ^ 2 + (0.5 * (candidate.ln_share - target.ln_share)) ^ 2)
                                AS distance
                     FROM (
                         SELECT chart.keys, chart.bpm_main, chart.density_peak, ",
            crate::similar_charts::position!(),
            " AS position, chart.lns / chart.notes::double precision AS ln_share
                         FROM charts AS chart WHERE chart.hash = $1 AND chart.removed_at_ms IS NULL
                     ) AS target, LATERAL (
                         SELECT chart.hash, chart.keys, chart.bpm_main, chart.density_peak,
                                chart.lns / chart.notes::double precision AS ln_share, ",
            crate::similar_charts::position!(),
            " <-> target.position AS distance
                         FROM charts AS chart
                         WHERE chart.removed_at_ms IS NULL AND chart.hash <> $1
                         ORDER BY ",
            crate::similar_charts::position!(),
            " <-> target.position LIMIT 250
                     ) AS candidate
                     WHERE candidate.keys = target.keys AND candidate.bpm_main
                               BETWEEN SYMMETRIC target.bpm_main * 0.95 AND target.bpm_main * 1.05
                       AND candidate.density_peak BETWEEN target.density_peak * 0.9 AND target.density_peak * 1.25
                     ORDER BY distance, hash LIMIT 60
                 ) AS nearest, LATERAL (
                     SELECT chartset.id AS chartset_id FROM chartset_charts AS member
                     JOIN chartsets AS chartset ON chartset.id = member.chartset_id
                     WHERE member.chart_hash = nearest.hash AND chartset.shown AND NOT EXISTS (
                         SELECT FROM chartset_charts AS own
                         WHERE own.chartset_id = member.chartset_id AND own.chart_hash = $1)
                     ORDER BY chartset.exact_kind IS NULL, chartset.id LIMIT 1
                 ) AS home
                 ORDER BY home.chartset_id, nearest.distance, nearest.hash
             ) AS of_chartset
             ORDER BY distance, hash LIMIT 12"
        )
    };
}
use position;

impl Store {
    /// Returns charts with the same number of keys, a main BPM within 5 % and a peak density from 10 % below to
    /// 25 % above: the nearest by these and by the share of long notes first, at most 12, each in another
    /// chartset. Charts of the chartsets that contain the chart itself are left out. Empty if the chart is
    /// removed or not stored.
    pub async fn similar_charts(&self, hash: NoteHash) -> Result<Vec<SimilarChart>, ReadError> {
        self.short_read("read similar charts", |mut connection| async move {
            let rows: Vec<ListedChartRow> = sqlx::query_as(concat!(
                "SELECT ",
                listed_chart_columns!(),
                " FROM (",
                similar_charts!(),
                ") AS similar_chart
                  JOIN chartset_charts AS member ON member.chartset_id = similar_chart.chartset_id
                                                AND member.chart_hash = similar_chart.hash
                  JOIN charts AS chart ON chart.hash = similar_chart.hash
                  ORDER BY similar_chart.distance, similar_chart.hash"
            ))
            .bind(hash.as_bytes())
            .fetch_all(&mut *connection)
            .await?;
            rows.into_iter().map(similar_chart).collect()
        })
        .await
    }
}

fn similar_chart(row: ListedChartRow) -> Result<SimilarChart, sqlx::Error> {
    let chartset_id = row.chartset_id()?;
    let ListedChart { chart, curve } = row.into_chart()?;
    Ok(SimilarChart { chart, curve, chartset_id })
}
