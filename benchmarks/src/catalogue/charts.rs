//! The charts of a set: their numbers and their ROX bytes.

use chart_index_domain::{ChartAnalysis, ChartNumbers, KeyCount, Patterns, Rating, round_to_thousandths};
use fastrand::Rng;

use super::random::{bell, per_mille, pick_weighted};
use super::songs::Song;

/// The range of lengths of real ROX files.
const ROX_BYTES: std::ops::RangeInclusive<u32> = 300..=60_000;

const KEYS: [(u32, u8); 4] = [(60, 4), (30, 7), (5, 5), (5, 6)];

/// The key counts of a chartset: one, or two in 8 % of the sets.
#[derive(Debug, Clone, Copy)]
pub(super) struct SetKeys {
    main: u8,
    other: u8,
}

impl SetKeys {
    pub(super) fn new(random: &mut Rng) -> Self {
        let main = pick_weighted(random, &KEYS);
        let other = if per_mille(random, 80) { pick_weighted(random, &KEYS) } else { main };
        Self { main, other }
    }

    fn pick(self, random: &mut Rng) -> u8 {
        if per_mille(random, 400) { self.other } else { self.main }
    }
}

/// The numbers of chart `place` of `of` in its chartset, ordered from easy to hard.
pub(super) fn numbers(song: &Song, keys: SetKeys, place: u32, of: u32, random: &mut Rng) -> ChartNumbers {
    let keys = keys.pick(random);
    let length_ms = song.length_ms - random.u32(0..=song.length_ms.min(4_000) / 2);
    let notes = notes(keys, length_ms, place, of, random);
    let density_avg = f64::from(notes) * 1_000.0 / f64::from(length_ms);
    let [lowest, main, highest] = song.bpm_thousandths.map(|bpm| f64::from(bpm) / 1_000.0);
    let bpm = ChartNumbers { bpm_min: lowest, bpm_max: highest, bpm_main: main, ..ChartNumbers::default() };
    ChartNumbers {
        keys: KeyCount::try_from(keys).unwrap_or_else(|_| unreachable!("every chart has 4 to 7 keys")),
        length_ms,
        notes,
        lns: long_notes(keys, notes, random),
        density_avg: round_to_thousandths(density_avg),
        density_peak: (density_avg * f64::from(random.u32(130..280)) / 100.0)
            .ceil()
            .clamp(1.0, f64::from(notes)),
        ..bpm
    }
}

/// A rating that follows from the density, and shares of rows from the hash, which is random.
pub(super) fn analysis(numbers: &ChartNumbers, hash: &[u8; 32]) -> ChartAnalysis {
    let hundredths = numbers.density_avg.mul_add(55.0, f64::from(hash[0] % 64)).clamp(1.0, 1_500.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped")]
    let rating = Rating::from_hundredths(hundredths as u16).filter(|_| numbers.notes >= 50);
    let mut patterns = Patterns::default();
    for (share, byte) in patterns.row_shares.iter_mut().zip(hash) {
        *share = (byte % 32).saturating_sub(12);
    }
    ChartAnalysis { rating, patterns }
}

/// Random bytes in place of a ROX file, of a length that depends on the number of notes.
pub(super) fn rox(notes: u32, random: &mut Rng) -> Vec<u8> {
    let length = notes
        .saturating_mul(2)
        .saturating_add(random.u32(200..600))
        .clamp(*ROX_BYTES.start(), *ROX_BYTES.end());
    let mut bytes = vec![0; length as usize];
    random.fill(&mut bytes);
    bytes
}

/// The number of notes. Density increases with the key count and the difficulty.
fn notes(keys: u8, length_ms: u32, place: u32, of: u32, random: &mut Rng) -> u32 {
    let dense = 250 + 135 * u32::from(keys);
    let difficulty = 40 + 80 * (place + 1) / of;
    // In thousandths of a note per second. The hardest charts have 9.5 notes per second with 4 keys and 14.3
    // with 7.
    let density = u64::from(dense * difficulty / 10 * bell(random, 55, 145) / 100);
    let notes = density * u64::from(length_ms) / 1_000_000;
    u32::try_from(notes.max(1)).unwrap_or(u32::MAX)
}

/// The number of long notes: few in most charts, many in some, more often with 7 keys.
fn long_notes(keys: u8, notes: u32, random: &mut Rng) -> u32 {
    let per_hundred = match (keys, random.u8(0..10)) {
        (_, 0..3) => 0,
        (7, 7..) | (_, 9) => random.u32(30..=100),
        _ => random.u32(1..25),
    };
    u32::try_from(u64::from(notes) * u64::from(per_hundred) / 100).unwrap_or(notes)
}
