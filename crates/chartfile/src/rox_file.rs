//! ROX files: encoded once from a decoded chart, decoded again to verify them.

use chart_index_domain::{
    ChartAnalysis, ChartDraft, ChartMetadata, ChartNumbers, DensityCurve, FileAliases, NoteHash,
    PublicSource, SourceKind, SourceRef, Variant,
};
pub(crate) use chart_index_rox::MAX_NOTES;
use chart_index_rox::{CanonicalNotes, MAX_TIMING_POINTS, NoteType, RoxChart, TimingPoint};

use crate::Refusal;
use crate::chart_numbers::chart_numbers;
use crate::panic_guard::catch_panic;
use crate::patterns::patterns;
use crate::rating::rating;

/// Reports whether the ROX file of a note hash is already stored, in which case it is not encoded again.
pub type IsStored<'a> = &'a (dyn Fn(&NoteHash) -> bool + 'a);

/// What a ROX file contains.
#[derive(Debug, Clone, PartialEq)]
pub struct RoxContent {
    /// Identifies the chart; computed from its notes.
    pub hash: NoteHash,
    /// Computed from its notes and its timing.
    pub numbers: ChartNumbers,
    /// Computed from its notes; `None` if they are too few or too similar.
    pub variant: Option<Variant>,
    /// Computed from its notes.
    pub analysis: ChartAnalysis,
    /// Computed from its notes.
    pub curve: DensityCurve,
}

impl RoxContent {
    /// The chart in this file, without metadata.
    #[must_use]
    pub fn into_draft(self, rox: Vec<u8>) -> ChartDraft {
        ChartDraft {
            hash: self.hash,
            numbers: self.numbers,
            variant: self.variant,
            analysis: Some(self.analysis),
            rox: Some(rox),
            curve: Some(self.curve),
            metadata: ChartMetadata::default(),
            declared_source: None,
            alpha_beatmap_id: None,
            aliases: FileAliases::default(),
        }
    }
}

/// Decodes a ROX file and computes the note hash, the numbers, the variant, the analysis and the density curve
/// of its chart.
///
/// For a ROX file from [`decode`](crate::decode) they equal those that it returned.
pub fn inspect_rox(bytes: &[u8]) -> Result<RoxContent, Refusal> {
    catch_panic(|| {
        let chart = chart_index_rox::read(bytes).map_err(|error| Refusal::from_rox(&error))?;
        let notes = CanonicalNotes::from_chart(&chart)?;
        let starts = notes.notes().iter().map(|note| note.start_ms);
        Ok(RoxContent {
            hash: notes.hash(),
            numbers: chart_numbers(&chart, &notes),
            variant: notes.rows().variant(),
            analysis: ChartAnalysis { rating: rating(&notes), patterns: patterns(&notes) },
            curve: DensityCurve::from_starts(starts, notes.length_ms()),
        })
    })
}

/// Computes note hash, numbers, ROX file, analysis and density curve of a chart without its mines and bursts,
/// of which the file has this metadata.
///
/// The ROX file is read again before it is returned, so that the ROX file of every indexed chart gives the
/// chart's own hash; neither is done if `is_stored` reports that the ROX file exists.
pub(crate) fn encode(
    mut chart: RoxChart,
    metadata: ChartMetadata,
    is_stored: IsStored<'_>,
) -> Result<ChartDraft, Refusal> {
    if chart.notes.len() > MAX_NOTES {
        return Err(Refusal::DecodingLimit { what: "notes" });
    }
    if chart.timing_points.len() > MAX_TIMING_POINTS {
        return Err(Refusal::DecodingLimit { what: "timing points" });
    }
    let with_rolls = CanonicalNotes::starts_with_rolls(&chart).and_then(Result::ok);
    // Rolls are not in the ROX file.
    let roll_variant = with_rolls.and_then(|notes| notes.rows().variant());
    chart.remove_unsupported_notes();
    put_in_order(&mut chart);
    let notes = CanonicalNotes::from_chart(&chart)?;
    chart.validate().map_err(|error| Refusal::from_invalid(&error))?;
    let (hash, numbers) = (notes.hash(), chart_numbers(&chart, &notes));
    let new = if is_stored(&hash) { None } else { Some(encode_verified(&mut chart, hash, numbers)?) };
    let (rox, content) = new.unzip();
    let (analysis, curve) = content.map(|content| (content.analysis, content.curve)).unzip();
    let chartset_id = chart.metadata.chartset_id.and_then(SourceRef::from_number);
    Ok(ChartDraft {
        hash,
        numbers,
        variant: notes.rows().variant(),
        analysis,
        rox,
        curve,
        metadata,
        declared_source: chartset_id.map(|reference| PublicSource { kind: SourceKind::AlphaSet, reference }),
        alpha_beatmap_id: chart.metadata.chart_id,
        aliases: FileAliases::new(Vec::new(), roll_variant.into_iter().collect()),
    })
}

/// Puts a chart in the form of a valid ROX file (docs/formats/rox.md, "Valid charts"): notes and timing points
/// in order, long notes without length as taps, and the first BPM, which also applies before its time, not
/// after the first note.
fn put_in_order(chart: &mut RoxChart) {
    for note in &mut chart.notes {
        if matches!(note.note_type, NoteType::Hold { duration_us } if duration_us <= 0) {
            note.note_type = NoteType::Tap;
        }
    }
    // The order of the note hash. With a sort by time alone, the order of the file would decide whether a tap
    // on the head of a long note is refused.
    chart.notes.sort_by_key(|note| (note.time_us, note.column, note.is_hold(), note.duration_us()));
    chart.timing_points.sort_by_key(TimingPoint::time_us);
    let first_note_us = chart.notes.first().map(|note| note.time_us);
    let first_bpm = chart.timing_points.iter_mut().find(|point| point.is_bpm());
    if let (Some(first_note_us), Some(TimingPoint::Bpm { time_us, .. })) = (first_note_us, first_bpm)
        && *time_us > first_note_us
    {
        *time_us = first_note_us.saturating_sub(1);
        chart.timing_points.sort_by_key(TimingPoint::time_us);
    }
}

/// The ROX file, and what it contains.
fn encode_verified(
    chart: &mut RoxChart,
    hash: NoteHash,
    numbers: ChartNumbers,
) -> Result<(Vec<u8>, RoxContent), Refusal> {
    let rox = chart_index_rox::write(chart).map_err(|error| Refusal::from_rox(&error))?;
    let content = inspect_rox(&rox)?;
    if (content.hash, content.numbers) == (hash, numbers) {
        Ok((rox, content))
    } else {
        Err(Refusal::RoxMismatch)
    }
}
