//! What an ingest hands to the store.

use crate::{ChartMetadata, ChartNumbers, ChartsetId, NoteHash, SourceKind, SourceRef};

/// A set or a pack that a chart or a chartset is published in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicSource {
    /// Which game's.
    pub kind: SourceKind,
    /// Its id there.
    pub reference: SourceRef,
}

/// One chart as it was read from one file.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartDraft {
    /// The note hash.
    pub hash: NoteHash,
    /// The numbers computed from this file.
    pub numbers: ChartNumbers,
    /// The canonical ROX bytes made from this file; `None` where the store has those of this hash already, which
    /// it never replaces.
    pub rox: Option<Vec<u8>>,
    /// What this file says of the chart.
    pub metadata: ChartMetadata,
    /// The source that this file's own metadata names.
    pub declared_source: Option<PublicSource>,
    /// The id of the chart in the first game, where the file has one.
    pub alpha_beatmap_id: Option<u64>,
}

/// One song folder as it was read: everything the index keeps of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartsetDraft {
    /// Derived from what identifies the folder.
    pub id: ChartsetId,
    /// Path below the library root, `/` between its parts, for the people who run the index.
    pub path: String,
    /// The set or pack that the folder belongs to; `None` for a folder without an id.
    pub exact_source: Option<PublicSource>,
    /// The charts in the order of their files. Each note hash once: the first file that has it counts.
    pub charts: Vec<ChartDraft>,
}
