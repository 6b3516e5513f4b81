//! What an import leaves out, since it was erased here.

use std::collections::HashSet;

use anyhow::Result;
use chart_index_domain::{ChartsetId, Entity, ExportFile, NoteHash};
use chart_index_store::Removal;

use super::chartset_lines::{CheckedChartset, read_chartsets};
use super::export_files::Export;
use crate::clock::now_ms;

/// Erased charts and chartsets.
#[derive(Debug)]
pub(crate) struct Erased {
    pub(crate) charts: HashSet<NoteHash>,
    pub(crate) chartsets: HashSet<ChartsetId>,
}

impl Erased {
    pub(crate) fn new(removals: &[Removal]) -> Self {
        let (mut charts, mut chartsets) = (HashSet::new(), HashSet::new());
        for removal in removals.iter().filter(|removal| removal.erased) {
            match removal.entity {
                Entity::Chart(hash) => charts.insert(hash),
                Entity::Chartset(id) => chartsets.insert(id),
            };
        }
        Self { charts, chartsets }
    }

    /// Adds the charts of the erased chartsets that are in no other chartset of the export.
    ///
    /// # Errors
    /// The chartsets of the export are not valid.
    pub(super) fn with_lone_charts(mut self, export: &Export) -> Result<Self> {
        if self.chartsets.is_empty() {
            return Ok(self);
        }
        let mut lone = HashSet::new();
        self.read_charts(export, true, |hash| {
            lone.insert(hash);
        })?;
        self.read_charts(export, false, |hash| {
            lone.remove(&hash);
        })?;
        self.charts.extend(lone);
        Ok(self)
    }

    /// Reads the charts of all chartsets of the export that were erased, or that were not.
    fn read_charts(&self, export: &Export, erased: bool, mut read: impl FnMut(NoteHash)) -> Result<()> {
        let mut read_charts_of = |CheckedChartset { chartset, .. }: &CheckedChartset| {
            if self.chartsets.contains(&chartset.draft.id) == erased {
                chartset.draft.charts.iter().for_each(|chart| read(chart.hash));
            }
        };
        let file = export.open(ExportFile::Chartsets)?;
        read_chartsets(file, export.manifest().chartsets, now_ms(), |checked, _| {
            read_charts_of(&checked);
            true
        })
    }
}
