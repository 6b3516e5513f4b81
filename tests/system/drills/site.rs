//! The site of a drill: the services of docker-compose.yml, with a catalogue.

use std::cell::Cell;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use chart_index_system_tests::{ComposeProject, OpenLoop, Senders};
use chart_index_tests::{ChartSpec, Client, Library, Response, paths_of_all_kinds, within};
use reqwest::Method;

/// The charts of a site, each in a chartset of its own.
const CHARTS: u32 = 40;

/// The title of a chart that the load does not request.
const REMOVABLE: &str = "Removable";

/// The clients of a load. The limits of each are those of the compose file.
const CLIENTS: u16 = 64;

pub(crate) const REPLICAS: [&str; 2] = ["replica-1", "replica-2"];

/// The services of a site without search.
pub(crate) const SERVICES: [&str; 7] =
    ["postgres", "redis", "migrate", "ingest", "replica-1", "replica-2", "haproxy"];

/// The public port of HAProxy and of the replicas.
const PORT: u16 = 8080;

const PRIVATE_PORT: u16 = 9090;

/// Maximum requests of each kind per client per 60 s.
pub(crate) const LIMIT: usize = 240;

/// What two replicas admit of one client if they do not share its limit: HAProxy divides its requests about
/// equally.
pub(crate) const UNSHARED: RangeInclusive<usize> = LIMIT + 1..=2 * LIMIT;

/// Refusals in a row after which no replica admits a client.
const REFUSALS: usize = 20;

/// Maximum time until programs detect a change. No drill that passes reaches it.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

/// A running compose project with a catalogue.
pub(crate) struct Site {
    pub(crate) project: ComposeProject,
    /// A chart that the load does not request.
    pub(crate) removable: String,
    hashes: Vec<String>,
    chartsets: Vec<String>,
    /// The number of clients so far that asked a replica.
    clients: Cell<u16>,
}

/// Runs a drill on a site without search.
pub(crate) fn run(drill: impl AsyncFnOnce(Site) + Send) {
    run_with(&[], drill);
}

/// Runs a drill on a site with these services in addition.
pub(crate) fn run_with(services: &[&str], drill: impl AsyncFnOnce(Site) + Send) {
    run_started(&[&SERVICES[..], services].concat(), async |project| project.up().await, drill);
}

/// Runs a drill on a project with these services after this start.
pub(crate) fn run_started(
    services: &[&str],
    start: impl AsyncFnOnce(&ComposeProject) + Send,
    drill: impl AsyncFnOnce(Site) + Send,
) {
    let library = Library::new();
    // The indexer runs as another user.
    std::fs::set_permissions(library.root(), std::fs::Permissions::from_mode(0o755)).expect("permissions");
    let write = |number, chart| library.osu(&format!("alpha/{number} set/a.osu"), chart).note_hash();
    let hashes: Vec<_> = (1..=CHARTS).map(|number| write(number, ChartSpec::numbered(number))).collect();
    let removable = ChartSpec { title: REMOVABLE.to_owned(), ..ChartSpec::numbered(CHARTS + 1) };
    let removable = write(CHARTS + 1, removable);
    ComposeProject::run(services, &[("CHARTS", &library.argument())], async |project| {
        start(&project).await;
        let mut site = Site { project, removable, hashes, chartsets: Vec::new(), clients: Cell::new(0) };
        site.wait_for_all_replicas().await;
        site.chartsets = site.ids_of_chartsets().await;
        site.warm_up().await;
        drill(site).await;
    });
}

impl Site {
    /// The address to which clients connect.
    pub(crate) fn address(&self) -> SocketAddr {
        self.project.address("haproxy", PORT)
    }

    /// A client of HAProxy with an address of its own.
    pub(crate) fn client(&self, number: u16) -> Client {
        Client::with_local_address(self.address(), ComposeProject::client_address(10_000 + number))
    }

    /// The chartsets of the charts that the load requests.
    pub(crate) async fn ids_of_chartsets(&self) -> Vec<String> {
        let list = self.client(0).get("/api/chartsets?perPage=60").await.json();
        let items = list["items"].as_array().expect("a list").iter();
        let requested = items.filter(|item| item["title"] != REMOVABLE);
        requested.map(|item| item["id"].as_str().expect("an id").to_owned()).collect()
    }

    /// The number of details that the replicas let a client have at once.
    pub(crate) async fn admitted(&self, client: u16) -> usize {
        self.admitted_of(client, &format!("/api/chartsets/{}", self.chartsets[0])).await
    }

