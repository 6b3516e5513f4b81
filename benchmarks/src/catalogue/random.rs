//! Seeded random numbers. Only integers are used, so that every machine generates the same catalogue.

use fastrand::Rng;

/// The purpose of a generator: different purposes have independent numbers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stream {
    Plan = 1,
    Set,
    Song,
    Artist,
    Creator,
    Word,
    Offset,
}

/// The generator for item `number` of a stream.
pub(super) fn generator(seed: u64, stream: Stream, number: u64) -> Rng {
    Rng::with_seed(scramble(scramble(scramble(seed) ^ stream as u64) ^ number))
}

/// A bijection that scatters consecutive numbers (the finaliser of `SplitMix64`).
fn scramble(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A Zipf distribution: the item of a rank has the weight `1 / (rank + shift)`.
#[derive(Debug)]
pub struct Zipf {
    cumulative: Vec<u64>,
}

impl Zipf {
    /// A distribution over `count` items, at least one. A greater shift (at least 1) makes the first ranks less
    /// dominant.
    #[must_use]
    pub fn new(count: u64, shift: u64) -> Self {
        let weights = (0..count.max(1)).map(|rank| (1 << 40) / (rank + shift));
        let cumulative = weights.scan(0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        Self { cumulative: cumulative.collect() }
    }

    /// A random rank; 0 is the most frequent.
    pub fn rank(&self, random: &mut Rng) -> u64 {
        let total = self.cumulative.last().copied().unwrap_or(1);
        let at = random.u64(0..total);
        self.cumulative.partition_point(|sum| *sum <= at) as u64
    }
}

/// True with a probability of `share` in a thousand.
pub(super) fn per_mille(random: &mut Rng, share: u32) -> bool {
    random.u32(0..1_000) < share
}

/// A bell-shaped distribution over the range.
pub(super) fn bell(random: &mut Rng, from: u32, to: u32) -> u32 {
    let width = to - from;
    from + (0..4).map(|_| random.u32(0..=width)).sum::<u32>() / 4
}

/// A random choice.
pub(super) fn pick<T: Copy>(random: &mut Rng, choices: &[T]) -> T {
    choices[random.usize(0..choices.len())]
}

/// A random choice by weights.
pub(super) fn pick_weighted<T: Copy>(random: &mut Rng, choices: &[(u32, T)]) -> T {
    let mut left = random.u32(0..choices.iter().map(|(weight, _)| weight).sum());
    for (weight, choice) in choices {
        if left < *weight {
            return *choice;
        }
        left -= weight;
    }
    choices[0].1
}
