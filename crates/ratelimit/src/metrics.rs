//! Counts decisions (docs/operations/metrics.md).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chart_index_instrumentation::meter;
use opentelemetry::KeyValue;
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
/// An array of this crate: a bound counter costs one addition per exporter, and tests read the array.
#[derive(Debug, Default)]
pub(crate) struct DecisionCounters([[[AtomicU64; 2]; Decider::VARIANTS.len()]; Group::ALL.len()]);

impl DecisionCounters {
    /// Counters that `chart_index.ratelimit.decisions` reports for as long as they exist.
    pub(crate) fn new() -> Arc<Self> {
        let this = Arc::new(Self::default());
        let (counters, series) = (Arc::downgrade(&this), series());
        meter()
            .u64_observable_counter("chart_index.ratelimit.decisions")
            .with_unit("{decision}")
            .with_description("Requests that were admitted or refused")
            .with_callback(move |observer| {
                let Some(counters) = counters.upgrade() else { return };
                for (group, decider, is_admitted, labels) in &series {
                    observer.observe(counters.get(*group, *decider, *is_admitted), labels);
                }
            })
            .build();
        this
    }

    pub(crate) fn count(&self, group: Group, decider: Decider, decision: &Decision) {
        self.counter(group, decider, decision.is_ok()).fetch_add(1, Ordering::Relaxed);
    }

    /// The number of decisions of a decider.
    pub(crate) fn decided_by(&self, decider: Decider) -> u64 {
        let admitted_and_refused = |group| self.get(group, decider, true) + self.get(group, decider, false);
        Group::ALL.into_iter().map(admitted_and_refused).sum()
    }

    fn get(&self, group: Group, decider: Decider, is_admitted: bool) -> u64 {
        self.counter(group, decider, is_admitted).load(Ordering::Relaxed)
    }

    const fn counter(&self, group: Group, decider: Decider, is_admitted: bool) -> &AtomicU64 {
        &self.0[group as usize][decider as usize][is_admitted as usize]
    }
}

/// All series with their labels.
fn series() -> Vec<(Group, Decider, bool, [KeyValue; 3])> {
    let mut series = Vec::new();
    for group in Group::ALL {
        for &decider in Decider::VARIANTS {
            for (is_admitted, decision) in [(true, "admitted"), (false, "refused")] {
                // Only refusals are cached.
                if decider == Decider::Memory && is_admitted {
                    continue;
                }
                let labels = [
                    KeyValue::new("chart_index.group", group.as_str()),
                    KeyValue::new("chart_index.decision", decision),
                    KeyValue::new("chart_index.decider", decider.into_str()),
                ];
                series.push((group, decider, is_admitted, labels));
            }
        }
    }
    series
}
