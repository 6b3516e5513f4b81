//! Rows as PostgreSQL gives them, and the values of the domain that they stand for.

use chart_index_domain::{
    ChartMetadata, ChartNumbers, ChartsetId, ChartsetMember, NoteHash, PublicSource, SourceRef,
};

use crate::columns::parse_keys;
use crate::error::corrupt;

/// What belongs to a note hash.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct ChartRow {
    pub(crate) hash: Vec<u8>,
    keys: i16,
    bpm_min: f64,
    bpm_max: f64,
    bpm_main: f64,
    length_ms: i64,
    notes: i64,
    lns: i64,
    density_avg: f64,
    density_peak: f64,
    rox_bytes: i64,
    pub(crate) removed: bool,
}

/// The columns of [`ChartRow`], of `charts AS chart`.
macro_rules! chart_columns {
    () => {
        "chart.hash, chart.keys, chart.bpm_min, chart.bpm_max, chart.bpm_main, chart.length_ms, chart.notes, \
         chart.lns, chart.density_avg, chart.density_peak, chart.rox_bytes, \
         chart.removed_at_ms IS NOT NULL AS removed"
    };
}
pub(crate) use chart_columns;

/// What belongs to a file in a folder.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct MembershipRow {
    chartset_id: String,
    title: String,
    artist: String,
    title_romanised: Option<String>,
    artist_romanised: Option<String>,
    creator: String,
    difficulty: String,
    tags: Vec<String>,
    declared_kind: Option<String>,
    declared_ref: Option<String>,
    alpha_beatmap_id: Option<i64>,
    #[sqlx(flatten)]
    pub(crate) chart: ChartRow,
}

/// The columns of [`MembershipRow`], of `chartset_charts AS member` and `charts AS chart`.
macro_rules! membership_columns {
    () => {
        concat!(
            "member.chartset_id, member.title, member.artist, member.title_romanised, \
             member.artist_romanised, member.creator, member.difficulty, member.tags, member.declared_kind, \
             member.declared_ref, member.alpha_beatmap_id, ",
            crate::rows::chart_columns!()
        )
    };
}
pub(crate) use membership_columns;

/// When `chartsets AS chartset` was last checked. An ingest that finds it unchanged writes to `chartset_checks`.
macro_rules! checked_at_ms {
    () => {
        "greatest(chartset.checked_at_ms, (SELECT checks.checked_at_ms FROM chartset_checks AS checks \
         WHERE checks.chartset_id = chartset.id)) AS checked_at_ms"
    };
}
pub(crate) use checked_at_ms;

impl ChartRow {
    pub(crate) fn hash(&self) -> Result<NoteHash, sqlx::Error> {
        parse_hash(&self.hash)
    }

    pub(crate) fn numbers(&self) -> Result<ChartNumbers, sqlx::Error> {
        Ok(ChartNumbers {
            keys: parse_keys(self.keys)?,
            bpm_min: self.bpm_min,
            bpm_max: self.bpm_max,
            bpm_main: self.bpm_main,
            length_ms: u32::try_from(self.length_ms).map_err(corrupt)?,
            notes: u32::try_from(self.notes).map_err(corrupt)?,
            lns: u32::try_from(self.lns).map_err(corrupt)?,
            density_avg: self.density_avg,
            density_peak: self.density_peak,
        })
    }

    pub(crate) fn rox_bytes(&self) -> Result<u64, sqlx::Error> {
        u64::try_from(self.rox_bytes).map_err(corrupt)
    }
}

impl MembershipRow {
    pub(crate) fn chartset_id(&self) -> Result<ChartsetId, sqlx::Error> {
        self.chartset_id.parse().map_err(corrupt)
    }

    pub(crate) fn into_charted(self) -> Result<ChartsetMember, sqlx::Error> {
        Ok(ChartsetMember {
            hash: self.chart.hash()?,
            numbers: self.chart.numbers()?,
            rox_bytes: self.chart.rox_bytes()?,
            declared_source: parse_source(self.declared_kind.as_deref(), self.declared_ref.as_deref())?,
            alpha_beatmap_id: self.alpha_beatmap_id.map(u64::try_from).transpose().map_err(corrupt)?,
            metadata: ChartMetadata {
                title: self.title,
                artist: self.artist,
                title_romanised: self.title_romanised,
                artist_romanised: self.artist_romanised,
                creator: self.creator,
                difficulty: self.difficulty,
                tags: self.tags,
            },
        })
    }
}

pub(crate) fn parse_hash(bytes: &[u8]) -> Result<NoteHash, sqlx::Error> {
    bytes.try_into().map(NoteHash::from_bytes).map_err(corrupt)
}

/// The source in a pair of columns that are null together.
pub(crate) fn parse_source(
    kind: Option<&str>,
    reference: Option<&str>,
) -> Result<Option<PublicSource>, sqlx::Error> {
    let (Some(kind), Some(reference)) = (kind, reference) else { return Ok(None) };
    let number: u64 = reference.parse().map_err(corrupt)?;
    let reference = SourceRef::from_number(number).ok_or_else(|| corrupt("a source ref out of range"))?;
    Ok(Some(PublicSource { kind: kind.parse().map_err(corrupt)?, reference }))
}

/// The pair of columns that holds the source.
pub(crate) fn source_columns(source: Option<&PublicSource>) -> (Option<String>, Option<String>) {
    source.map(|source| (source.kind.to_string(), source.reference.to_string())).unzip()
}
