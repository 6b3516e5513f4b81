//! Reads charts with the extension fields that a request includes.

use std::collections::HashMap;

use chart_index_cache::CacheKey;
use chart_index_domain::{NoteHash, ReadError};
use chart_index_http::{FieldGroup, Include};
use chart_index_store::{ChartVariants, KnownChart, VariantRequest};

use crate::LookupState;

/// The key of a lookup without variants.
pub(crate) fn key(state: &LookupState, hash: NoteHash, include: Include) -> CacheKey {
    include.key(CacheKey::lookup(hash), &state.source_pages)
}

/// The chart with this hash, if it is known.
pub(crate) async fn read_chart(
    state: &LookupState,
    hash: NoteHash,
    include: Include,
) -> Result<Option<KnownChart>, ReadError> {
    if include.has(FieldGroup::Chartsets) {
        return Ok(read_charts(state, &[hash], include).await?.remove(&hash));
    }
    let mut known = state.store.chart(hash).await?;
    if let Some(known) = &mut known {
        set_fields(state, known, include);
    }
    Ok(known)
}

/// The charts with these hashes that are known.
pub(crate) async fn read_charts(
    state: &LookupState,
    hashes: &[NoteHash],
    include: Include,
) -> Result<HashMap<NoteHash, KnownChart>, ReadError> {
    let mut known = if include.has(FieldGroup::Chartsets) {
        state.store.charts_with_chartsets(hashes).await?
    } else {
        state.store.charts(hashes).await?
    };
    for known in known.values_mut() {
        set_fields(state, known, include);
    }
    Ok(known)
}

/// The charts of these requests, and those with one of their variants.
pub(crate) async fn read_variants(
    state: &LookupState,
    requests: &[VariantRequest],
    include: Include,
) -> Result<Vec<ChartVariants>, ReadError> {
    let mut found = state.store.chart_variants(requests).await?;
    if include.has(FieldGroup::Chartsets) {
        let hashes: Vec<NoteHash> = charts_of(&mut found).map(|known| known.chart.hash).collect();
        let with_chartsets = state.store.charts_with_chartsets(&hashes).await?;
        for known in charts_of(&mut found) {
            // Without any if the chart was removed since.
            let chartsets = with_chartsets.get(&known.chart.hash).map(|chart| chart.chartsets.clone());
            known.chartsets = chartsets.unwrap_or_default();
        }
    }
    for known in charts_of(&mut found) {
        set_fields(state, known, include);
    }
    Ok(found)
}

fn charts_of(found: &mut [ChartVariants]) -> impl Iterator<Item = &mut KnownChart> {
    found.iter_mut().flat_map(|found| {
        found.known.iter_mut().chain(found.items.iter_mut().map(|variant| &mut variant.known))
    })
}

/// Removes the extension fields that are not requested, and adds links if they are.
fn set_fields(state: &LookupState, known: &mut KnownChart, include: Include) {
    include.retain(&mut known.chart);
    if include.has(FieldGroup::Links) {
        state.source_pages.link(&mut known.sources);
    }
}
