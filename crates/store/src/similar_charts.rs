//! Finds charts that play like another one.

use chart_index_domain::{ListedChart, NoteHash, ReadError, SimilarChart};

use crate::Store;
use crate::rows::{ListedChartRow, listed_chart_columns};

/// The position of `charts AS chart` in the index `charts_by_similarity`.
macro_rules! position {
    () => {
        "point(chart.keys * 1000 + 100 * ln(chart.rating), get_byte(chart.patterns, 9))"
    };
}

/// Returns `chartset_id`, `hash` and `distance` of up to 12 charts, each in another chartset.
///
/// The index returns the 250 charts that are nearest by rating and share of long notes. They are ordered again by a
/// distance that includes the shares of all classes of rows, bytes 0 to 8 of the patterns: a ratio of 1 % between
/// ratings counts as much as 1 % of the rows.
macro_rules! similar_charts {
    () => {
        concat!(
            "SELECT * FROM (
                 SELECT DISTINCT ON (home.chartset_id) home.chartset_id, nearest.hash, nearest.distance
                 FROM (
                     SELECT candidate.hash, candidate.distance
                     FROM (
                         SELECT chart.keys, chart.rating, chart.patterns, chart.analysis_version, ",
            crate::similar_charts::position!(),
            " AS position
                         FROM charts AS chart
                         WHERE chart.hash = $1 AND chart.removed_at_ms IS NULL AND chart.rating > 0
                     ) AS target, LATERAL (
                         SELECT near.hash, near.keys, near.analysis_version,
                                sqrt((100 * ln(near.rating / target.rating::double precision)) ^ 2 + (
                                    SELECT sum((get_byte(near.patterns, i) - get_byte(target.patterns, i)) ^ 2)
                                    FROM generate_series(0, 9) AS i)) AS distance
                         FROM (
                             SELECT chart.* FROM charts AS chart
                             WHERE chart.removed_at_ms IS NULL AND chart.rating > 0 AND chart.hash <> $1
                             ORDER BY ",
            crate::similar_charts::position!(),
            " <-> target.position LIMIT 250
                         ) AS near
                     ) AS candidate
                     WHERE candidate.keys = target.keys AND candidate.analysis_version = target.analysis_version
                       AND candidate.distance <= 40
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
    /// Returns charts with the same number of keys, a similar rating and similar patterns: the nearest first, at most
    /// 12, each in another chartset. Charts of the chartsets that contain the chart itself are left out. Empty if
    /// the chart is removed, not stored, or has no rating.
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
