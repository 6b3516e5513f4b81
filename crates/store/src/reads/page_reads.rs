//! The reads of the pages of charts and chartsets. Each is one statement, like the lookups of the API.

use std::collections::HashMap;

use chart_index_domain::{
    ChartInChartset, ChartPage, Chartset, ChartsetCopy, ChartsetId, ListedChart, ListedCharts, NoteHash,
    ReadError,
};

use crate::Store;
use crate::connection::server::ReadLength;
use crate::reads::lookups::{LookupRow, Occurrence, sources_of_chart};
use crate::schema::column_values::{parse_chartset_id, parse_source};
use crate::schema::derived_columns::ListedColumns;
use crate::schema::member_rows::{ListedChartRow, listed_chart_columns, member_columns};

/// A chartset with the same charts as another one.
#[derive(Debug, sqlx::FromRow)]
struct CopyRow {
    copy_of: String,
    id: String,
    title: String,
    source_kind: Option<String>,
    source_ref: Option<String>,
}

/// A chart in a chartset, with the chartset.
#[derive(Debug, sqlx::FromRow)]
struct PageRow {
    #[sqlx(flatten)]
    lookup: LookupRow,
    #[sqlx(flatten)]
    chartset: PageChartset,
}

/// The [`ListedColumns`] of the chartset, prefixed, since charts have columns of the same names.
#[derive(Debug, sqlx::FromRow)]
#[expect(clippy::struct_field_names, reason = "the names of the columns")]
struct PageChartset {
    set_title: String,
    set_artist: String,
    set_creator: String,
    set_source_kind: Option<String>,
    set_source_ref: Option<String>,
    set_keys: Vec<i16>,
    set_bpm_min: f64,
    set_bpm_max: f64,
    set_length_min_ms: i64,
    set_length_max_ms: i64,
    set_density_max: f64,
    set_chart_count: i32,
}

impl Store {
    /// Returns the charts of the chartsets with these ids that are shown, in the order of `ids`.
    pub async fn charts_of_chartsets(&self, ids: &[ChartsetId]) -> Result<Vec<ListedCharts>, ReadError> {
        let texts: Vec<String> = ids.iter().map(ChartsetId::to_string).collect();
        let query = || {
            sqlx::query_as(concat!(
                "SELECT ",
                listed_chart_columns!(),
                " FROM chartsets AS chartset
                  JOIN chartset_charts AS member ON member.chartset_id = chartset.id
                  JOIN charts AS chart ON chart.hash = member.chart_hash
                  WHERE chartset.id = ANY($1) AND chartset.shown AND chart.removed_at_ms IS NULL"
            ))
            .bind(&texts)
        };
        let operation = "read charts of listed chartsets";
        let parse = |row: ListedChartRow| Ok((row.chartset_id()?, row.into_chart()?));
        let charts = self.read_rows(operation, ReadLength::Short, query, parse).await?;
        Ok(listed_charts(ids, charts))
    }

    /// Returns the other chartsets that have exactly the charts of one of these, if both are shown. Hostile
    /// files make thousands of chartsets share a chart, so only the first 8 that have the first chart of a
    /// chartset are compared.
    pub async fn copies_of_chartsets(&self, ids: &[ChartsetId]) -> Result<Vec<ChartsetCopy>, ReadError> {
        let ids: Vec<String> = ids.iter().map(ChartsetId::to_string).collect();
        let query = || {
            sqlx::query_as(
                "SELECT chartset.id AS copy_of, other.id, other.title, other.source_kind, other.source_ref
                 FROM chartsets AS chartset CROSS JOIN LATERAL shown_hashes(chartset.id) AS charts
                  CROSS JOIN LATERAL (
                      SELECT chartset_id FROM chartset_charts
                      WHERE chart_hash = charts.hashes[1] AND chartset_id <> chartset.id
                      ORDER BY source_rank, chartset_id LIMIT 8
                  ) AS candidate
                  JOIN chartsets AS other ON other.id = candidate.chartset_id AND other.shown
                      AND other.chart_count = chartset.chart_count
                  CROSS JOIN LATERAL shown_hashes(other.id) AS other_charts
                  WHERE chartset.id = ANY($1) AND chartset.shown AND other_charts.hashes = charts.hashes
                  ORDER BY other.id",
            )
            .bind(&ids)
        };
        let operation = "read copies of listed chartsets";
        self.read_rows(operation, ReadLength::Short, query, CopyRow::parse).await
    }

