//! The percentiles of the ratings and the peak densities of charts with the same number of keys, and of all.

use std::time::Duration;

use chart_index_domain::{Distribution, Distributions, Measure, ReadError};
use sqlx::Connection;

use crate::connection::server::ReadLength;
use crate::error::corrupt;
use crate::schema::column_values::parse_keys;
use crate::{Store, StoreError};

/// The key count of the rows of all charts.
const ALL_KEYS: i16 = 0;

impl Store {
    /// Returns the distributions of these percentiles, as they were last computed.
    pub async fn distributions(&self) -> Result<Distributions, ReadError> {
        let query = || sqlx::query_as("SELECT keys, measure, lower_bounds FROM chart_percentiles");
        self.read_rows("read distributions", ReadLength::Short, query, distribution).await
    }

    /// Computes the percentiles that the pages of charts show, unless they are younger than `max_age`. A chart
    /// counts once for each shown chartset that contains it. For a million charts this takes 0.4 s.
    pub async fn compute_percentiles(&self, now_ms: i64, max_age: Duration) -> Result<(), StoreError> {
        let oldest_ms =
            now_ms.saturating_sub_unsigned(u64::try_from(max_age.as_millis()).unwrap_or(u64::MAX));
        self.run_once("compute percentiles", |mut connection| async move {
            let mut transaction = connection.begin().await?;
            // A time in the future is that of a clock which has been set back.
            let are_recent: bool = sqlx::query_scalar(
                "SELECT EXISTS (
                     SELECT FROM chart_percentiles WHERE computed_at_ms > $1 AND computed_at_ms <= $2)",
            )
            .bind(oldest_ms)
            .bind(now_ms)
            .fetch_one(&mut *transaction)
            .await?;
            if are_recent {
                return Ok(());
            }
            sqlx::query("DELETE FROM chart_percentiles").execute(&mut *transaction).await?;
            // Values are counted first: `percentile_disc` sorts all charts, which takes four times as long.
            // Another process may have inserted its percentiles since the statement above.
            sqlx::query(
                "INSERT INTO chart_percentiles (keys, measure, lower_bounds, computed_at_ms)
                 WITH counted AS (
                     SELECT keys, 'rating' AS measure, rating::double precision AS value, count(*) AS charts
                     FROM shown_charts WHERE rating IS NOT NULL GROUP BY keys, rating
                     UNION ALL
                     SELECT keys, 'density_peak', density_peak, count(*)
                     FROM shown_charts GROUP BY keys, density_peak
                 )
                 SELECT keys, measure, array_agg(bound ORDER BY percent), $1
                 FROM (
                     SELECT keys, measure, percent, min(value) AS bound
                     FROM (
                         SELECT keys, measure, value, sum(charts) OVER of_keys AS total,
                                sum(charts) OVER (of_keys ORDER BY value) - charts AS lower
                         FROM (
                             SELECT keys, measure, value, charts FROM counted
                             UNION ALL
                             SELECT $2, measure, value, sum(charts)::bigint FROM counted GROUP BY measure, value
                         ) AS with_all
                         WINDOW of_keys AS (PARTITION BY keys, measure)
                     ) AS ranked JOIN generate_series(1, 99) AS percent ON percent * total <= 100 * lower
                     WHERE total >= 100 GROUP BY keys, measure, percent
                 ) AS bounds
                 GROUP BY keys, measure
                 ON CONFLICT DO NOTHING",
            )
            .bind(now_ms)
            .bind(ALL_KEYS)
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await
        })
        .await
    }
}

fn distribution((keys, measure, lower_bounds): (i16, String, Vec<f64>)) -> Result<Distribution, sqlx::Error> {
    let measure = match measure.as_str() {
        "rating" => Measure::Rating,
        "density_peak" => Measure::DensityPeak,
        other => return Err(corrupt(format!("no measure: {other}"))),
    };
    let keys = if keys == ALL_KEYS { None } else { Some(parse_keys(keys)?) };
    // The column has ratings in hundredths.
    let scale = if measure == Measure::Rating { 100.0 } else { 1.0 };
    let lower_bounds = lower_bounds.into_iter().map(|bound| bound / scale).collect();
    Ok(Distribution { measure, keys, lower_bounds })
}
