//! The lines of the output.

use std::io::Write;
use std::mem;

use anyhow::{Context, Result};
use chart_index_cli::escape_controls_in_json;
use chart_index_client::{ChartIndex, ChartKey, Hashed, Include, LocalChart};
use serde::Serialize;
use serde_json::Value;

/// How many charts wait for one lookup.
const MAX_CHARTS: usize = 1_000;

#[derive(Debug, Serialize)]
struct Line {
    #[serde(flatten)]
    found: Hashed,
    /// The body of the chart lookup, if an instance is asked. That of an unknown chart has the charts with its
    /// variant.
    #[serde(skip_serializing_if = "Option::is_none")]
    lookup: Option<Value>,
}

/// Writes lines: at once, or with what an instance knows of the charts. In that case the lines of up to
/// [`MAX_CHARTS`] charts wait for one request.
pub(super) struct Lines<'a, W> {
    output: &'a mut W,
    instance: Option<&'a ChartIndex>,
    waiting: Vec<Line>,
    /// The number of charts among the lines that wait.
    charts: usize,
}

impl<'a, W: Write> Lines<'a, W> {
    pub(super) fn new(output: &'a mut W, instance: Option<&'a ChartIndex>) -> Self {
        Self { output, instance, waiting: Vec::new(), charts: 0 }
    }

    pub(super) async fn write(&mut self, found: Hashed) -> Result<()> {
        self.charts += usize::from(matches!(found, Hashed::Chart(_)));
        self.waiting.push(Line { found, lookup: None });
        if self.instance.is_none() || self.charts == MAX_CHARTS { self.write_waiting().await } else { Ok(()) }
    }

    /// Writes the lines that wait, and flushes the output.
    pub(super) async fn finish(mut self) -> Result<()> {
        self.write_waiting().await?;
        self.output.flush().context("cannot write the output")
    }

    async fn write_waiting(&mut self) -> Result<()> {
        let mut lines = mem::take(&mut self.waiting);
        self.charts = 0;
        let looked_up = match self.instance {
            Some(instance) => look_up(instance, &mut lines).await,
            None => Ok(()),
        };
        for line in &lines {
            let line = serde_json::to_string(line)?;
            writeln!(self.output, "{}", escape_controls_in_json(&line)).context("cannot write the output")?;
        }
        if looked_up.is_err() {
            self.output.flush().context("cannot write the output")?;
        }
        looked_up
    }
}

/// Adds to lines what an instance knows of their charts: also what is known before an error.
async fn look_up(instance: &ChartIndex, lines: &mut [Line]) -> Result<()> {
    let mut charts: Vec<_> = lines.iter_mut().filter_map(Line::chart).collect();
    add_lookups(instance, &mut charts, &[], |chart| chart.hash.into()).await?;
    charts.retain(|(chart, lookup)| {
        chart.variant.is_some() && lookup.as_ref().is_some_and(|lookup| lookup["status"] == "unknown")
    });
    let key = |chart: &LocalChart| ChartKey::Hash { hash: chart.hash, variant: chart.variant };
    add_lookups(instance, &mut charts, &[Include::Variants], key).await
}

async fn add_lookups(
    instance: &ChartIndex,
    charts: &mut [(&LocalChart, &mut Option<Value>)],
    include: &[Include],
    key: impl Fn(&LocalChart) -> ChartKey,
) -> Result<()> {
    let keys: Vec<ChartKey> = charts.iter().map(|(chart, _)| key(chart)).collect();
    let mut found = Vec::with_capacity(keys.len());
    let looked_up = instance.lookup_into(&keys, include, &mut found).await;
    for ((_, lookup), item) in charts.iter_mut().zip(found) {
        **lookup = Some(item);
    }
    looked_up.with_context(|| format!("cannot look up at {}", instance.url("/api/charts/lookup")))
}

impl Line {
    fn chart(&mut self) -> Option<(&LocalChart, &mut Option<Value>)> {
        match &self.found {
            Hashed::Chart(chart) => Some((chart, &mut self.lookup)),
            Hashed::Refused(_) => None,
        }
    }
}
