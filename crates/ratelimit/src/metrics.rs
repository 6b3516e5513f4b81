//! Counts decisions (docs/operations/metrics.md).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chart_index_instrumentation::{Metrics, metrics};
use strum::{IntoStaticStr, VariantArray};

use crate::{Decision, Group};

/// Where a decision comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub(crate) enum Decider {
    Redis,
    /// A cached refusal.
    Memory,
    Local,
}

/// The number of decisions since the start, by group, decider and whether the request was admitted.
///
/// Of this limiter, while the metric is that of the process.
#[derive(Debug, Default)]
pub(crate) struct DecisionCounters([[[AtomicU64; 2]; Decider::VARIANTS.len()]; Group::ALL.len()]);

impl DecisionCounters {
    /// Counters that the metrics report for as long as they exist.
    pub(crate) fn new() -> Arc<Self> {
        let this = Arc::new(Self::default());
        metrics().observe(&this, Self::report);
        this
    }

    pub(crate) fn count(&self, group: Group, decider: Decider, decision: &Decision) {
        self.counter(group, decider, decision.is_ok()).fetch_add(1, Ordering::Relaxed);
    }

    /// The number of decisions of a decider.
    pub(crate) fn decided_by(&self, decider: Decider) -> u64 {
        let admitted_and_refused = |group| self.get(group, decider, true) + self.get(group, decider, false);
        Group::ALL.iter().copied().map(admitted_and_refused).sum()
    }

    fn get(&self, group: Group, decider: Decider, is_admitted: bool) -> u64 {
        self.counter(group, decider, is_admitted).load(Ordering::Relaxed)
    }

    const fn counter(&self, group: Group, decider: Decider, is_admitted: bool) -> &AtomicU64 {
        &self.0[group as usize][decider as usize][is_admitted as usize]
    }

    fn report(&self, metrics: &Metrics) {
        for &group in Group::ALL {
            for &decider in Decider::VARIANTS {
                for (is_admitted, decision) in [(true, "admitted"), (false, "refused")] {
                    // Only refusals are cached.
                    if decider == Decider::Memory && is_admitted {
                        continue;
                    }
                    let labels = [group.as_str(), decision, decider.into_str()];
                    let count = self.get(group, decider, is_admitted);
                    metrics.chart_index_ratelimit_decisions_total.set(labels, count);
                }
            }
        }
    }
}
