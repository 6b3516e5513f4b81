//! The lookups of the API. Each is one statement, so that it reads one snapshot of the catalogue.

use std::collections::HashMap;

use chart_index_domain::{
    Chart, ChartOccurrence, ChartsetChart, ChartsetDetail, ChartsetId, ChartsetMember, Confidence, NoteHash,
    PublicSource, ReadError, Source, assemble_chartset,
};
use chart_index_objects::{ObjectDigest, ObjectError};

use crate::Store;
use crate::connection::server::ReadLength;
use crate::error::{object_error, read_error};
use crate::schema::column_values::parse_source;
use crate::schema::member_rows::{MemberRow, member_columns};
use crate::schema::stored_files::StoredFile;

/// A chart that is known, as a lookup returns it.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownChart {
    /// The chart. Its metadata comes from the file with the best source: exact before declared before none,
    /// then by kind and ref, then by the id of its chartset. Title and artist belong to a file and not to the
    /// notes, so a corrected title is returned here while the ROX file has that of the first file.
    pub chart: Chart,
    /// Where the chart can be downloaded, in the order of docs/api.md, "Chart lookup": the sources of up to 32
    /// chartsets, or of 4 if the chart has fewer than 8 notes (decision 0076).
    pub sources: Vec<Source>,
    /// The chartsets that contain it, in the order of their sources, up to 8; empty if they were not read.
    pub chartsets: Vec<ChartOccurrence>,
}

/// The ROX file of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoxFile {
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether an administrator has replaced the first file of the note hash with it.
    pub is_replaced: bool,
}

/// Where the ROX file of a chart is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoxSource {
    /// In PostgreSQL.
    File(RoxFile),
    /// In the object store, with this name.
    Object(ObjectDigest),
}

/// A chart in a chartset, with the exact source and the last check of the chartset.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct LookupRow {
    exact_kind: Option<String>,
    exact_ref: Option<String>,
    checked_at_ms: i64,
    #[sqlx(flatten)]
    member: MemberRow,
}

/// A chart of a chartset, with the last change of the chartset.
#[derive(sqlx::FromRow)]
pub(crate) struct DetailRow {
    updated_at_ms: i64,
    #[sqlx(flatten)]
    lookup: LookupRow,
}

/// A parsed [`LookupRow`].
pub(crate) struct Occurrence {
    pub(crate) chartset_id: ChartsetId,
    pub(crate) exact_source: Option<PublicSource>,
    pub(crate) checked_at_ms: i64,
    pub(crate) member: ChartsetMember,
}

/// Selects the [`LookupRow`]s of the charts that meet a condition.
macro_rules! select_occurrences {
    ($condition:literal) => {
        concat!(
            "SELECT member.exact_kind, member.exact_ref, member.checked_at_ms, ",
            crate::schema::member_rows::member_columns!(),
            " FROM charts AS chart CROSS JOIN LATERAL chart_occurrences(chart.hash) AS member WHERE ",
            $condition,
            " AND chart.removed_at_ms IS NULL"
        )
    };
}
pub(crate) use select_occurrences;

/// Selects the occurrences of a chart.
pub(crate) const LOOK_UP_CHART: &str = select_occurrences!("chart.hash = $1");

/// Selects the occurrences of many charts. `LATERAL` with `OFFSET 0` makes the planner look up each hash in the
/// indexes. Otherwise it reads whole tables for 1,000 hashes of 60,000 charts, which takes five times as long.
pub(crate) const LOOK_UP_CHARTS: &str = concat!(
    "SELECT occurrence.* FROM (SELECT DISTINCT unnest($1::bytea[]) AS hash) AS asked CROSS JOIN LATERAL (",
    select_occurrences!("chart.hash = asked.hash"),
    " OFFSET 0) AS occurrence"
);

const READ_ROX_FILE: &str = "read ROX file";

impl Store {
    /// Returns the chart with all its extension fields, if it is known.
    pub async fn chart(&self, hash: NoteHash) -> Result<Option<KnownChart>, ReadError> {
        let query = || sqlx::query_as(LOOK_UP_CHART).bind(hash.as_bytes());
        let read = self.read_rows("look up chart", ReadLength::Short, query, LookupRow::parse);
        let occurrences: Vec<Occurrence> = read.await?;
        Ok(known_chart(&occurrences))
    }

    /// Returns the charts with these hashes that are known, with all their extension fields.
    pub async fn charts(&self, hashes: &[NoteHash]) -> Result<HashMap<NoteHash, KnownChart>, ReadError> {
        let occurrences = self.occurrences_of(hashes).await?;
        let known = |(hash, occurrences): (_, Vec<_>)| Some((hash, known_chart(&occurrences)?));
        Ok(occurrences.into_iter().filter_map(known).collect())
    }

