//! What happened to the requests of a drill, in the phases of the drill.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use chart_index_system_tests::{Load, LoadOutcome, Sample};

/// A load, and the phases of the drill since its start.
pub(crate) struct Drill {
    load: Load,
    phases: Vec<Phase>,
}

/// A part of a drill: from an event to the next one.
struct Phase {
    name: String,
    start: Duration,
    /// When everything worked as before, counted from the start of the phase.
    recovered: Option<Duration>,
}

/// The requests of a drill by phase.
pub(crate) struct Report {
    outcome: LoadOutcome,
    phases: Vec<(Phase, Vec<Sample>)>,
}

impl Drill {
    /// Begins with an undisturbed phase.
    pub(crate) fn start(load: Load) -> Self {
        Self { load, phases: vec![Phase::new("before", Duration::ZERO)] }
    }

    /// Begins the next phase, which is named after its event.
    pub(crate) fn begin_phase(&mut self, name: impl Into<String>) {
        self.phases.push(Phase::new(name, self.load.elapsed()));
    }

    /// Records that everything works as before.
    pub(crate) fn record_recovery(&mut self) {
        let now = self.load.elapsed();
        if let Some(phase) = self.phases.last_mut() {
            phase.recovered = Some(now.saturating_sub(phase.start));
        }
    }

    /// Waits until this many further requests were sent.
    pub(crate) async fn wait_for_requests(&self, count: u64) {
        let end = self.started() + count;
        while self.started() < end {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The number of requests so far.
    pub(crate) fn started(&self) -> u64 {
        self.load.started()
    }

    /// Ends the load, and prints the table.
    pub(crate) fn finish(self, title: &str) -> Report {
        let mut outcome = self.load.stop();
        let mut samples = std::mem::take(&mut outcome.samples);
        samples.sort_unstable_by_key(|sample| sample.intended);
        let mut phases: Vec<_> = self.phases.into_iter().map(|phase| (phase, Vec::new())).collect();
        for sample in samples {
            let next = phases.partition_point(|(phase, _)| phase.start <= sample.intended);
            phases[next.saturating_sub(1)].1.push(sample);
        }
        let report = Report { outcome, phases };
        println!("{title}\n{report}");
        assert_eq!(report.outcome.not_sent, 0, "the clients have room for all requests");
        report
    }
}

impl Phase {
    fn new(name: impl Into<String>, start: Duration) -> Self {
        Self { name: name.into(), start, recovered: None }
    }
}

impl Report {
    /// The number of requests without a response of status 200, in phases whose names contain this.
    pub(crate) fn failed(&self, phase: &str) -> usize {
        self.samples(phase).filter(|sample| sample.status != Some(200)).count()
    }

    pub(crate) fn requests(&self) -> usize {
        self.samples("").count()
    }

    /// A quantile of the latencies in phases whose names contain this, in thousandths.
    pub(crate) fn latency(&self, phase: &str, thousandths: usize) -> Duration {
        quantile(self.samples(phase), thousandths)
    }

    fn samples(&self, phase: &str) -> impl Iterator<Item = &Sample> {
        let phases = self.phases.iter().filter(move |(Phase { name, .. }, _)| name.contains(phase));
        phases.flat_map(|(_, samples)| samples)
    }
}

fn quantile<'a>(samples: impl Iterator<Item = &'a Sample>, thousandths: usize) -> Duration {
    let mut latencies: Vec<_> = samples.map(|sample| sample.latency).collect();
    latencies.sort_unstable();
    let rank = (latencies.len() * thousandths).div_ceil(1000);
    latencies.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// All phases with the same name.
#[derive(Default)]
struct Row<'a> {
    phases: usize,
    samples: Vec<&'a Sample>,
    /// The longest time from the start of a phase to the end of its last failure.
    last_failed: Option<Duration>,
    /// The longest time until everything worked as before.
    recovered: Option<Duration>,
}

impl<'a> Row<'a> {
    fn add(&mut self, phase: &Phase, samples: &'a [Sample]) {
        let end = |sample: &Sample| (sample.intended + sample.latency).saturating_sub(phase.start);
        let last = samples.iter().filter(|sample| sample.status != Some(200)).map(end).max();
        self.phases += 1;
        self.samples.extend(samples);
        self.last_failed = self.last_failed.max(last);
        self.recovered = self.recovered.max(phase.recovered);
    }

    fn columns(&self) -> [String; 8] {
        let samples = || self.samples.iter().copied();
        let [p50, p99, max] =
            [500, 990, 1000].map(|thousandths| format!("{:.1?}", quantile(samples(), thousandths)));
        let (phases, requests) = (self.phases.to_string(), self.samples.len().to_string());
        let failed = kinds(samples().filter(|sample| sample.status != Some(200)));
        [phases, requests, failed, seconds(self.last_failed), seconds(self.recovered), p50, p99, max]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<(&str, Row<'_>)> = Vec::new();
        for (phase, samples) in &self.phases {
            let row = rows.iter().position(|(name, _)| *name == phase.name).unwrap_or_else(|| {
                rows.push((&phase.name, Row::default()));
                rows.len() - 1
            });
            rows[row].1.add(phase, samples);
        }
        let header = ["phases", "requests", "failed", "last failed", "recovered", "p50", "p99", "max"];
        write_row(f, "", &header.map(str::to_owned))?;
        rows.iter().try_for_each(|(name, row)| write_row(f, name, &row.columns()))?;
        self.outcome.examples.iter().try_for_each(|example| writeln!(f, "  {example}"))
    }
}

fn write_row(f: &mut fmt::Formatter<'_>, name: &str, columns: &[String; 8]) -> fmt::Result {
    write!(f, "{name:<24}")?;
    for (column, width) in columns.iter().zip([7, 9, 24, 12, 10, 9, 9, 9]) {
        write!(f, " {column:>width$}")?;
    }
    writeln!(f)
}

/// Failures by kind, such as `3 × 503, 1 × error`.
fn kinds<'a>(failed: impl Iterator<Item = &'a Sample>) -> String {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for sample in failed {
        let kind = sample.status.map_or("error".to_owned(), |status| status.to_string());
        *kinds.entry(kind).or_default() += 1;
    }
    if kinds.is_empty() {
        return "0".to_owned();
    }
    kinds.iter().map(|(kind, count)| format!("{count} × {kind}")).collect::<Vec<_>>().join(", ")
}

fn seconds(duration: Option<Duration>) -> String {
    duration.map_or("-".to_owned(), |duration| format!("{:.1} s", duration.as_secs_f64()))
}