    /// The number of lookups that the replicas let a client have at once.
    pub(crate) async fn admitted_lookups(&self, client: u16) -> usize {
        self.admitted_of(client, &format!("/api/charts/{}", self.hashes[0])).await
    }

    /// Sends requests until both replicas refuse them: HAProxy sends them requests in turn.
    async fn admitted_of(&self, client: u16, path: &str) -> usize {
        let (client, mut admitted, mut refused) = (self.client(client), 0, 0);
        while refused < REFUSALS {
            match client.get(path).await.status.as_u16() {
                200 => (admitted, refused) = (admitted + 1, 0),
                429 => refused += 1,
                other => panic!("{path}: {other}"),
            }
        }
        admitted
    }

    /// Requests every path of the load, so that it finds the responses in the caches.
    async fn warm_up(&self) {
        let client = self.client(0);
        for path in self.paths() {
            assert_eq!(client.get(&path).await.status, 200, "{path}");
        }
    }

    /// Runs a command of `redis-cli` in the container of Redis.
    pub(crate) fn redis(&self, command: &[&str]) -> String {
        self.project.redis_cli(command)
    }

    /// `known` or `unknown`, from a replica.
    pub(crate) async fn status_of(&self, replica: &str, hash: &str) -> String {
        let response = self.get_from(replica, &format!("/api/charts/{hash}")).await;
        response.json()["status"].as_str().unwrap_or_else(|| panic!("{}", response.status)).to_owned()
    }

    /// The search engine of a list, from a replica.
    pub(crate) async fn engine_of(&self, replica: &str, query: &str) -> String {
        let response = self.get_from(replica, &format!("/api/chartsets?{query}")).await;
        response.header("x-search-engine").to_owned()
    }

    /// Requests a path from a replica, as a proxy does for a client whose limits have not been used.
    async fn get_from(&self, replica: &str, path: &str) -> Response {
        let client = self.clients.get() + 1;
        self.clients.set(client);
        let address = ComposeProject::client_address(20_000 + client).to_string();
        Client::new(self.project.address(replica, PORT))
            .get_with(path, &[("x-forwarded-for", &address)])
            .await
    }

    /// Whether a gauge of a replica is 1, for all of its labels.
    pub(crate) async fn is_one(&self, replica: &str, gauge: &str) -> bool {
        let response = Client::new(self.project.address(replica, PRIVATE_PORT)).get("/metrics").await;
        let text = String::from_utf8(response.body).expect("UTF-8");
        let mut samples = text.lines().filter(|line| line.starts_with(gauge)).peekable();
        assert!(samples.peek().is_some(), "{replica} has no {gauge}");
        samples.all(|line| line.ends_with(" 1"))
    }

    /// A load of all kinds of requests, whose responses are 200.
    pub(crate) fn load(&self, rate: u32) -> OpenLoop {
        Self::load_on(self.address(), self.paths(), rate)
    }

    /// A load of these requests on a server.
    pub(crate) fn load_on(address: SocketAddr, paths: Vec<String>, rate: u32) -> OpenLoop {
        let clients = (1..=CLIENTS).map(ComposeProject::client_address).collect();
        let (requests, senders) = (u64::from(rate) * 3_600, Senders::Local(clients));
        OpenLoop { rate, requests, senders, ..OpenLoop::new(address, paths) }
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        paths_of_all_kinds(&self.hashes, &self.chartsets)
    }

    /// Waits until HAProxy sends requests to every replica.
    pub(crate) async fn wait_for_all_replicas(&self) {
        self.wait_for_replicas(REPLICAS.len()).await;
    }

    /// Waits until HAProxy sends requests to this many replicas.
    pub(crate) async fn wait_for_replicas(&self, count: usize) {
        within(TIMEOUT, async || (self.replicas_up().await? == count).then_some(())).await;
    }

    /// The number of replicas that are up, as HAProxy sees them.
    async fn replicas_up(&self) -> Option<usize> {
        let metrics = Client::new(self.project.address("haproxy", 8404));
        let response = metrics.try_request(Method::GET, "/metrics", &[]).await.ok()?;
        let text = String::from_utf8(response.body).ok()?;
        let states = text.lines().filter(|line| line.starts_with("haproxy_server_status{"));
        Some(states.filter(|line| line.contains("state=\"UP\"") && line.ends_with(" 1")).count())
    }
}
