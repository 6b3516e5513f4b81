//! Hash filters, read by the example of docs/snippets.
#![expect(dead_code, clippy::cast_possible_truncation, reason = "an example for programs of others")]

include!("../../../docs/snippets/hash_filter.rs");

use std::collections::BTreeSet;

use crate::model::{CHARTS, Chart};
use crate::names::Names;

/// The charts of a history that a filter contains, some of them perhaps by chance. An error if it is none.
pub(crate) fn charts_in(bytes: &[u8], names: &Names) -> Result<BTreeSet<Chart>, &'static str> {
    let filter = HashFilter::new(bytes).ok_or("no hash filter of version 1")?;
    Ok((0..CHARTS).filter(|chart| filter.may_contain(names.hash(*chart)) == Some(true)).collect())
}
