//! Reads `.sm` and `.ssc` files as StepMania 5 plays them: the charts of one song of the second game.
//!
//! Each rule names its place in the source of ITGmania, commit 5d4f9dcb, whose rules are those of StepMania 5
//! (commit d55acb1). As there, files are read as bytes.

mod chart;
mod msd;
mod negative;
mod notes;
mod number;
mod song;
mod step_types;
mod stepf2;
mod tags;
mod timeline;
mod timing;

use self::chart::ChartReader;
use self::msd::Tags;
use self::timeline::Timeline;
use crate::game_chart::GameChart;
use crate::text_encoding::TextDecoder;
use crate::{ChartFormat, Refusal, RefusedChart};

/// Reads the charts of a file, and hands one after the other to `take`. Returns those that cannot be read or
/// that `take` refuses.
///
/// # Errors
/// The file is above a limit, or has a number that no program writes.
pub(crate) fn read(
    format: ChartFormat,
    bytes: &[u8],
    mut take: impl FnMut(GameChart) -> Result<(), Refusal>,
) -> Result<Vec<RefusedChart>, Refusal> {
    let (is_sm, texts) = (format == ChartFormat::Sm, TextDecoder::detect(bytes));
    let tags = Tags::read(bytes)?;
    let (mut song, charts) = if is_sm { song::read_sm(&tags)? } else { song::read_ssc(&tags)? };
    let timeline = Timeline::new(std::mem::take(&mut song.timing));
    let reader = ChartReader { is_sm, texts, song, timeline };
    let mut refused = Vec::new();
    for tags in &charts {
        if let Err(reason) = reader.read(tags).and_then(&mut take) {
            refused.push(RefusedChart { chart: reader.name(tags), reason });
        }
    }
    Ok(refused)
}
