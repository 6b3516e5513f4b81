//! The public API over real servers, statement by statement of the contract and its decisions.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where its set-up fails")]

mod caching;
mod connections;
mod detail;
mod errors;
mod headers;
mod identity;
mod limits;
mod list;
mod load;
mod logging;
mod lookup;
mod outage;
mod overload;
mod redirect;
mod redis_outages;
mod rox;
mod serving;

use std::time::Duration;

use chart_index_tests::{
    ChartSpec, Client, IndexerRun, Library, Response, Service, ServiceOptions, TestDatabase, TestRedis,
    indexer, indexer_command, within,
};

/// "Removal and update reach every replica's memory within 5 seconds."
const IN_FORCE: Duration = Duration::from_secs(5);

/// A library that is ingested and served.
struct Index {
    library: Library,
    database: TestDatabase,
    redis: TestRedis,
    service: Service,
    client: Client,
}

impl Index {
    /// Ingests the library into a database of its own and serves it.
    async fn over(library: Library) -> Self {
        let (database, redis) = (TestDatabase::create().await, TestRedis::create());
        indexer(database.url(), &["migrate"]).succeeded();
        let variables = [("REDIS_URL", redis.url())];
        let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
        let service = Service::start_with(database.url(), &options);
        let client = service.client();
        let index = Self { library, database, redis, service, client };
        index.ingest();
        index
    }

    /// Ingests the library again and gives the summary.
    fn ingest(&self) -> String {
        self.indexer(&["ingest", &self.library.argument()])
    }

    /// Runs another command of the indexer, which must succeed.
    fn indexer(&self, arguments: &[&str]) -> String {
        let mut command = indexer_command(self.database.url(), arguments);
        IndexerRun::run(command.env("REDIS_URL", self.redis.url())).succeeded()
    }

    /// Waits until a path answers with this status, as long as a change may take to be in force.
    async fn answers(&self, path: &str, status: u16) -> Response {
        within(IN_FORCE, async || Some(self.get(path).await).filter(|answer| answer.status == status)).await.0
    }

    async fn get(&self, path: &str) -> Response {
        self.client.get(path).await
    }

    async fn list(&self, query: &str) -> serde_json::Value {
        let answer = self.get(&format!("/api/chartsets?{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {}", String::from_utf8_lossy(&answer.body));
        answer.json()
    }

    /// The titles of a list, in its order.
    async fn titles(&self, query: &str) -> Vec<String> {
        strings(&self.list(query).await["items"], "title")
    }

    /// The id of the only chartset with that title.
    async fn id_of(&self, title: &str) -> String {
        let all = self.list("perPage=60").await;
        let items = all["items"].as_array().expect("items");
        let item = items.iter().find(|item| item["title"] == title);
        item.unwrap_or_else(|| panic!("{title} is listed"))["id"].as_str().expect("an id").to_owned()
    }
}

/// Asks for a path until its response is cached, which the second time is: the first one is not if the service subscribed
/// to invalidations while it was read.
async fn assert_cached(service: &Service, path: &str, status: u16) {
    for _ in 0..2 {
        assert_eq!(service.client().get(path).await.status, status, "{path}");
    }
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