    /// Returns the charts with these hashes that are known, in their order, with the metadata that a lookup
    /// returns.
    pub async fn charts_with_curves(&self, hashes: &[NoteHash]) -> Result<Vec<ListedChart>, ReadError> {
        let occurrences = self.occurrences_of(hashes).await?;
        let listed = |hash: &NoteHash| {
            let best = occurrences.get(hash)?.iter().min_by(|a, b| a.rank().cmp(&b.rank()))?;
            Some(ListedChart { chart: best.member.to_chart(), curve: best.member.values.curve })
        };
        Ok(hashes.iter().filter_map(listed).collect())
    }

    /// Returns everything that the page of a chart shows, if the chart is known.
    pub async fn chart_page(&self, hash: NoteHash) -> Result<Option<ChartPage>, ReadError> {
        let query = || {
            sqlx::query_as(concat!(
                "SELECT member.exact_kind, member.exact_ref, member.checked_at_ms,
                   chartset.title AS set_title, chartset.artist AS set_artist, chartset.creator AS set_creator,
                   chartset.source_kind AS set_source_kind, chartset.source_ref AS set_source_ref,
                   chartset.keys AS set_keys, chartset.bpm_min AS set_bpm_min, chartset.bpm_max AS set_bpm_max,
                   chartset.length_min_ms AS set_length_min_ms, chartset.length_max_ms AS set_length_max_ms,
                   chartset.density_max AS set_density_max, chartset.chart_count AS set_chart_count, ",
                member_columns!(),
                " FROM charts AS chart CROSS JOIN LATERAL chart_occurrences(chart.hash) AS member
                  JOIN chartsets AS chartset ON chartset.id = member.chartset_id
                  WHERE chart.hash = $1 AND chart.removed_at_ms IS NULL AND chartset.shown"
            ))
            .bind(hash.as_bytes())
        };
        let read = self.read_rows("read chart page", ReadLength::Short, query, PageRow::parse);
        Ok(chart_page(read.await?))
    }
}

impl CopyRow {
    fn parse(self) -> Result<ChartsetCopy, sqlx::Error> {
        Ok(ChartsetCopy {
            copy_of: parse_chartset_id(&self.copy_of)?,
            id: parse_chartset_id(&self.id)?,
            title: self.title,
            source: parse_source(self.source_kind.as_deref(), self.source_ref.as_deref())?,
        })
    }
}

impl PageRow {
    fn parse(self) -> Result<(Occurrence, Chartset), sqlx::Error> {
        let occurrence = self.lookup.parse()?;
        let chartset = self.chartset.into_columns().into_chartset(occurrence.chartset_id)?;
        Ok((occurrence, chartset))
    }
}

impl PageChartset {
    fn into_columns(self) -> ListedColumns {
        ListedColumns {
            title: self.set_title,
            artist: self.set_artist,
            creator: self.set_creator,
            source_kind: self.set_source_kind,
            source_ref: self.set_source_ref,
            keys: self.set_keys,
            bpm_min: self.set_bpm_min,
            bpm_max: self.set_bpm_max,
            length_min_ms: self.set_length_min_ms,
            length_max_ms: self.set_length_max_ms,
            density_max: self.set_density_max,
            chart_count: self.set_chart_count,
        }
    }
}

fn listed_charts(ids: &[ChartsetId], charts: Vec<(ChartsetId, ListedChart)>) -> Vec<ListedCharts> {
    let mut sets: HashMap<ChartsetId, ListedCharts> = HashMap::with_capacity(ids.len());
    for (id, chart) in charts {
        let set = sets.entry(id).or_insert_with(|| ListedCharts { id, charts: Vec::new() });
        set.charts.push(chart);
    }
    let listed = ids.iter().filter_map(|id| {
        let mut set = sets.remove(id)?;
        set.charts.sort_by(|ListedChart { chart: a, .. }, ListedChart { chart: b, .. }| {
            a.numbers.detail_order(&a.hash, &b.numbers, &b.hash)
        });
        Some(set)
    });
    listed.collect()
}

fn chart_page(mut occurrences: Vec<(Occurrence, Chartset)>) -> Option<ChartPage> {
    occurrences.sort_by(|(a, _), (b, _)| a.rank().cmp(&b.rank()));
    let (best, _) = occurrences.first()?;
    let (chart, curve) = (best.member.to_chart(), best.member.values.curve);
    let ranked: Vec<&Occurrence> = occurrences.iter().map(|(occurrence, _)| occurrence).collect();
    let sources = sources_of_chart(&ranked);
    let in_chartset = |(occurrence, chartset): (Occurrence, Chartset)| {
        let metadata = occurrence.member.metadata;
        ChartInChartset { chartset, difficulty: metadata.difficulty, creator: metadata.creator }
    };
    let chartsets = occurrences.into_iter().map(in_chartset).collect();
    Some(ChartPage { chart, curve, sources, chartsets })
}
