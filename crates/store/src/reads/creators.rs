//! Reads the charts of a creator, for their page.

use chart_index_domain::{CreatorChart, ReadError};

use crate::Store;
use crate::schema::member_rows::{ListedChartRow, listed_chart_columns};
use crate::schema::sql_text::replace_nul;

#[derive(sqlx::FromRow)]
struct CreatorRow {
    first_seen_ms: i64,
    #[sqlx(flatten)]
    listed: ListedChartRow,
}

/// Reads up to a number of the charts in chartsets that name a creator, in no order. Each is found by its keys
/// whatever PostgreSQL expects of the name.
const CHARTS_OF_CREATOR: &str = concat!(
    "SELECT occurrence.* FROM (
         SELECT * FROM chartset_charts
         WHERE creator = $1 AND octet_length(creator) BETWEEN 1 AND 800 LIMIT $2
     ) AS member CROSS JOIN LATERAL (
         SELECT chart.first_seen_ms, ",
    listed_chart_columns!(),
    "    FROM charts AS chart JOIN chartsets AS chartset ON chartset.id = member.chartset_id
         WHERE chart.hash = member.chart_hash AND chart.removed_at_ms IS NULL AND chartset.shown
     OFFSET 0) AS occurrence"
);

impl Store {
    /// Returns the shown charts of up to this number of charts in chartsets that name this creator, exactly as
    /// their files spell it: those that came into the index last are first. A chart may be in several
    /// chartsets.
    pub async fn charts_of_creator(&self, name: &str, limit: u32) -> Result<Vec<CreatorChart>, ReadError> {
        let name = replace_nul(name);
        let name = name.as_ref();
        self.short_read("read charts of creator", |mut connection| async move {
            let rows: Vec<CreatorRow> = sqlx::query_as(CHARTS_OF_CREATOR)
                .bind(name)
                .bind(i64::from(limit))
                .fetch_all(&mut *connection)
                .await?;
            connection.release();
            let mut charts = rows.into_iter().map(CreatorRow::parse).collect::<Result<Vec<_>, _>>()?;
            charts.sort_by_cached_key(|chart| {
                (std::cmp::Reverse(chart.first_seen_ms), chart.listed.chart.hash, chart.chartset_id)
            });
            Ok(charts)
        })
        .await
    }
}

impl CreatorRow {
    fn parse(self) -> Result<CreatorChart, sqlx::Error> {
        let chartset_id = self.listed.chartset_id()?;
        Ok(CreatorChart { listed: self.listed.into_chart()?, chartset_id, first_seen_ms: self.first_seen_ms })
    }
}

#[cfg(test)]
mod tests {
    use chart_index_tests::TestDatabase;

    use super::*;
    use crate::StoreConfig;

    /// 100,000 charts in as many chartsets, of creators with 1, 62 and 20,000 charts.
    const FILL: [&str; 4] = [
        "INSERT INTO charts (hash, keys, bpm_min, bpm_max, bpm_main, length_ms, notes, lns, density_avg,
                             density_peak, rox_bytes, first_seen_ms)
         SELECT sha256(n::text::bytea), 4, 120, 120, 120, 1000, 1, 0, 1, 1, 1, n
         FROM generate_series(1, 100000) AS n",
        "INSERT INTO chartsets
         (id, path, content_fingerprint, checked_at_ms, updated_at_ms, title, artist, creator, keys, bpm_min,
          bpm_max, length_min_ms, length_max_ms, density_max, chart_count, tags, romanised_names, title_sort,
          artist_sort, creator_search, search_words)
         SELECT lpad(to_hex(n), 16, '0'), 'alpha/' || n, decode(repeat('00', 32), 'hex'), 1, 1, 'Title',
                'Artist', 'Creator', '{4}', 120, 120, 1000, 1000, 1, 1, '{}', '{}', 'title', 'artist', 'creator', ''
         FROM generate_series(1, 100000) AS n",
        "INSERT INTO chartset_charts (chartset_id, chart_hash, title, artist, creator, difficulty, tags)
         SELECT lpad(to_hex(n), 16, '0'), sha256(n::text::bytea), 'Title', 'Artist',
                CASE WHEN n = 1 THEN 'one' WHEN n % 5 = 0 THEN 'many' ELSE 'some ' || n % 1600 END, 'Hard', '{}'
         FROM generate_series(1, 100000) AS n",
        "ANALYZE charts, chartsets, chartset_charts",
    ];

    #[tokio::test]
    async fn charts_of_a_creator_are_read_by_index() {
        let database = TestDatabase::migrated().await;
        let store = Store::new(&StoreConfig::new(database.url().parse().unwrap()));
        // The rows that lists read are not needed here.
        let _ = database.psql("ALTER TABLE chartsets DISABLE TRIGGER USER; ALTER TABLE chartset_charts DISABLE TRIGGER USER; ALTER TABLE charts DISABLE TRIGGER USER");
        for statement in FILL {
            let _ = database.psql(statement);
        }
        for (name, charts) in [("one", 1), ("some 1", 62), ("many", 1_000), ("none", 0), ("One", 0)] {
            let found = store.charts_of_creator(name, 1_000).await.unwrap();
            assert_eq!(found.len(), charts, "{name}");
            assert!(found.is_sorted_by_key(|chart| std::cmp::Reverse(chart.first_seen_ms)), "{name}");
            for mode in ["force_custom_plan", "force_generic_plan"] {
                let plan = database.psql(&format!(
                    "SET plan_cache_mode = {mode}; PREPARE statement AS {CHARTS_OF_CREATOR};
                     EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) EXECUTE statement ('{name}', 1000)"
                ));
                assert!(!plan.contains("Seq Scan on charts"), "{name}, {mode}: {plan}");
                // PostgreSQL reads the table up to the limit if it has more than one such row on a page.
                let is_common = name == "many" && mode == "force_custom_plan";
                assert!(plan.contains("chartset_charts_by_creator") || is_common, "{name}, {mode}: {plan}");
                for index in ["charts_pkey", "chartsets_pkey"] {
                    assert!(charts == 0 || plan.contains(index), "{name}, {mode}: {plan}");
                }
            }
        }
    }
}
