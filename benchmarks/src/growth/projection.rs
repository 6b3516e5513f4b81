//! What a rate and a catalogue would need, by the measured figures.

use serde::Serialize;

use crate::Stage;
use crate::classes::ClassRow;
use crate::lists::ListRow;

/// The assumed requests of each class among 1,000.
const MIX: [(&str, f64); 9] = [
    ("lookup, hit", 690.0),
    ("lookup, unknown", 100.0),
    ("lookup, 304", 60.0),
    ("lookup, miss", 20.0),
    ("ROX, 6 KB", 40.0),
    ("list, hit, gzip", 60.0),
    (LIST_MISS[0], 10.0),
    (LIST_MISS[1], 10.0),
    ("refused", 20.0),
];
/// One of the two: Meilisearch if it was measured.
const LIST_MISS: [&str; 2] = ["list, miss, Meilisearch", "list, miss, PostgreSQL"];
/// The projected rate and catalogue.
const PER_SECOND: f64 = 50_000.0;
const CHARTS: f64 = 10_000_000.0;

/// Cores that the mix keeps busy at the projected rate, and when each server saturates.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RateProjection {
    /// The parts of the mix that were measured, of 1,000 requests.
    pub(crate) mix: Vec<(&'static str, f64)>,
    /// Server, cores at the projected rate, and requests per second that one core of it serves.
    pub(crate) servers: Vec<(&'static str, f64, f64)>,
}

/// A quantity at the projected number of charts, on the line through the last two sizes.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SizeProjection {
    pub(crate) quantity: String,
    pub(crate) before: f64,
    pub(crate) last: f64,
    pub(crate) projected: f64,
}

/// The cores for 50,000 requests per second.
pub(crate) fn rate(classes: &[ClassRow]) -> RateProjection {
    let measured = |name: &str| classes.iter().find(|row| row.class == name);
    let list_miss = LIST_MISS.into_iter().find(|name| measured(name).is_some());
    let mix = MIX.into_iter().filter(|(name, _)| !LIST_MISS.contains(name) || list_miss == Some(*name));
    let mix: Vec<_> = mix.filter_map(|(name, share)| Some((measured(name)?, share))).collect();
    let whole: f64 = mix.iter().map(|(_, share)| share).sum();
    let microseconds =
        |of: fn(&ClassRow) -> f64| mix.iter().map(|(row, share)| of(row) * share).sum::<f64>() / whole;
    let servers = [
        ("chart-index", microseconds(|row| row.cost.service)),
        ("Redis", microseconds(|row| row.cost.redis)),
        ("PostgreSQL", microseconds(|row| row.cost.postgres)),
        ("Meilisearch", microseconds(|row| row.cost.meilisearch)),
    ];
    RateProjection {
        servers: servers.map(|(name, each)| (name, each * PER_SECOND / 1e6, 1e6 / each)).to_vec(),
        mix: mix.into_iter().map(|(row, share)| (row.class, share)).collect(),
    }
}

/// What grows with the catalogue, at 10 million charts. Empty if there was one size.
pub(crate) fn size(stages: &[Stage]) -> Vec<SizeProjection> {
    let [.., before, last] = stages else { return Vec::new() };
    let project = |quantity: String, before_value: f64, last_value: f64| {
        let slope = (last_value - before_value) / (last.charts() - before.charts());
        // What does not grow stays as it is.
        let projected = last_value + slope.max(0.0) * (CHARTS - last.charts());
        SizeProjection { quantity, before: before_value, last: last_value, projected }
    };
    let mut rows = vec![project("database, GB".into(), before.gigabytes(), last.gigabytes())];
    for (before, last) in before.lists.iter().zip(&last.lists) {
        let total = if last.total_cached { "total cached" } else { "first read" };
        let cpu = |row: &ListRow| (row.cost.postgres + row.cost.meilisearch) / 1e3;
        rows.push(project(format!("list, {}, {total}, CPU in ms", last.engine), cpu(before), cpu(last)));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::Cost;

    #[test]
    fn cores_follow_from_the_shares_of_the_mix() {
        let row = |class, service| ClassRow {
            class,
            cost: Cost { service, redis: 10.0, ..Cost::default() },
            per_second: None,
        };
        let classes = [row("lookup, hit", 20.0), row("refused", 89.0), row("list, hit", 1e6)];
        let projection = rate(&classes);
        assert_eq!(projection.mix, [("lookup, hit", 690.0), ("refused", 20.0)]);
        let (_, cores, per_core) = projection.servers[0];
        let each = (20.0 * 690.0 + 89.0 * 20.0) / 710.0;
        assert!((cores - each * 0.05).abs() < 1e-9 && (per_core - 1e6 / each).abs() < 1e-6);
        assert!((projection.servers[1].1 - 0.5).abs() < 1e-9);
    }
}
