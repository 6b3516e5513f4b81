//! What the pages show of charts, in addition to the objects of the API.

use crate::{Chart, Chartset, ChartsetId, DensityCurve, PublicSource, Source};

/// What a list page shows of a chartset besides its list item.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedCharts {
    /// The id of its list item.
    pub id: ChartsetId,
    /// Its charts in the order of the chartset detail, at least one.
    pub charts: Vec<ListedChart>,
}

/// A chartset with the same charts as another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartsetCopy {
    /// The other one.
    pub copy_of: ChartsetId,
    /// The id.
    pub id: ChartsetId,
    /// That of its list item.
    pub title: String,
    /// Its public source, if it has one.
    pub source: Option<PublicSource>,
}

/// A row of a list: a chart with its curve.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedChart {
    /// The chart, with the metadata of its file in this chartset.
    pub chart: Chart,
    /// Its density curve; `None` until it is computed for a chart of an older version.
    pub curve: Option<DensityCurve>,
}

/// A chart with everything that its page shows.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartPage {
    /// The chart, with the metadata that a lookup returns.
    pub chart: Chart,
    /// Its density curve; `None` until it is computed for a chart of an older version.
    pub curve: Option<DensityCurve>,
    /// Where it can be downloaded, in the order of docs/api.md, "Chart lookup".
    pub sources: Vec<Source>,
    /// The chartsets that contain it, at least one: those with the best source first, like the metadata of a
    /// lookup.
    pub chartsets: Vec<ChartInChartset>,
}

/// One of the chartsets that a chart is in, with what its file says there.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartInChartset {
    /// As lists show it.
    pub chartset: Chartset,
    /// The name of the difficulty of the chart in this chartset.
    pub difficulty: String,
    /// The author of the chart in this chartset.
    pub creator: String,
}

/// A chart of a creator, in one of the chartsets in which its file names them.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatorChart {
    /// The chart, with the metadata of its file in the chartset.
    pub listed: ListedChart,
    /// The chartset.
    pub chartset_id: ChartsetId,
    /// When the index first had the chart, in Unix epoch milliseconds.
    pub first_seen_ms: i64,
}

/// A chart that plays like another one.
#[derive(Debug, Clone, PartialEq)]
pub struct SimilarChart {
    /// The chart, with the metadata of its file in the chartset.
    pub chart: Chart,
    /// Its density curve; `None` until it is computed for a chart of an older version.
    pub curve: Option<DensityCurve>,
    /// One of the chartsets that contain the chart.
    pub chartset_id: ChartsetId,
}
