//! The clients of a history: random requests to the replicas, through HAProxy and the edge, page walks, clients
//! that exceed their limit, and what they received.

mod limited;
mod observed;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chart_index_tests::{Client, Random, Response};
use reqwest::{Method, StatusCode};

use crate::bucket::Bucket;
use crate::model::{CHARTS, Chart, Moment, REPLACED_CHARTS, SETS, Set, UNTOUCHED_CHARTS, UNTOUCHED_SETS};
use crate::names::{self, Names};

pub(crate) use self::limited::LimitedRequest;
pub(crate) use self::observed::Observation;

/// Index of a replica, HAProxy, or the edge in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    Replica(usize),
    Haproxy,
    Edge,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Request {
    Lookup(Chart),
    /// A lookup with variants.
    Variants(Chart),
    Rox(Chart),
    Preview(Chart),
    /// The path in the bucket to which the target has redirected a request for the ROX file.
    Object(Chart, String),
    Detail(Set),
    Redirect(Set),
    List(Query),
    Batch(Vec<Chart>),
    /// The redirect to the last one.
    HashFilter,
    /// The path to which that redirects.
    HashFilterFile(String),
    ChartPage(Chart),
    SetPage(Set),
    ListPage,
    Feed,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Query {
    pub(crate) filter: Filter,
    pub(crate) sort: Sort,
    pub(crate) page: usize,
    pub(crate) per_page: usize,
    /// A cursor instead of the page number.
    pub(crate) after: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Filter {
    All,
    Keys(u32),
    BpmMin(u32),
    LengthMax(u32),
    Word(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    Updated,
    Title,
    Bpm,
    Length,
}

/// A request and what came back.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) target: Target,
    pub(crate) request: Request,
    pub(crate) start: Moment,
    pub(crate) end: Moment,
    pub(crate) response: Result<Response, String>,
}

/// All pages of a list, one after the other.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) target: Target,
    /// The last page.
    pub(crate) query: Query,
    pub(crate) start: Moment,
    pub(crate) end: Moment,
    /// The ids of the items of all pages.
    pub(crate) ids: Vec<String>,
}

impl Walk {
    /// Whether a client requested one of the pages, during the walk and from the same replica.
    pub(crate) fn includes(&self, exchange: &Exchange) -> bool {
        let Request::List(query) = &exchange.request else { return false };
        let last = Query { page: self.query.page, after: self.query.after.clone(), ..query.clone() };
        let is_during = self.start <= exchange.start && exchange.end <= self.end;
        exchange.target == self.target && is_during && last == self.query
    }
}

/// What all clients record.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) exchanges: Vec<Exchange>,
    pub(crate) walks: Vec<Walk>,
    pub(crate) limited: Vec<LimitedRequest>,
    /// In the order of the requests.
    pub(crate) observations: Vec<Observation>,
}

/// What the clients share.
#[derive(Debug)]
pub(crate) struct Clients {
    start: Instant,
    names: Arc<Names>,
    replicas: Vec<Client>,
    /// Of the private listeners of the replicas.
    admin: Vec<Client>,
    /// Of HAProxy and of the edge. Each has an address of its own.
    proxied: Vec<Client>,
    edge: Vec<Client>,
    bucket: Client,
    recorded: Mutex<Recorded>,
    stopped: AtomicBool,
}

/// The replicas that share Redis.
pub(crate) const WITH_REDIS: [usize; 2] = [0, 1];
/// Concurrent readers.
const READERS: u64 = 6;
/// Clients of HAProxy, and of the edge.
const PROXIED_CLIENTS: u32 = 32;
/// Longer than any deadline of the service or of HAProxy: a request that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(30);

impl Request {
    fn path(&self, names: &Names) -> String {
        match self {
            Self::Lookup(chart) => format!("/api/charts/{}", names.hash(*chart)),
            Self::Variants(chart) => format!("/api/charts/{}?include=variants", names.hash(*chart)),
            Self::Rox(chart) => format!("/api/charts/{}/rox", names.hash(*chart)),
            Self::Preview(chart) => format!("/api/charts/{}/preview", names.hash(*chart)),
            Self::Detail(set) => format!("/api/chartsets/{}", names.id(*set)),
            Self::Redirect(set) => format!("/go/chartset/{}", names.id(*set)),
            Self::List(query) => query.path(),
            Self::Batch(_) => "/api/charts/lookup".to_owned(),
            Self::HashFilter => "/api/charts/filter".to_owned(),
            Self::HashFilterFile(path) | Self::Object(_, path) => path.clone(),
            Self::ChartPage(chart) => format!("/charts/{}", names.hash(*chart)),
            Self::SetPage(set) => format!("/chartsets/{}", names.id(*set)),
            Self::ListPage => "/".to_owned(),
            Self::Feed => "/feed.atom".to_owned(),
        }
    }