    /// Returns where the charts with these hashes are.
    pub(crate) async fn occurrences_of(
        &self,
        hashes: &[NoteHash],
    ) -> Result<HashMap<NoteHash, Vec<Occurrence>>, ReadError> {
        let hashes: Vec<_> = hashes.iter().map(NoteHash::as_bytes).collect();
        let query = || sqlx::query_as(LOOK_UP_CHARTS).bind(&hashes);
        let read = self.read_rows("look up charts", ReadLength::Short, query, LookupRow::parse);
        let found: Vec<Occurrence> = read.await?;
        let mut occurrences: HashMap<_, Vec<_>> = HashMap::with_capacity(found.len());
        for occurrence in found {
            occurrences.entry(occurrence.member.hash).or_default().push(occurrence);
        }
        Ok(occurrences)
    }

    /// Returns the hash of the only known chart whose hash is in a range, both ends included; `None` if there
    /// is none, or another one.
    pub async fn only_chart_between(
        &self,
        first: NoteHash,
        last: NoteHash,
    ) -> Result<Option<NoteHash>, ReadError> {
        let query = || {
            sqlx::query_as("SELECT hash FROM known_charts WHERE hash BETWEEN $1 AND $2 LIMIT 2")
                .bind(first.as_bytes())
                .bind(last.as_bytes())
        };
        let parse = |(hash,)| Ok(NoteHash::from_bytes(hash));
        let found: Vec<NoteHash> =
            self.read_rows("find chart by prefix", ReadLength::Short, query, parse).await?;
        let [hash] = found[..] else { return Ok(None) };
        Ok(Some(hash))
    }

    /// Returns the ROX file of the chart, if the chart is known.
    pub async fn rox(&self, hash: NoteHash) -> Result<Option<RoxFile>, ReadError> {
        let failed = |error| read_error(READ_ROX_FILE, object_error(error));
        let Some((file, is_replaced)) = self.find_file(hash).await? else { return Ok(None) };
        match self.content(file).await {
            Ok(bytes) => return Ok(Some(RoxFile { bytes, is_replaced })),
            Err(ObjectError::Missing { .. }) => {}
            Err(error) => return Err(failed(error)),
        }
        // The object was deleted since, as that of a removed chart is: a standby may not know yet.
        let primary = self.primary_of_standby();
        let found = primary.as_ref().unwrap_or(self).find_file(hash).await?;
        let Some((file, is_replaced)) = found else { return Ok(None) };
        let bytes = self.content(file).await.map_err(failed)?;
        Ok(Some(RoxFile { bytes, is_replaced }))
    }

    /// Returns the name of the object that is the ROX file of the chart, if the chart is known; the file
    /// itself, if it is in PostgreSQL.
    pub async fn rox_source(&self, hash: NoteHash) -> Result<Option<RoxSource>, ReadError> {
        let found = self.find_file(hash).await?;
        Ok(found.map(|(file, is_replaced)| match file {
            StoredFile::Bytes(bytes) => RoxSource::File(RoxFile { bytes, is_replaced }),
            StoredFile::Object(digest) => RoxSource::Object(digest),
        }))
    }

    /// Returns where the ROX file of the chart is, if the chart is known, and whether it was replaced.
    async fn find_file(&self, hash: NoteHash) -> Result<Option<(StoredFile, bool)>, ReadError> {
        let query = || {
            sqlx::query_as(
                "SELECT rox.bytes, rox.object, rox.replacement_digest IS NOT NULL
                 FROM known_charts AS chart JOIN rox_files AS rox ON rox.hash = chart.hash WHERE chart.hash = $1",
            )
            .bind(hash.as_bytes())
        };
        let parse = |(bytes, object, is_replaced)| Ok((StoredFile::parse(bytes, object)?, is_replaced));
        self.read_row(READ_ROX_FILE, ReadLength::Short, query, parse).await
    }

    /// Returns the chartset with its charts and sources, if it is shown.
    pub async fn chartset(&self, id: ChartsetId) -> Result<Option<ChartsetDetail>, ReadError> {
        let query = || {
            sqlx::query_as(concat!(
                "SELECT chartset.exact_kind, chartset.exact_ref, chartset.checked_at_ms, chartset.updated_at_ms, ",
                member_columns!(),
                " FROM checked_chartsets AS chartset
                  JOIN chartset_charts AS member ON member.chartset_id = chartset.id
                  JOIN charts AS chart ON chart.hash = member.chart_hash
                  WHERE chartset.id = $1 AND chartset.shown AND chart.removed_at_ms IS NULL"
            ))
            .bind(id.to_string())
        };
        let rows: Vec<(i64, Occurrence)> =
            self.read_rows("read chartset", ReadLength::Short, query, DetailRow::parse).await?;
        let (times, occurrences): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        Ok(chartset_detail(id, times.first().copied().unwrap_or_default(), occurrences))
    }

