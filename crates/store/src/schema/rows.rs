//! Rows of `charts` and `chartset_charts`, and their column lists.

use chart_index_domain::{
    ANALYSIS_VERSION, Chart, ChartAnalysis, ChartMetadata, ChartNumbers, ChartsetId, ChartsetMember,
    DensityCurve, FileAliases, FileMd5, ListedChart, NOTE_HASH_VERSION, NoteHash, Patterns, Variant,
};

use crate::error::corrupt;
use crate::schema::column_values::{parse_chartset_id, parse_hash, parse_keys, parse_rating, parse_source};

/// A row of `charts`: the columns of [`chart_columns`].
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct ChartRow {
    hash: Vec<u8>,
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
    /// `None` also in statements that do not select it in addition to [`chart_columns`].
    #[sqlx(default)]
    density_curve: Option<Vec<u8>>,
    /// `None` also in statements that do not select it.
    #[sqlx(default)]
    variant: Option<Vec<u8>>,
    /// `None` also in statements that do not select [`analysis_columns`].
    #[sqlx(default)]
    rating: Option<i16>,
    /// As for the rating.
    #[sqlx(default)]
    patterns: Option<Vec<u8>>,
    /// 0 in statements that do not select [`analysis_columns`].
    #[sqlx(default)]
    analysis_version: i16,
    pub(crate) removed: bool,
}

/// The columns of [`ChartRow`], from `charts AS chart`.
macro_rules! chart_columns {
    () => {
        "chart.hash, chart.keys, chart.bpm_min, chart.bpm_max, chart.bpm_main, chart.length_ms, chart.notes, \
         chart.lns, chart.density_avg, chart.density_peak, chart.rox_bytes, \
         chart.removed_at_ms IS NOT NULL AS removed"
    };
}
pub(crate) use chart_columns;

/// The columns of the rating and the patterns of `charts AS chart`, which most statements do not need.
macro_rules! analysis_columns {
    () => {
        "chart.rating, chart.patterns, chart.analysis_version"
    };
}
pub(crate) use analysis_columns;

/// A chart in a chartset, with the metadata from its file there: the columns of [`member_columns`].
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct MemberRow {
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
    /// Empty also in statements that do not select [`aliases`].
    #[sqlx(default)]
    aliases: Vec<Vec<u8>>,
    #[sqlx(flatten)]
    chart: ChartRow,
}

/// The columns of [`MemberRow`], from `chartset_charts AS member` and `charts AS chart`.
macro_rules! member_columns {
    () => {
        concat!(
            "member.chartset_id, member.title, member.artist, member.title_romanised, \
             member.artist_romanised, member.creator, member.difficulty, member.tags, member.declared_kind, \
             member.declared_ref, member.alpha_beatmap_id, ",
            crate::schema::rows::chart_columns!()
        )
    };
}
pub(crate) use member_columns;

/// The aliases of `chartset_charts AS member` in this chartset.
macro_rules! aliases {
    () => {
        "ARRAY(SELECT other.alias FROM chart_aliases AS other
               WHERE other.chart_hash = member.chart_hash AND other.chartset_id = member.chartset_id
               ORDER BY octet_length(other.alias) DESC, other.alias LIMIT 128) AS aliases"
    };
}
pub(crate) use aliases;

/// A chart in a chartset, with those of its metadata that the Chart object has: the columns of
/// [`listed_chart_columns`].
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct ListedChartRow {
    chartset_id: String,
    title: String,
    artist: String,
    creator: String,
    difficulty: String,
    #[sqlx(flatten)]
    chart: ChartRow,
}

/// The columns of [`ListedChartRow`], from `chartset_charts AS member` and `charts AS chart`.
macro_rules! listed_chart_columns {
    () => {
        concat!(
            "member.chartset_id, member.title, member.artist, member.creator, member.difficulty, \
             chart.density_curve, ",
            crate::schema::rows::analysis_columns!(),
            ", ",
            crate::schema::rows::chart_columns!()
        )
    };
}
pub(crate) use listed_chart_columns;

/// MD5 digests and variants, which differ in their lengths.
fn parse_aliases(aliases: &[Vec<u8>]) -> FileAliases {
    let md5s = aliases.iter().filter_map(|alias| alias.as_slice().try_into().ok());
    let variants = aliases.iter().filter_map(|alias| alias.as_slice().try_into().ok());
    FileAliases::new(
        md5s.map(FileMd5::from_bytes).take(FileAliases::MAX_VALUES).collect(),
        variants.map(Variant::from_bytes).take(FileAliases::MAX_VALUES).collect(),
    )
}

/// When `chartsets AS chartset` was last checked. An ingest that finds it unchanged writes only to
/// `chartset_checks`.
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

    pub(crate) fn variant(&self) -> Result<Option<Variant>, sqlx::Error> {
        let variant = self.variant.as_deref();
        variant.map(|bytes| bytes.try_into().map(Variant::from_bytes).map_err(corrupt)).transpose()
    }

    /// The rating and the patterns; `None` if this version has not computed them.
    pub(crate) fn analysis(&self) -> Result<Option<ChartAnalysis>, sqlx::Error> {
        if self.analysis_version != i16::from(ANALYSIS_VERSION) {
            return Ok(None);
        }
        let rating = self.rating.map(parse_rating).transpose()?;
        let patterns = self.patterns.as_deref().unwrap_or_default().try_into().map_err(corrupt)?;
        Ok(Some(ChartAnalysis { rating, patterns: Patterns::from_bytes(patterns) }))
    }

    pub(crate) fn curve(&self) -> Result<Option<DensityCurve>, sqlx::Error> {
        let curve = self.density_curve.as_deref();
        curve.map(|bytes| bytes.try_into().map(DensityCurve::from_bytes).map_err(corrupt)).transpose()
    }
}

impl MemberRow {
    pub(crate) fn chartset_id(&self) -> Result<ChartsetId, sqlx::Error> {
        parse_chartset_id(&self.chartset_id)
    }

    pub(crate) fn into_member(self) -> Result<ChartsetMember, sqlx::Error> {
        Ok(ChartsetMember {
            hash: self.chart.hash()?,
            numbers: self.chart.numbers()?,
            variant: self.chart.variant()?,
            analysis: self.chart.analysis()?,
            rox_bytes: self.chart.rox_bytes()?,
            curve: self.chart.curve()?,
            declared_source: parse_source(self.declared_kind.as_deref(), self.declared_ref.as_deref())?,
            alpha_beatmap_id: self.alpha_beatmap_id.map(u64::try_from).transpose().map_err(corrupt)?,
            aliases: parse_aliases(&self.aliases),
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

impl ListedChartRow {
    pub(crate) fn chartset_id(&self) -> Result<ChartsetId, sqlx::Error> {
        parse_chartset_id(&self.chartset_id)
    }

    pub(crate) fn into_chart(self) -> Result<ListedChart, sqlx::Error> {
        let chart = Chart {
            hash: self.chart.hash()?,
            note_hash_version: NOTE_HASH_VERSION,
            numbers: self.chart.numbers()?,
            rox_bytes: self.chart.rox_bytes()?,
            title: self.title,
            artist: self.artist,
            creator: self.creator,
            difficulty: self.difficulty,
            variant: None,
            variant_version: None,
            rating: None,
            patterns: None,
        };
        let chart = chart.with_analysis(self.chart.analysis()?);
        Ok(ListedChart { chart, curve: self.chart.curve()? })
    }
}
