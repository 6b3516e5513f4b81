//! What the services ask. Every read is one statement, so that it sees one state of the catalogue.

use chart_index_domain::{
    Chart, ChartsetChart, ChartsetDetail, ChartsetId, ChartsetMember, Confidence, NoteHash, PublicSource,
    ReadError, Source, assemble_chartset,
};

use crate::Store;
use crate::rows::{MembershipRow, checked_at_ms, membership_columns, parse_hash, parse_source};

/// A chart that is known: the answer of a lookup.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownChart {
    /// The Chart object. Its words come from the file with the best source: exact before declared before none,
    /// then by kind and ref, then by the id of its chartset.
    pub chart: Chart,
    /// Where it can be downloaded, in the order of the contract.
    pub sources: Vec<Source>,
}

/// A chart in a folder, with what the folder says of its source.
#[derive(Debug, sqlx::FromRow)]
struct PlacedRow {
    exact_kind: Option<String>,
    exact_ref: Option<String>,
    checked_at_ms: i64,
    #[sqlx(flatten)]
    membership: MembershipRow,
}

struct Placed {
    chartset_id: ChartsetId,
    exact: Option<PublicSource>,
    checked_at_ms: i64,
    charted: ChartsetMember,
}

impl Store {
    /// The chart, if it is known.
    pub async fn chart(&self, hash: NoteHash) -> Result<Option<KnownChart>, ReadError> {
        self.lookup("look up chart", |mut lease| async move {
            let places: Vec<PlacedRow> = sqlx::query_as(concat!(
                "SELECT chartset.exact_kind, chartset.exact_ref, ",
                checked_at_ms!(),
                ", ",
                membership_columns!(),
                " FROM charts AS chart
                  JOIN chartset_charts AS member ON member.chart_hash = chart.hash
                  JOIN chartsets AS chartset ON chartset.id = member.chartset_id
                  WHERE chart.hash = $1 AND chart.removed_at_ms IS NULL AND chartset.removed_at_ms IS NULL"
            ))
            .bind(hash.as_bytes())
            .fetch_all(lease.connection())
            .await?;
            let places = places.into_iter().map(PlacedRow::parse).collect::<Result<Vec<_>, _>>()?;
            Ok(known_chart(&places))
        })
        .await
    }

    /// The ROX file of the chart, if the chart is known.
    pub async fn rox(&self, hash: NoteHash) -> Result<Option<Vec<u8>>, ReadError> {
        self.lookup("read ROX file", |mut lease| async move {
            let rox = sqlx::query_scalar(
                "SELECT rox.bytes FROM charts AS chart JOIN rox_files AS rox ON rox.hash = chart.hash
                 WHERE chart.hash = $1 AND chart.removed_at_ms IS NULL AND EXISTS (
                     SELECT 1 FROM chartset_charts AS member
                     JOIN chartsets AS chartset ON chartset.id = member.chartset_id
                     WHERE member.chart_hash = chart.hash AND chartset.removed_at_ms IS NULL)",
            )
            .bind(hash.as_bytes())
            .fetch_optional(lease.connection())
            .await?;
            Ok(rox)
        })
        .await
    }

    /// The chartset with its charts and sources, if it is shown.
    pub async fn chartset(&self, id: ChartsetId) -> Result<Option<ChartsetDetail>, ReadError> {
        self.lookup("read chartset", |mut lease| async move {
            let places: Vec<PlacedRow> = sqlx::query_as(concat!(
                "SELECT chartset.exact_kind, chartset.exact_ref, ",
                checked_at_ms!(),
                ", ",
                membership_columns!(),
                " FROM chartsets AS chartset
                  JOIN chartset_charts AS member ON member.chartset_id = chartset.id
                  JOIN charts AS chart ON chart.hash = member.chart_hash
                  WHERE chartset.id = $1 AND chartset.shown AND chart.removed_at_ms IS NULL"
            ))
            .bind(id.to_string())
            .fetch_all(lease.connection())
            .await?;
            let places = places.into_iter().map(PlacedRow::parse).collect::<Result<Vec<_>, _>>()?;
            Ok(detail(id, places))
        })
        .await
    }

