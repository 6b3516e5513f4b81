//! Finds charts that play like another one: the nearest of its neighbours in a B-tree.
//!
//! PostgreSQL has no index by distance in ten dimensions that stays fast, and a list for each chart would be
//! out of date with every ingest. With 1,000,000 charts this takes an index of 10 MB and 3.5 ms; a `GiST` index
//! of rating and share of long notes took 85 MB and 24 ms, since many charts share a point. Where many charts
//! have the same rating, one that is a tenth of a level harder, with nearer patterns, may be missed.

use chart_index_domain::{ListedChart, NoteHash, ReadError, SimilarChart};

use crate::Store;
use crate::schema::rows::{ListedChartRow, listed_chart_columns};

/// What orders `charts AS chart` of the same rating in the index `charts_by_similarity`: the shares of long
/// notes and jacks, without those of runs.
macro_rules! pattern_order {
    () => {
        "(get_byte(chart.patterns, 9)
          + get_byte(chart.patterns, 0) + get_byte(chart.patterns, 1) + get_byte(chart.patterns, 2)
          - get_byte(chart.patterns, 5) - get_byte(chart.patterns, 6) - get_byte(chart.patterns, 7)
          - get_byte(chart.patterns, 8))"
    };
}

/// The next 250 charts in a direction of the index.
macro_rules! neighbours {
    ($comparison:literal, $direction:literal) => {
        concat!(
            "SELECT chart.hash, chart.rating, chart.patterns, chart.analysis_version
             FROM charts AS chart
             WHERE chart.removed_at_ms IS NULL AND chart.rating > 0 AND chart.keys = target.keys
               AND (chart.rating, ",
            crate::reads::similar_charts::pattern_order!(),
            ") ",
            $comparison,
            " (target.rating, target.pattern_order)
             ORDER BY chart.rating ",
            $direction,
            ", ",
            crate::reads::similar_charts::pattern_order!(),
            " ",
            $direction,
            " LIMIT 250"
        )
    };
}

/// Returns `chartset_id`, `hash` and `distance` of up to 12 charts, each in another chartset.
///
/// Of a million charts, the neighbours in the index have the same rating in hundredths; of fewer, a similar
/// one. They are ordered again by a distance that compares the shares of all classes of rows and of long notes,
/// bytes 0 to 9 of the patterns: a ratio of 1 % between ratings counts as much as 1 % of the rows.
macro_rules! similar_charts {
    () => {
        concat!(
            "SELECT * FROM (
                 SELECT DISTINCT ON (home.chartset_id) home.chartset_id, nearest.hash, nearest.distance
                 FROM (
                     SELECT candidate.hash, candidate.distance
                     FROM (
                         SELECT chart.keys, chart.rating, chart.patterns, chart.analysis_version, ",
            crate::reads::similar_charts::pattern_order!(),
            " AS pattern_order
                         FROM charts AS chart
                         WHERE chart.hash = $1 AND chart.removed_at_ms IS NULL AND chart.rating > 0
                     ) AS target, LATERAL (
                         SELECT near.hash, near.analysis_version,
                                sqrt((100 * ln(near.rating / target.rating::double precision)) ^ 2 + (
                                    SELECT sum((get_byte(near.patterns, i) - get_byte(target.patterns, i)) ^ 2)
                                    FROM generate_series(0, 9) AS i)) AS distance
                         FROM ((",
            crate::reads::similar_charts::neighbours!(">=", "ASC"),
            ") UNION ALL (",
            crate::reads::similar_charts::neighbours!("<", "DESC"),
            ")) AS near
                     ) AS candidate
                     WHERE candidate.hash <> $1 AND candidate.analysis_version = target.analysis_version
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
use {neighbours, pattern_order};

impl Store {
    /// Returns charts with the same number of keys, a similar rating and similar patterns: the nearest first,
    /// at most 12, each in another chartset. Charts of the chartsets that contain the chart itself are left
    /// out. Empty if the chart is removed, not stored, or has no rating.
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
            connection.release();
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
