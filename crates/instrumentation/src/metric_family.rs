//! The series of a metric, and its kinds.

use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{CounterVec, GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

/// A count of events: it only grows.
pub(crate) type Counter = IntCounterVec;
/// A sum of seconds that only grows, read at a scrape.
pub(crate) type SecondsCounter = CounterVec;
/// A value that is read at a scrape.
pub(crate) type Gauge = GaugeVec;
/// A distribution of durations, in seconds.
pub(crate) type Histogram = HistogramVec;

/// A row of the table of metrics.
#[derive(Debug, Clone, Copy)]
pub struct MetricRow {
    /// The heading of docs/operations/metrics.md that it is listed under.
    pub section: &'static str,
    /// The name in Prometheus, which ends with the unit, and with `_total` if it is a counter.
    pub name: &'static str,
    /// The kind in Prometheus.
    pub kind: &'static str,
    /// The names of the labels.
    pub labels: &'static [&'static str],
    /// The upper bounds of the buckets of a histogram.
    pub buckets: &'static [f64],
    /// The text of `# HELP`.
    pub help: &'static str,
}

/// The series of a metric, by the values of its labels. A label with the value `""` is absent.
#[derive(Debug)]
pub struct Family<K, const LABELS: usize>(K);

/// A kind of metric.
pub trait Kind: Collector + Clone + Sized + 'static {
    /// The name of the kind in Prometheus.
    const NAME: &str;
    /// What records a value of one set of labels.
    type Series;

    /// The metric of a row, without series.
    ///
    /// # Errors
    ///
    /// A name is invalid.
    fn new(row: &MetricRow) -> prometheus::Result<Self>;

    /// The series with these values.
    fn series(&self, values: &[&str]) -> Self::Series;

    /// Removes all series.
    fn clear(&self);
}

macro_rules! kind {
    ($kind:ty, $name:literal, $series:ty, $row:ident => $options:expr) => {
        impl Kind for $kind {
            const NAME: &str = $name;
            type Series = $series;

            fn new($row: &MetricRow) -> prometheus::Result<Self> {
                Self::new($options, $row.labels)
            }

            fn series(&self, values: &[&str]) -> Self::Series {
                self.with_label_values(values)
            }

            fn clear(&self) {
                self.reset();
            }
        }
    };
}

kind!(Counter, "counter", prometheus::IntCounter, row => Opts::new(row.name, row.help));
kind!(SecondsCounter, "counter", prometheus::Counter, row => Opts::new(row.name, row.help));
kind!(Gauge, "gauge", prometheus::Gauge, row => Opts::new(row.name, row.help));
kind!(Histogram, "histogram", prometheus::Histogram, row => {
    HistogramOpts::new(row.name, row.help).buckets(row.buckets.to_vec())
});

impl<K: Kind, const LABELS: usize> Family<K, LABELS> {
    #[expect(clippy::expect_used, reason = "names and labels are constants")]
    pub(crate) fn new(registry: &Registry, row: &MetricRow) -> Self {
        let family = <K as Kind>::new(row).expect("names are valid");
        registry.register(Box::new(family.clone())).expect("names are unique");
        Self(family)
    }

    /// The series with these values of the labels, in the order of the table. It exists from now on: a counter
    /// that is exported before the first event has a rate that includes it.
    pub fn with(&self, values: [&str; LABELS]) -> K::Series {
        self.0.series(&values)
    }

    pub(crate) fn clear(&self) {
        self.0.clear();
    }
}

impl<const LABELS: usize> Family<Counter, LABELS> {
    /// Sets a counter that is kept elsewhere, at a scrape.
    pub fn set(&self, values: [&str; LABELS], count: u64) {
        let counter = self.with(values);
        counter.reset();
        counter.inc_by(count);
    }
}

impl<const LABELS: usize> Family<SecondsCounter, LABELS> {
    /// Sets a counter that is kept elsewhere, at a scrape.
    pub fn set(&self, values: [&str; LABELS], seconds: f64) {
        let counter = self.with(values);
        counter.reset();
        counter.inc_by(seconds);
    }
}

impl<const LABELS: usize> Family<Gauge, LABELS> {
    /// Sets a value, at a scrape.
    pub fn set(&self, values: [&str; LABELS], value: impl GaugeValue) {
        self.with(values).set(value.into_f64());
    }

    /// Sets a value if it is known.
    pub fn set_known(&self, values: [&str; LABELS], value: Option<impl GaugeValue>) {
        if let Some(value) = value {
            self.set(values, value);
        }
    }
}

/// What a gauge can be set to.
pub trait GaugeValue {
    /// The value; 1 for true, seconds for a duration.
    fn into_f64(self) -> f64;
}

macro_rules! gauge_value {
    ($($number:ty: $value:ident => $float:expr;)+) => {
        $(impl GaugeValue for $number {
            fn into_f64(self) -> f64 {
                let $value = self;
                $float
            }
        })+
    };
}

gauge_value! {
    f64: value => value;
    bool: value => value.into();
    u32: value => value.into();
    u64: value => exact(value);
    usize: value => exact(value as u64);
    Duration: value => value.as_secs_f64();
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
const fn exact(count: u64) -> f64 {
    count as f64
}