    /// Whether responses are cached, so that they are served while PostgreSQL is unavailable.
    pub(crate) const fn is_cached(&self) -> bool {
        !matches!(self, Self::Batch(_) | Self::HashFilter | Self::HashFilterFile(_))
    }

    /// Whether a replica reads ROX files or previews for it.
    pub(crate) const fn is_file(&self) -> bool {
        matches!(self, Self::Rox(_) | Self::Preview(_) | Self::Variants(_) | Self::ChartPage(_))
    }

    /// Whether Meilisearch may answer it.
    pub(crate) const fn is_search(&self) -> bool {
        matches!(self, Self::List(_) | Self::ListPage | Self::Feed)
    }

    fn random(random: &mut Random) -> Self {
        // A few entries are requested often.
        let few = random.one_in(2);
        let chart = if few {
            *random.pick(&[0, 1, UNTOUCHED_CHARTS.start, REPLACED_CHARTS.start])
        } else {
            random.below(CHARTS)
        };
        let set = if few { *random.pick(&[0, 1, UNTOUCHED_SETS.start]) } else { random.below(SETS) };
        match random.below(20) {
            0..=3 => Self::Lookup(chart),
            4 => Self::Variants(chart),
            5 | 6 => Self::Rox(chart),
            7 => Self::Preview(chart),
            8..=10 => Self::Detail(set),
            11 => Self::Redirect(set),
            12..=14 => Self::List(Query::random(random, 60)),
            15 => Self::Batch((0..10).map(|_| random.below(CHARTS)).collect()),
            16 => Self::ChartPage(chart),
            17 => Self::SetPage(set),
            18 => Self::ListPage,
            _ if few => Self::HashFilter,
            _ => Self::Feed,
        }
    }
}

impl Query {
    fn random(random: &mut Random, per_page: usize) -> Self {
        let filter = match random.below(5) {
            0 => Filter::All,
            1 => Filter::Keys(4 + random.below(4)),
            2 => Filter::BpmMin(100 + 10 * random.below(4)),
            3 => Filter::LengthMax(70 + 10 * random.below(3)),
            _ => Filter::Word(names::word(random.below(SETS))),
        };
        let sort = *random.pick(&[Sort::Updated, Sort::Title, Sort::Bpm, Sort::Length]);
        Self { filter, sort, page: 1, per_page, after: None }
    }

    fn path(&self) -> String {
        let Self { filter, sort, page, per_page, after } = self;
        let filter = match filter {
            Filter::All => String::new(),
            Filter::Keys(keys) => format!("keys={keys}&"),
            Filter::BpmMin(bpm) => format!("bpmMin={bpm}&"),
            Filter::LengthMax(seconds) => format!("lengthMax={seconds}&"),
            Filter::Word(word) => format!("q={word}&"),
        };
        let sort = match sort {
            Sort::Updated => "updated",
            Sort::Title => "title",
            Sort::Bpm => "bpm",
            Sort::Length => "length",
        };
        let page = match after {
            Some(after) => format!("after={after}"),
            None => format!("page={page}"),
        };
        format!("/api/chartsets?{filter}sort={sort}&{page}&perPage={per_page}")
    }
}

impl Clients {
    pub(crate) fn new(
        start: Instant,
        names: Arc<Names>,
        replicas: &[SocketAddr],
        [haproxy, edge, bucket]: [SocketAddr; 3],
    ) -> Arc<Self> {
        let clients = |network, address| -> Vec<Client> {
            let first = Ipv4Addr::new(198, 18, network, 1).to_bits();
            let addresses = (0..PROXIED_CLIENTS).map(|number| Ipv4Addr::from_bits(first + number));
            addresses.map(|local| Client::with_local_address(address, local)).collect()
        };
        Arc::new(Self {
            start,
            names,
            replicas: replicas.iter().map(|address| Client::new(*address)).collect(),
            admin: replicas.iter().map(|address| Client::new((address.ip(), 9090).into())).collect(),
            proxied: clients(0, haproxy),
            edge: clients(1, edge),
            bucket: Client::new(bucket),
            recorded: Mutex::default(),
            stopped: AtomicBool::new(false),
        })
    }

