//! Builds chart drafts from decoded charts.

use chart_index_domain::{ChartDraft, DistinctCharts, FileAliases, PublicSource, SourceKind, SourceRef};
use rox::RoxChart;
use rox::formats::RomanisedNames;

use crate::metadata::chart_metadata;
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

/// The draft of a decoded chart.
pub(super) fn draft(
    chart: RoxChart,
    names: &RomanisedNames,
    is_stored: IsStored<'_>,
) -> Result<ChartDraft, Refusal> {
    let encoded = rox_file::encode(chart, is_stored)?;
    let metadata = &encoded.metadata;
    let declared_source = metadata
        .chartset_id
        .and_then(SourceRef::from_number)
        .map(|reference| PublicSource { kind: SourceKind::AlphaSet, reference });
    Ok(ChartDraft {
        hash: encoded.hash,
        numbers: encoded.numbers,
        variant: encoded.variant,
        analysis: encoded.analysis,
        metadata: chart_metadata(metadata, names),
        declared_source,
        // Unpublished charts have 0 or a negative number, which the decoder converts to a very large one.
        alpha_beatmap_id: metadata.chart_id.filter(|id| (1..=i32::MAX as u64).contains(id)),
        rox: encoded.rox,
        preview: encoded.preview,
        aliases: FileAliases::new(Vec::new(), encoded.roll_variant.into_iter().collect()),
    })
}

pub(super) fn single_chart(chart: ChartDraft) -> DecodedFile {
    DecodedFile { charts: vec![chart], refused: Vec::new() }
}

/// A file with several charts, of which some may be refused.
pub(super) fn collect_charts(
    charts: impl Iterator<Item = Result<ChartDraft, RefusedChart>>,
) -> Result<DecodedFile, Refusal> {
    let (mut distinct, mut refused) = (DistinctCharts::default(), Vec::new());
    for chart in charts {
        match chart {
            Ok(chart) => distinct.add(chart),
            Err(reason) => refused.push(reason),
        }
    }
    let charts = distinct.into_charts();
    if charts.is_empty() { Err(Refusal::NoChart { refused }) } else { Ok(DecodedFile { charts, refused }) }
}
