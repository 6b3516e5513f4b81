//! Lookups of charts with the chartsets that contain them (docs/api.md, "Extension fields").

use std::collections::HashMap;

use chart_index_domain::{ChartOccurrence, NoteHash, PublicSource, ReadError};

use crate::Store;
use crate::connection::server::ReadLength;
use crate::reads::lookups::{KnownChart, LookupRow, Occurrence, known_chart};
use crate::schema::column_values::parse_source;
use crate::schema::member_rows::member_columns;

/// The number of chartsets of a chart that are listed.
const MAX_CHARTSETS: usize = 8;

/// A chart in a chartset, with what lookups list of the chartset.
#[derive(sqlx::FromRow)]
struct OccurrenceRow {
    set_title: String,
    source_kind: Option<String>,
    source_ref: Option<String>,
    #[sqlx(flatten)]
    lookup: LookupRow,
}

/// Selects the [`OccurrenceRow`]s of charts, as [`LOOK_UP_CHARTS`](crate::reads::lookups::LOOK_UP_CHARTS) does.
pub(crate) const LOOK_UP_CHARTSETS: &str = concat!(
    "SELECT occurrence.* FROM (SELECT DISTINCT unnest($1::bytea[]) AS hash) AS asked CROSS JOIN LATERAL (
         SELECT member.exact_kind, member.exact_ref, member.checked_at_ms, chartset.title AS set_title,
                chartset.source_kind, chartset.source_ref, ",
    member_columns!(),
    "    FROM charts AS chart CROSS JOIN LATERAL chart_occurrences(chart.hash) AS member
         JOIN chartsets AS chartset ON chartset.id = member.chartset_id
         WHERE chart.hash = asked.hash AND chart.removed_at_ms IS NULL AND chartset.shown
     OFFSET 0) AS occurrence"
);

impl Store {
    /// Returns the charts with these hashes that are known, with all their extension fields and chartsets.
    pub async fn charts_with_chartsets(
        &self,
        hashes: &[NoteHash],
    ) -> Result<HashMap<NoteHash, KnownChart>, ReadError> {
        let hashes: Vec<_> = hashes.iter().map(NoteHash::as_bytes).collect();
        let query = || sqlx::query_as(LOOK_UP_CHARTSETS).bind(&hashes);
        let operation = "look up charts with chartsets";
        let rows: Vec<_> = self.read_rows(operation, ReadLength::Short, query, OccurrenceRow::parse).await?;
        let mut charts: HashMap<NoteHash, Vec<_>> = HashMap::new();
        for row in rows {
            charts.entry(row.0.member.hash).or_default().push(row);
        }
        Ok(charts.into_iter().filter_map(|(hash, rows)| Some((hash, with_chartsets(rows)?))).collect())
    }
}

impl OccurrenceRow {
    /// The occurrence, and its chartset.
    fn parse(self) -> Result<(Occurrence, ChartOccurrence), sqlx::Error> {
        let source = parse_source(self.source_kind.as_deref(), self.source_ref.as_deref())?;
        let occurrence = self.lookup.parse()?;
        let difficulty = occurrence.member.metadata.difficulty.clone();
        let chartset =
            ChartOccurrence { id: occurrence.chartset_id, title: self.set_title, difficulty, source };
        Ok((occurrence, chartset))
    }
}

fn with_chartsets(mut rows: Vec<(Occurrence, ChartOccurrence)>) -> Option<KnownChart> {
    rows.sort_by(|(a, _), (b, _)| a.rank().cmp(&b.rank()));
    let (occurrences, mut chartsets): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    chartsets.truncate(MAX_CHARTSETS);
    Some(KnownChart { chartsets, ..known_chart(&occurrences)? })
}

impl KnownChart {
    /// The best source of the chart: its first one, or else that of the first of its chartsets that has one.
    #[must_use]
    pub fn best_source(&self) -> Option<PublicSource> {
        let own = self
            .sources
            .first()
            .map(|source| PublicSource { kind: source.kind, reference: source.reference.clone() });
        own.or_else(|| self.chartsets.iter().find_map(|chartset| chartset.source.clone()))
    }
}