    /// Starts all clients. They end after [`stop`](Self::stop).
    pub(crate) fn spawn(self: &Arc<Self>, seed: u64) -> Vec<tokio::task::JoinHandle<()>> {
        let mut tasks: Vec<_> = (0..READERS)
            .map(|number| tokio::spawn(Arc::clone(self).read(Random::new(seed.wrapping_mul(31) + number))))
            .collect();
        tasks.push(tokio::spawn(Arc::clone(self).walk(Random::new(seed ^ 0x77))));
        for (client, replicas) in [(0, WITH_REDIS), (1, [2, 2])] {
            tasks.push(tokio::spawn(Arc::clone(self).exceed_limit(replicas, client)));
        }
        tasks.push(tokio::spawn(Arc::clone(self).exceed_limit_in_bursts()));
        tasks.push(tokio::spawn(Arc::clone(self).observe_until_stopped()));
        tasks
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn recorded(&self) -> std::sync::MutexGuard<'_, Recorded> {
        self.recorded.lock().expect("no client panicked")
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    async fn read(self: Arc<Self>, mut random: Random) {
        while !self.is_stopped() {
            let request = Request::random(&mut random);
            let target = match random.below(6) {
                replica @ 0..=2 => Target::Replica(replica as usize),
                3 => Target::Edge,
                _ => Target::Haproxy,
            };
            let response = self.send(target, request.clone(), &mut random).await;
            let redirect = response.filter(|response| response.status == StatusCode::FOUND);
            let location = redirect.map(|redirect| redirect.header("location").to_owned());
            let next = match (request, location) {
                (Request::HashFilter, Some(path)) => Some(Request::HashFilterFile(path)),
                // The edge may have an earlier redirect.
                (Request::Rox(chart), Some(address)) if target != Target::Edge => {
                    let start = address.find(Bucket::PATH).unwrap_or_default();
                    Some(Request::Object(chart, address[start..].to_owned()))
                }
                _ => None,
            };
            if let Some(request) = next {
                self.send(target, request, &mut random).await;
            }
            tokio::time::sleep(Duration::from_millis((10 + random.below(60)).into())).await;
        }
    }

    async fn walk(self: Arc<Self>, mut random: Random) {
        while !self.is_stopped() {
            let mut query = Query::random(&mut random, 3);
            query.sort = *random.pick(&[Sort::Title, Sort::Bpm, Sort::Length]);
            query.after = random.one_in(2).then(|| "start".to_owned());
            let target = Target::Replica(random.below(3) as usize);
            let (start, mut ids) = (self.start.elapsed(), Vec::new());
            let is_complete = loop {
                let response = self.send(target, Request::List(query.clone()), &mut random).await;
                let Some(response @ Response { status: StatusCode::OK, .. }) = response else { break false };
                let page = response.json();
                let items = page["items"].as_array().map(Vec::as_slice).unwrap_or_default();
                ids.extend(items.iter().filter_map(|item| item["id"].as_str()).map(str::to_owned));
                let next = page["nextAfter"].as_str().map(str::to_owned);
                let is_last = if query.after.is_some() { next.is_none() } else { items.is_empty() };
                // A walk that does not end is complete as well: its sets are more than there are.
                if is_last || query.page > SETS as usize {
                    break true;
                }
                query.page += 1;
                query.after = next;
            };
            if is_complete {
                let walk = Walk { target, query, start, end: self.start.elapsed(), ids };
                self.recorded().walks.push(walk);
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// Sends a request and records it. Returns the response, if there is one.
    async fn send(&self, target: Target, request: Request, random: &mut Random) -> Option<Response> {
        let client = match target {
            _ if matches!(request, Request::Object(..)) => &self.bucket,
            Target::Replica(replica) => &self.replicas[replica],
            Target::Haproxy => random.pick(&self.proxied),
            Target::Edge => random.pick(&self.edge),
        };
        let address = format!("10.{}.{}.1", random.below(16), random.below(256));
        let headers = [("x-forwarded-for", address.as_str()), ("content-type", "application/json")];
        let (start, path) = (self.start.elapsed(), request.path(&self.names));
        let response = tokio::time::timeout(TIMEOUT, async {
            match &request {
                Request::Batch(charts) => {
                    let hashes: Vec<_> = charts.iter().map(|chart| self.names.hash(*chart)).collect();
                    let body = serde_json::json!({ "hashes": hashes }).to_string();
                    client.try_send(Method::POST, &path, &headers, Some(body.into())).await
                }
                _ => client.try_request(Method::GET, &path, &headers[..1]).await,
            }
        });
        let response = match response.await {
            Ok(response) => response.map_err(|error| format!("{error:?}")),
            Err(_) => Err("timeout".to_owned()),
        };
        let end = self.start.elapsed();
        let received = response.as_ref().ok().cloned();
        self.recorded().exchanges.push(Exchange { target, request, start, end, response });
        received
    }
}
