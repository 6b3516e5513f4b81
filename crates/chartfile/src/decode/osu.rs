//! Decodes `.osu` files: one chart of the first game.

use rox::RoxChart;
use rox::codec::Decoder;
use rox::formats::{OsuDecoder, RomanisedNames};

use crate::{Refusal, repairs};

/// The only mode of the first game that is indexed.
const MODE: u8 = 3;

/// The limit for times and lengths, negative ones included: 12 days, in microseconds. The decoder subtracts
/// 32-bit milliseconds; within this limit the result is right, and a result that wrapped around is beyond it.
const MAX_TIME_US: u64 = (1 << 30) * 1000;

/// The chart of the file, before validation.
pub(super) fn decode(text: &str, names: &RomanisedNames) -> Result<RoxChart, Refusal> {
    if let Some(mode) = OsuDecoder::peek_mode(text.as_bytes(), true)
        && mode != MODE
    {
        return Err(Refusal::OtherGameMode { mode });
    }
    let mut chart =
        OsuDecoder::decode_inner(text.as_bytes()).map_err(|error| Refusal::from_decoder(&error))?;
    let in_range = |time_us: i64| time_us.unsigned_abs() <= MAX_TIME_US;
    if !chart.notes.iter().all(|note| in_range(note.time_us) && in_range(note.duration_us())) {
        return Err(Refusal::TimeOutOfRange);
    }
    repairs::fill_empty_names(&mut chart, names);
    repairs::clamp_columns(&mut chart, text)?;
    Ok(chart)
}
