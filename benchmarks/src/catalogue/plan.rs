//! What has to be right for the whole catalogue: how many charts each set has, and when it was updated.

use super::CatalogueOptions;
use super::random::{Stream, generator};

/// The most charts of a set.
pub(super) const MAX_CHARTS: u64 = 20;

/// The moment of the newest sets: 2026-11-21, midnight.
const END_MS: i64 = 1_795_219_200_000;
const YEARS_MS: i64 = 3 * 365 * 24 * 3_600 * 1_000;
/// One in so many groups of sets is a burst, such as an ingest of a whole library; the others are single sets.
const BURST_ONE_IN: u32 = 300;

/// Number of charts of each set: many have one or two, few have twenty, and the sum is right.
pub(super) fn chart_counts(options: &CatalogueOptions) -> Vec<u8> {
    let (sets, charts) = (options.chartsets(), options.charts());
    let mut random = generator(options.seed(), Stream::Plan, 0);
    let mut counts = Vec::with_capacity(usize::try_from(sets).unwrap_or(0));
    for _ in 0..sets {
        let mut count = 1;
        while u64::from(count) < MAX_CHARTS && random.u64(0..charts) < charts - sets {
            count += 1;
        }
        counts.push(count);
    }
    let mut sum: u64 = counts.iter().copied().map(u64::from).sum();
    while sum != charts {
        let at = random.usize(0..counts.len());
        if sum < charts && u64::from(counts[at]) < MAX_CHARTS {
            counts[at] += 1;
            sum += 1;
        } else if sum > charts && counts[at] > 1 {
            counts[at] -= 1;
            sum -= 1;
        }
    }
    counts
}

/// When each set was updated, from the oldest on: over three years, about a quarter of the sets in bursts that fall
/// into a few seconds, a part of those into one millisecond.
pub(super) fn update_times(options: &CatalogueOptions) -> Vec<i64> {
    let mut random = generator(options.seed(), Stream::Plan, 1);
    let (mut groups, mut sets) = (Vec::new(), 0);
    while sets < options.chartsets() {
        let size = if random.u32(0..BURST_ONE_IN) == 0 { random.u64(20..=200) } else { 1 };
        let size = size.min(options.chartsets() - sets);
        groups.push((END_MS - random.i64(0..YEARS_MS), size));
        sets += size;
    }
    groups.sort_unstable();
    let mut times = Vec::with_capacity(usize::try_from(sets).unwrap_or(0));
    for (begin_ms, size) in groups {
        let within_ms = if random.u8(0..4) == 0 { 1 } else { 3_000 };
        times.extend((0..size).map(|_| begin_ms + random.i64(0..within_ms)));
    }
    times
}
