//! Hash filters, read by the Rust client.

use std::collections::BTreeSet;

use chart_index_client::{HashFilter, InvalidHashFilter};

use crate::model::{CHARTS, Chart};
use crate::names::Names;

/// The charts of a history that a filter contains, some of them perhaps by chance. An error if it is none.
pub(crate) fn charts_in(bytes: &[u8], names: &Names) -> Result<BTreeSet<Chart>, InvalidHashFilter> {
    let filter = HashFilter::from_bytes(bytes)?;
    let contains = |chart: &Chart| names.hash(*chart).parse().is_ok_and(|hash| filter.may_contain(hash));
    Ok((0..CHARTS).filter(contains).collect())
}