    /// Every chart that stands in the chartset, whatever is removed.
    pub async fn chart_hashes(&self, id: ChartsetId) -> Result<Vec<NoteHash>, ReadError> {
        self.lookup("read charts of chartset", |mut lease| async move {
            let hashes: Vec<Vec<u8>> =
                sqlx::query_scalar("SELECT chart_hash FROM chartset_charts WHERE chartset_id = $1")
                    .bind(id.to_string())
                    .fetch_all(lease.connection())
                    .await?;
            hashes.iter().map(|hash| parse_hash(hash)).collect()
        })
        .await
    }

    /// The public source of the chartset, if it is shown and has one.
    pub async fn public_source(&self, id: ChartsetId) -> Result<Option<PublicSource>, ReadError> {
        self.lookup("read source of chartset", |mut lease| async move {
            let source: Option<(Option<String>, Option<String>)> =
                sqlx::query_as("SELECT source_kind, source_ref FROM chartsets WHERE id = $1 AND shown")
                    .bind(id.to_string())
                    .fetch_optional(lease.connection())
                    .await?;
            let (kind, reference) = source.unwrap_or_default();
            parse_source(kind.as_deref(), reference.as_deref())
        })
        .await
    }
}

impl PlacedRow {
    fn parse(self) -> Result<Placed, sqlx::Error> {
        Ok(Placed {
            chartset_id: self.membership.chartset_id()?,
            exact: parse_source(self.exact_kind.as_deref(), self.exact_ref.as_deref())?,
            checked_at_ms: self.checked_at_ms,
            charted: self.membership.into_charted()?,
        })
    }
}

impl Placed {
    /// The sources that this place names, the best first.
    fn sources(&self) -> impl Iterator<Item = Source> {
        let exact = self.exact.iter().map(|source| (source, Confidence::Exact));
        let declared = self.charted.declared_source.iter().map(|source| (source, Confidence::Declared));
        exact.chain(declared).map(|(source, confidence)| Source {
            kind: source.kind,
            reference: source.reference.clone(),
            confidence,
            checked_at_ms: self.checked_at_ms,
        })
    }

    /// Orders the files that may describe a chart in a lookup, so that every replica takes the same one.
    fn rank(&self) -> impl Ord + use<'_> {
        let confidence = match (&self.exact, &self.charted.declared_source) {
            (Some(source), _) => Some((Confidence::Exact, source)),
            (None, Some(source)) => Some((Confidence::Declared, source)),
            (None, None) => None,
        };
        (confidence.is_none(), confidence, self.chartset_id)
    }
}

fn known_chart(places: &[Placed]) -> Option<KnownChart> {
    let mut best = places.first()?;
    for place in places {
        if place.rank() < best.rank() {
            best = place;
        }
    }
    let sources = Source::merge(places.iter().flat_map(Placed::sources).collect());
    Some(KnownChart { chart: best.charted.to_chart(), sources })
}

fn detail(id: ChartsetId, places: Vec<Placed>) -> Option<ChartsetDetail> {
    let exact = places.first()?.exact.clone();
    let sources = Source::merge(places.iter().flat_map(Placed::sources).collect());
    let mut charts: Vec<ChartsetMember> = places.into_iter().map(|place| place.charted).collect();
    let (chartset, keywords) = assemble_chartset(id, exact.as_ref(), &mut charts)?;
    let charts = charts
        .iter()
        .map(|charted| ChartsetChart {
            chart: charted.to_chart(),
            alpha_beatmap_id: charted.alpha_beatmap_id,
        })
        .collect();
    Some(ChartsetDetail { chartset, tags: keywords.tags, sources, charts })
}
