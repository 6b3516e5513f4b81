//! A mirror that follows the change feed through HAProxy.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chart_index_tests::Client;
use reqwest::Method;
use serde_json::Value;

use crate::model::{Chart, Moment, Set, Version};
use crate::names::{Names, versions_in};

/// Time between the last page and the next request, and after an error.
const PAUSE: Duration = Duration::from_millis(200);
/// Within which the end of the feed is reached.
const END_TIMEOUT: Duration = Duration::from_mins(1);
/// Changes in a page.
const LIMIT: u32 = 20;

/// What a mirror has stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Mirror {
    next: u64,
    pub(crate) charts: BTreeSet<String>,
    /// The records by the id of the chartset.
    pub(crate) chartsets: BTreeMap<String, Value>,
}

/// A mirror that had reached the end of the feed.
#[derive(Debug)]
pub(crate) struct MirrorState {
    /// When the last page was requested and received.
    pub(crate) start: Moment,
    pub(crate) end: Moment,
    pub(crate) charts: BTreeSet<Chart>,
    pub(crate) sets: Records,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    More,
    End,
    /// Changes were lost: the mirror started again.
    Lost,
    Unavailable,
}

impl Mirror {
    /// Requests and applies a page. An error names what violates docs/formats/change-feed.md.
    pub(crate) async fn step(&mut self, client: &Client) -> Result<Step, String> {
        let after = self.next;
        let path = format!("/api/changes?after={after}&limit={LIMIT}");
        let Ok(response) = client.try_request(Method::GET, &path, &[]).await else {
            return Ok(Step::Unavailable);
        };
        match response.status.as_u16() {
            200 => (),
            410 => {
                *self = Self::default();
                return Ok(Step::Lost);
            }
            429 | 500..=599 => return Ok(Step::Unavailable),
            status => return Err(format!("{status} for {path}")),
        }
        let page = response.json();
        for item in page["items"].as_array().ok_or("no items")? {
            if item["sequence"].as_u64() <= Some(after) {
                return Err(format!("a sequence of at most {after}: {item}"));
            }
            self.apply(item)?;
        }
        self.next = page["next"].as_u64().ok_or("no next")?;
        let has_more = page["hasMore"] == true;
        if has_more && self.next == after {
            return Err(format!("an empty page after {after} that is not the last one"));
        }
        Ok(if has_more { Step::More } else { Step::End })
    }

    fn apply(&mut self, item: &Value) -> Result<(), String> {
        let text = |field: &str| item[field].as_str().map(str::to_owned).ok_or(format!("no {field}: {item}"));
        let is_removed = text("change")? == "removed";
        match (text("kind")?.as_str(), is_removed) {
            ("chart", false) => drop(self.charts.insert(text("chartHash")?)),
            ("chart", true) => drop(self.charts.remove(&text("chartHash")?)),
            (_, false) => drop(self.chartsets.insert(text("id")?, item["chartset"].clone())),
            (_, true) => drop(self.chartsets.remove(&text("id")?)),
        }
        Ok(())
    }

    /// Follows to the end of the feed, which no fault hides any more.
    pub(crate) async fn follow_to_end(&mut self, client: &Client) -> Result<(), String> {
        let start = Instant::now();
        loop {
            let step = self.step(client).await?;
            if step == Step::End {
                return Ok(());
            }
            if start.elapsed() > END_TIMEOUT {
                return Err(format!("no end of the feed after {END_TIMEOUT:?}, but {step:?}"));
            }
        }
    }

    fn state(&self, start: Moment, end: Moment, names: &Names) -> Result<MirrorState, String> {
        let charts = self.charts.iter().map(|hash| names.chart(hash).ok_or(format!("unknown chart {hash}")));
        Ok(MirrorState {
            start,
            end,
            charts: charts.collect::<Result<_, _>>()?,
            sets: contents(&self.chartsets, names)?,
        })
    }
}

/// What a mirror recorded.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    pub(crate) mirror: Mirror,
    /// Its states at the ends of the feed.
    pub(crate) states: Vec<MirrorState>,
    /// How often it had to start again.
    pub(crate) lost: usize,
    pub(crate) violations: Vec<String>,
}

/// Follows until it is stopped.
pub(crate) async fn follow(
    client: Client,
    names: Arc<Names>,
    start: Instant,
    stopped: Arc<AtomicBool>,
) -> Followed {
    let mut followed = Followed::default();
    while !stopped.load(Ordering::Relaxed) {
        let requested = start.elapsed();
        match followed.mirror.step(&client).await {
            Ok(Step::More) => continue,
            Ok(Step::Lost) => followed.lost += 1,
            Ok(Step::End) => match followed.mirror.state(requested, start.elapsed(), &names) {
                Ok(state) => followed.states.push(state),
                Err(violation) => followed.violations.push(violation),
            },
            Ok(Step::Unavailable) => (),
            Err(violation) => followed.violations.push(violation),
        }
        tokio::time::sleep(PAUSE).await;
    }
    followed
}

/// The version and the charts of each chartset.
pub(crate) type Records = BTreeMap<Set, (Version, Vec<Chart>)>;

/// The version and the charts of a record or a detail, whose charts all have the title of the version.
pub(crate) fn content(record: &Value, set: Set, names: &Names) -> Result<(Version, Vec<Chart>), String> {
    let charts = record["charts"].as_array().ok_or_else(|| format!("no charts: {record}"))?;
    let mut versions = BTreeSet::new();
    let mut found = Vec::new();
    for chart in charts {
        // A record has the fields of the chart next to others, a detail in an object of their own.
        let chart = if chart["chart"].is_object() { &chart["chart"] } else { chart };
        let title = format!(" {}", chart["title"].as_str().unwrap_or_default());
        versions.extend(versions_in(&title));
        let hash = chart["hash"].as_str().unwrap_or_default();
        found.push(names.chart(hash).ok_or(format!("unknown chart {hash}"))?);
    }
    found.sort_unstable();
    // Those of a large chartset are one in the model.
    found.dedup();
    match versions.iter().collect::<Vec<_>>()[..] {
        [&(of, version)] if of == set => Ok((version, found)),
        _ => Err(format!("set {set} has the versions {versions:?}: {record}")),
    }
}

/// The records of an export by the id of the chartset, as a mirror stores them.
pub(crate) fn chartsets_of_export(folder: &Path) -> BTreeMap<String, Value> {
    let file = File::open(folder.join("chartsets.ndjson.zst")).expect("chartsets");
    let lines = String::from_utf8(zstd::decode_all(file).expect("a zstd frame")).expect("UTF-8");
    let records = lines.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).expect("an object");
        let record = line["chartset"].take();
        (record["id"].as_str().expect("an id").to_owned(), record)
    });
    records.collect()
}

/// What they contain. An error if one is of no version of its chartset.
pub(crate) fn contents(chartsets: &BTreeMap<String, Value>, names: &Names) -> Result<Records, String> {
    let contents = chartsets.iter().map(|(id, record)| {
        let set = names.set(id).ok_or_else(|| format!("unknown set {id}"))?;
        Ok((set, content(record, set, names)?))
    });
    contents.collect()
}
