//! What was removed from another index after the state of it that is stored here.

use std::collections::HashMap;

use chart_index_domain::Entity;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::CheckedChartset;

/// Charts and chartsets, with the sequences of their removals.
pub(crate) type Removals = HashMap<Entity, u64>;

/// Removals that are known before the changes that they follow are stored. They are locked while chartsets are
/// stored, so that a removal is known before that, or deletes what was stored.
#[derive(Debug, Default)]
pub(crate) struct LaterRemovals(RwLock<Removals>);

impl LaterRemovals {
    /// The removals, to which none is added before the guard is dropped.
    pub(crate) async fn read(&self) -> RwLockReadGuard<'_, Removals> {
        self.0.read().await
    }

    /// The removals, while nothing is stored.
    pub(crate) async fn write(&self) -> RwLockWriteGuard<'_, Removals> {
        self.0.write().await
    }
}

impl CheckedChartset {
    /// Leaves out the charts that were removed after this sequence. Returns whether anything is left.
    pub(crate) fn leave_out(&mut self, removals: &Removals, sequence: u64) -> bool {
        let is_removed = |entity: Entity| removals.get(&entity).is_some_and(|removed| *removed > sequence);
        if removals.is_empty() {
            return true;
        }
        let draft = &mut self.chartset.draft;
        let charts = std::mem::take(&mut draft.charts).into_iter().zip(std::mem::take(&mut self.rox_bytes));
        (draft.charts, self.rox_bytes) = charts.filter(|(chart, _)| !is_removed(chart.hash.into())).unzip();
        !draft.charts.is_empty() && !is_removed(draft.id.into())
    }
}

#[cfg(test)]
mod tests {
    use chart_index_domain::{ChartsetId, NoteHash};
    use serde_json::json;

    use super::*;

    fn chartset() -> CheckedChartset {
        let chart = |digit: &str| {
            json!({
                "hash": digit.repeat(64), "noteHashVersion": 1, "keys": 4, "bpmMin": 1.0, "bpmMax": 1.0,
                "bpmMain": 1.0, "lengthMs": 1, "notes": 1, "lns": 0, "densityAvg": 1.0, "densityPeak": 1.0,
                "roxBytes": 7, "title": "a", "artist": "", "creator": "", "difficulty": "", "tags": [],
            })
        };
        let id = ChartsetId::from_bytes([0; 8]);
        let record = json!({ "id": id, "updatedAtMs": 1, "charts": [chart("1"), chart("2")] });
        CheckedChartset::new(serde_json::from_value(record).unwrap(), 1, 1).unwrap()
    }

    #[test]
    fn later_removals_are_left_out_and_earlier_ones_are_not() {
        let [one, two] = [0x11, 0x22].map(|byte| Entity::from(NoteHash::from_bytes([byte; 32])));
        let set = Entity::from(ChartsetId::from_bytes([0; 8]));
        for (removals, charts, is_left) in [
            (vec![], 2, true),
            // It was added again since.
            (vec![(one, 49), (set, 49)], 2, true),
            (vec![(one, 51)], 1, true),
            (vec![(one, 51), (two, 52)], 0, false),
            (vec![(set, 51)], 2, false),
        ] {
            let mut chartset = chartset();
            let left = chartset.leave_out(&removals.iter().copied().collect(), 50);
            assert_eq!((chartset.chartset.draft.charts.len(), left), (charts, is_left), "{removals:?}");
            assert_eq!(chartset.rox_bytes.len(), charts);
        }
    }
}
