//! Builds chart drafts from decoded charts.

use chart_index_domain::{ChartDraft, FileAliases, PublicSource, SourceKind, SourceRef};

use crate::game_chart::GameChart;
use crate::{IsStored, Refusal, RefusedChart, rox_file};

/// The charts of one file, indexable or not.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodedFile {
    /// The indexable charts, at least one, in the order of the file. Each note hash once: if a file contains
    /// the same notes twice, the first chart is used.
    pub charts: Vec<ChartDraft>,
    /// The charts that cannot be indexed.
    pub refused: Vec<RefusedChart>,
}

/// The draft of a chart.
pub(super) fn draft(chart: GameChart, is_stored: IsStored<'_>) -> Result<ChartDraft, Refusal> {
    let metadata = chart.metadata();
    let encoded = rox_file::encode(chart.chart, is_stored)?;
    let declared_source = encoded
        .metadata
        .chartset_id
        .and_then(SourceRef::from_number)
        .map(|reference| PublicSource { kind: SourceKind::AlphaSet, reference });
    Ok(ChartDraft {
        hash: encoded.hash,
        numbers: encoded.numbers,
        variant: encoded.variant,
        analysis: encoded.analysis,
        metadata,
        declared_source,
        // Unpublished charts have 0 or a negative number, which the decoder converts to a very large one.
        alpha_beatmap_id: encoded.metadata.chart_id.filter(|id| (1..=i32::MAX as u64).contains(id)),
        rox: encoded.rox,
        preview: encoded.preview,
        aliases: FileAliases::new(Vec::new(), encoded.roll_variant.into_iter().collect()),
    })
}

pub(super) fn single_chart(chart: ChartDraft) -> DecodedFile {
    DecodedFile { charts: vec![chart], refused: Vec::new() }
}
