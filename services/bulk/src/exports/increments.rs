//! The list of increments (docs/api.md, "Increments").

use chart_index_domain::ExportName;
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Increments)]
pub(crate) struct IncrementsBody {
    items: Vec<Increment>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Increment {
    name: ExportName,
    #[schema(minimum = 0)]
    since: u64,
    #[schema(minimum = 1)]
    sequence: u64,
}

impl IncrementsBody {
    /// Lists the increments among these exports, in the order of their sequences.
    pub(crate) fn new(names: impl Iterator<Item = ExportName>) -> Self {
        let increment = |name: ExportName| {
            let (since, sequence) = (name.since()?, name.sequence());
            Some(Increment { name, since, sequence })
        };
        let mut items: Vec<Increment> = names.filter_map(increment).collect();
        items.sort_unstable_by_key(|increment| (increment.sequence, increment.since));
        Self { items }
    }
}
