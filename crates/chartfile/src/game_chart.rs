//! What the readers of all formats give: charts as their games play them.

use chart_index_domain::ChartMetadata;
use chart_index_rox::RoxChart;

/// A chart as its game plays it.
#[derive(Debug, Clone)]
pub(crate) struct GameChart {
    /// Its notes, with the rolls of the second game as bursts; its BPM points, of which there is at least one,
    /// and its scroll speeds. Each in any order, with times in microseconds on the timeline of the audio.
    pub(crate) chart: RoxChart,
    /// The romanised title, if it differs from the title.
    pub(crate) title_romanised: Option<String>,
    /// The romanised artist, if it differs from the artist.
    pub(crate) artist_romanised: Option<String>,
}

impl GameChart {
    /// The metadata for storage and display.
    pub(crate) fn metadata(&self) -> ChartMetadata {
        let metadata = &self.chart.metadata;
        ChartMetadata {
            title: metadata.title.to_string(),
            artist: metadata.artist.to_string(),
            title_romanised: self.title_romanised.clone(),
            artist_romanised: self.artist_romanised.clone(),
            creator: metadata.creator.to_string(),
            difficulty: metadata.difficulty_name.to_string(),
            tags: metadata.tags.iter().map(ToString::to_string).collect(),
        }
        .cleaned()
    }
}