    /// Returns the public source of the chartset, if it is shown and has one.
    pub async fn public_source(&self, id: ChartsetId) -> Result<Option<PublicSource>, ReadError> {
        let query = || {
            sqlx::query_as("SELECT source_kind, source_ref FROM chartsets WHERE id = $1 AND shown")
                .bind(id.to_string())
        };
        let parse = |(kind, reference): (Option<String>, Option<String>)| {
            parse_source(kind.as_deref(), reference.as_deref())
        };
        let source = self.read_row("read source of chartset", ReadLength::Short, query, parse).await?;
        Ok(source.flatten())
    }
}

impl DetailRow {
    /// The last change of the chartset, and the chart in it.
    pub(crate) fn parse(self) -> Result<(i64, Occurrence), sqlx::Error> {
        Ok((self.updated_at_ms, self.lookup.parse()?))
    }
}

impl LookupRow {
    pub(crate) fn parse(self) -> Result<Occurrence, sqlx::Error> {
        Ok(Occurrence {
            chartset_id: self.member.chartset_id()?,
            exact_source: parse_source(self.exact_kind.as_deref(), self.exact_ref.as_deref())?,
            checked_at_ms: self.checked_at_ms,
            member: self.member.into_member()?,
        })
    }
}

impl Occurrence {
    /// The sources of this occurrence, the best first.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Source> {
        let exact = self.exact_source.iter().map(|source| (source, Confidence::Exact));
        let declared = self.member.declared_source.iter().map(|source| (source, Confidence::Declared));
        exact.chain(declared).map(|(source, confidence)| Source {
            kind: source.kind,
            reference: source.reference.clone(),
            confidence,
            checked_at_ms: self.checked_at_ms,
            url: None,
        })
    }

    /// Orders the occurrences of a chart, so that every replica takes the metadata from the same file.
    pub(crate) fn rank(&self) -> impl Ord + use<'_> {
        let confidence = match (&self.exact_source, &self.member.declared_source) {
            (Some(source), _) => Some((Confidence::Exact, source)),
            (None, Some(source)) => Some((Confidence::Declared, source)),
            (None, None) => None,
        };
        (confidence.is_none(), confidence, self.chartset_id)
    }
}

/// Charts with fewer notes are the same in unrelated songs: there are 22 with one tap. The smallest of 111 real
/// charts has as many.
const MIN_DISTINCTIVE_NOTES: u32 = 8;
/// The number of chartsets whose sources a chart with fewer notes has.
const INDISTINCTIVE_OCCURRENCES: usize = 4;

/// The sources of a chart, whose occurrences are in the order of their ranks.
pub(crate) fn sources_of_chart(ranked: &[&Occurrence]) -> Vec<Source> {
    let has_few_notes =
        ranked.first().is_some_and(|best| best.member.values.numbers.notes < MIN_DISTINCTIVE_NOTES);
    let limit = if has_few_notes { INDISTINCTIVE_OCCURRENCES } else { ranked.len() };
    Source::merge(ranked.iter().take(limit).flat_map(|occurrence| occurrence.sources()).collect())
}

pub(crate) fn known_chart(occurrences: &[Occurrence]) -> Option<KnownChart> {
    let mut ranked: Vec<&Occurrence> = occurrences.iter().collect();
    ranked.sort_by(|a, b| a.rank().cmp(&b.rank()));
    let best = ranked.first()?;
    let (chart, sources) = (best.member.to_chart(), sources_of_chart(&ranked));
    Some(KnownChart { chart, sources, chartsets: Vec::new() })
}

fn chartset_detail(
    id: ChartsetId,
    updated_at_ms: i64,
    occurrences: Vec<Occurrence>,
) -> Option<ChartsetDetail> {
    let exact_source = occurrences.first()?.exact_source.clone();
    let sources = Source::merge(occurrences.iter().flat_map(Occurrence::sources).collect());
    let mut members: Vec<ChartsetMember> =
        occurrences.into_iter().map(|occurrence| occurrence.member).collect();
    let (chartset, keywords) = assemble_chartset(id, exact_source.as_ref(), &mut members)?;
    let charts = members
        .iter()
        .map(|member| ChartsetChart {
            chart: member.to_chart(),
            curve: member.values.curve,
            alpha_beatmap_id: member.alpha_beatmap_id,
        })
        .collect();
    Some(ChartsetDetail { chartset, updated_at_ms, tags: keywords.tags, sources, charts })
}
