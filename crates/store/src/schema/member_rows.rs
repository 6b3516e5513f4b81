//! Rows of `chartset_charts` with their charts, and their column lists.

use chart_index_domain::{
    Chart, ChartMetadata, ChartsetId, ChartsetMember, FileAliases, FileMd5, ListedChart, Variant,
};

use crate::error::corrupt;
use crate::schema::chart_row::ChartRow;
use crate::schema::column_values::{parse_chartset_id, parse_source};

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
            "member.chartset_id, member.title, member.artist, member.creator, member.difficulty, ",
            crate::schema::chart_row::chart_columns!()
        )
    };
}
pub(crate) use listed_chart_columns;

/// A chart in a chartset, with the metadata from its file there: the columns of [`member_columns`].
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct MemberRow {
    #[sqlx(flatten)]
    listed: ListedChartRow,
    title_romanised: Option<String>,
    artist_romanised: Option<String>,
    tags: Vec<String>,
    declared_kind: Option<String>,
    declared_ref: Option<String>,
    alpha_beatmap_id: Option<i64>,
    /// Empty also in statements that do not select them.
    #[sqlx(default)]
    aliases: Vec<Vec<u8>>,
}

/// The columns of [`MemberRow`], from `chartset_charts AS member` and `charts AS chart`.
macro_rules! member_columns {
    () => {
        concat!(
            "member.title_romanised, member.artist_romanised, member.tags, member.declared_kind, \
             member.declared_ref, member.alpha_beatmap_id, ",
            crate::schema::member_rows::listed_chart_columns!()
        )
    };
}
pub(crate) use member_columns;

/// MD5 digests and variants, which differ in their lengths.
fn parse_aliases(aliases: &[Vec<u8>]) -> FileAliases {
    let md5s = aliases.iter().filter_map(|alias| alias.as_slice().try_into().ok());
    let variants = aliases.iter().filter_map(|alias| alias.as_slice().try_into().ok());
    FileAliases::new(md5s.map(FileMd5::from_bytes).collect(), variants.map(Variant::from_bytes).collect())
}

impl MemberRow {
    pub(crate) fn chartset_id(&self) -> Result<ChartsetId, sqlx::Error> {
        self.listed.chartset_id()
    }

    pub(crate) fn into_member(self) -> Result<ChartsetMember, sqlx::Error> {
        let ListedChartRow { title, artist, creator, difficulty, chart, .. } = self.listed;
        Ok(ChartsetMember {
            hash: chart.hash(),
            values: chart.values()?,
            declared_source: parse_source(self.declared_kind.as_deref(), self.declared_ref.as_deref())?,
            alpha_beatmap_id: self.alpha_beatmap_id.map(u64::try_from).transpose().map_err(corrupt)?,
            aliases: parse_aliases(&self.aliases),
            metadata: ChartMetadata {
                title,
                artist,
                title_romanised: self.title_romanised,
                artist_romanised: self.artist_romanised,
                creator,
                difficulty,
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
        let Self { title, artist, creator, difficulty, chart, .. } = self;
        let metadata = ChartMetadata { title, artist, creator, difficulty, ..ChartMetadata::default() };
        let values = chart.values()?;
        Ok(ListedChart { chart: Chart::new(chart.hash(), &values, &metadata), curve: values.curve })
    }
}
