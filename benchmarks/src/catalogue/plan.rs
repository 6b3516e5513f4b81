//! The properties that depend on the whole catalogue: the number of charts and the update time of each
//! chartset.

use super::CatalogueOptions;
use super::random::{Stream, generator};

/// The maximum number of charts per chartset.
pub(super) const MAX_CHARTS: u64 = 20;

/// The latest update time: 2026-11-21, midnight UTC.
const END_MS: i64 = 1_795_219_200_000;
const YEARS_MS: i64 = 3 * 365 * 24 * 3_600 * 1_000;
/// One in this number of groups is a burst of updates, such as the ingest of a library; the others are single
/// chartsets.
const BURST_ONE_IN: u32 = 300;

/// The number of charts of each chartset: many have one or two, few have twenty. The sum is exact.
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

/// The update times in ascending order, over three years. About a quarter of the chartsets are updated in
/// bursts of a few seconds, some of which are within a millisecond.
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
