//! Drafts: charts and chartsets that were read from files and are not stored yet.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    ChartAnalysis, ChartMetadata, ChartNumbers, ChartsetId, DensityCurve, FileAliases, NoteHash, SourceKind,
    SourceRef, Variant,
};

/// A published set or pack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublicSource {
    /// The game, and whether it is a set or a pack.
    pub kind: SourceKind,
    /// The id of the set or pack.
    #[serde(rename = "ref")]
    pub reference: SourceRef,
}

/// A chart, as read from a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartDraft {
    /// Identifies the chart.
    pub hash: NoteHash,
    /// The numbers computed from this file.
    pub numbers: ChartNumbers,
    /// The variant of its notes, if it has one.
    pub variant: Option<Variant>,
    /// With the ROX file.
    pub analysis: Option<ChartAnalysis>,
    /// The ROX file; `None` if the store already has the one of this hash, which is never replaced.
    pub rox: Option<Vec<u8>>,
    /// The density curve of the chart in the ROX file; `None` without one.
    pub curve: Option<DensityCurve>,
    /// As the file has it, cleaned.
    pub metadata: ChartMetadata,
    /// The source that the metadata names.
    pub declared_source: Option<PublicSource>,
    /// The id of the chart in the first game, if the file has one.
    pub alpha_beatmap_id: Option<u64>,
    /// What else it is known by.
    pub aliases: FileAliases,
}

/// Collects charts, of which several may have the same note hash.
#[derive(Debug, Default)]
pub struct DistinctCharts {
    charts: Vec<ChartDraft>,
    places: HashMap<NoteHash, usize>,
}

impl DistinctCharts {
    /// Adds a chart. If there is one with its note hash, that one only gets its aliases.
    pub fn add(&mut self, chart: ChartDraft) {
        match self.places.entry(chart.hash) {
            Entry::Vacant(place) => {
                place.insert(self.charts.len());
                self.charts.push(chart);
            }
            Entry::Occupied(place) => self.charts[*place.get()].aliases.extend(chart.aliases),
        }
    }

    /// The number of note hashes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.charts.len()
    }

    /// Whether there is no chart.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.charts.is_empty()
    }

    /// The first chart of each note hash, in the order in which they were added.
    #[must_use]
    pub fn into_charts(self) -> Vec<ChartDraft> {
        self.charts
    }
}

/// A chartset, as read from a song folder.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartsetDraft {
    /// The id, derived from what identifies the folder.
    pub id: ChartsetId,
    /// The path below the library root, with `/` between its components, for reports.
    pub path: String,
    /// The set or pack that the folder belongs to; `None` for a folder without a set or pack id.
    pub exact_source: Option<PublicSource>,
    /// The charts, in the order of their files. Each note hash once, from the first file that has it.
    pub charts: Vec<ChartDraft>,
}
