//! The API over real servers, by the sections of docs/api.md.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test panics if its set-up fails")]

mod analysis;
mod batch_lookup;
mod caching;
mod cdn_headers;
mod changes;
mod check;
mod configuration;
mod connections;
mod database_standby;
mod detail;
mod downloads;
mod errors;
mod exports;
mod hash_filter;
mod headers;
mod identity;
mod limits;
mod list;
mod load;
mod logging;
mod long_polls;
mod lookup;
mod objects;
mod outage;
mod overload;
mod preview;
mod redirect;
mod redis_outages;
mod removals;
mod rox;
mod serving;
mod variants;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use chart_index_tests::{
    ChartSpec, Client, IndexerRun, Library, Response, Service, ServiceOptions, Shared, TestDatabase,
    TestRedis, indexer, program_command, within,
};

/// The time within which a change takes effect on every replica (docs/api.md, "Caching and conditional
/// requests").
const CHANGE_TIMEOUT: Duration = Duration::from_secs(5);

/// The routes of the pages, which are not in the OpenAPI document.
const PAGES: [&str; 32] = [
    "/",
    "/chartsets",
    "/chartsets/{id}",
    "/charts/{hash}",
    "/packs/{ref}",
    "/embed/charts/{hash}",
    "/shelf",
    "/shelf.txt",
    "/shelf.atom",
    "/creators/{name}",
    "/creators/{name}/feed.atom",
    "/compare",
    "/random",
    "/ratings",
    "/feed.atom",
    "/about",
    "/identify",
    "/robots.txt",
    "/sitemap.xml",
    "/sitemaps/{part}",
    "/opensearch.xml",
    "/favicon.ico",
    "/docs",
    "/docs/changelog.atom",
    "/docs/openapi.json",
    "/docs/openapi-3.0.json",
    "/docs/api/{section}",
    "/docs/all",
    "/docs/search",
    "/docs/{format}",
    "/docs/{format}/vectors.json",
    "/problems/{slug}",
];

/// A library, a database with its charts, and a service.
struct Instance {
    library: Library,
    database: TestDatabase,
    redis: TestRedis,
    service: Service,
}

impl Instance {
    /// Ingests the library and starts a service.
    async fn start(library: Library) -> Self {
        let (database, redis) = (TestDatabase::migrated().await, TestRedis::create());
        indexer(database.url(), &["ingest", &library.argument()]).succeeded();
        let variables = [("REDIS_URL", redis.url())];
        let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
        let service = Service::start_with(database.url(), &options);
        Self { library, database, redis, service }
    }
}

/// An instance, and the client of a test: connections do not outlive the runtime of their test.
struct Index {
    instance: Arc<Instance>,
    client: Client,
}

impl Deref for Index {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.instance
    }
}

impl Index {
    /// One that the test may change.
    async fn new(library: Library) -> Self {
        Self::of(Arc::new(Instance::start(library).await))
    }

    /// One that tests share, which only read it.
    async fn shared(shared: &Shared<Instance>, library: impl FnOnce() -> Library) -> Self {
        Self::of(shared.get_or_start(async || Instance::start(library()).await).await)
    }

    /// One without charts.
    async fn empty() -> Self {
        static EMPTY: Shared<Instance> = Shared::empty();
        Self::shared(&EMPTY, Library::new).await
    }

    fn of(instance: Arc<Instance>) -> Self {
        Self { client: instance.service.client(), instance }
    }

    /// Ingests the library again and returns the summary.
    fn ingest(&self) -> String {
        self.indexer(&["ingest", &self.library.argument()])
    }

    /// Runs a command of the indexer, which must succeed, and returns its output.
    fn indexer(&self, arguments: &[&str]) -> String {
        indexer(self.database.url(), arguments).succeeded()
    }

    /// Requests a path until the response has this status, at most for [`CHANGE_TIMEOUT`].
    async fn wait_for_status(&self, path: &str, status: u16) -> Response {
        within(CHANGE_TIMEOUT, async || {
            Some(self.get(path).await).filter(|response| response.status == status)
        })
        .await
        .0
    }

    async fn get(&self, path: &str) -> Response {
        self.client.get(path).await
    }

    async fn list(&self, query: &str) -> serde_json::Value {
        let response = self.get(&format!("/api/chartsets?{query}")).await;
        assert_eq!(response.status, 200, "{query}: {}", String::from_utf8_lossy(&response.body));
        response.json()
    }

    /// The titles of a list, in order.
    async fn titles(&self, query: &str) -> Vec<String> {
        strings(&self.list(query).await["items"], "title")
    }

    /// The id of the chartset with this title.
    async fn id_of(&self, title: &str) -> String {
        let all = self.list("perPage=60").await;
        let items = all["items"].as_array().expect("items");
        let item = items.iter().find(|item| item["title"] == title);
        item.unwrap_or_else(|| panic!("{title} is listed"))["id"].as_str().expect("an id").to_owned()
    }
}

/// The paths of all routes of the API and of the pages, with each of these values of a parameter.
async fn paths_of_all_routes(client: &Client, parameters: &[&str]) -> Vec<String> {
    let document = client.get("/docs/openapi.json").await.json();
    let templates = document["paths"].as_object().unwrap().keys().map(String::as_str).chain(PAGES);
    let paths = templates.flat_map(|template| match template.split_once('{') {
        Some((start, rest)) => {
            let end = rest.split_once('}').unwrap().1;
            parameters.iter().map(|parameter| format!("{start}{parameter}{end}")).collect()
        }
        None => vec![template.to_owned()],
    });
    paths.collect()
}

/// Requests a path, after which its response is cached.
async fn assert_cached(service: &Service, path: &str, status: u16) {
    assert_eq!(service.client().get(path).await.status, status, "{path}");
}

fn strings(items: &serde_json::Value, field: &str) -> Vec<String> {
    let items = items.as_array().expect("a list");
    items.iter().map(|item| item[field].as_str().expect("a string").to_owned()).collect()
}

/// The names of the fields of a JSON object, sorted.
fn fields(object: &serde_json::Value) -> Vec<&str> {
    let mut names: Vec<&str> = object.as_object().expect("an object").keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}
