//! The pages of the web site over real servers, by HTTP. `tests/system/browser` has what needs a browser.
#![expect(clippy::unwrap_used, reason = "a test panics if its set-up fails")]

mod chart;
mod chartset;
mod compare;
mod creator;
mod docs;
mod embed;
mod errors;
mod feed;
mod headers;
mod hostile_names;
mod limits;
mod list;
mod outages;
mod pack;
mod redirects;
mod search_engines;
mod shelf;

use std::ops::Deref;
use std::sync::Arc;

use chart_index_tests::{
    ChartSpec, Client, Library, Response, Service, ServiceOptions, Shared, TestDatabase, TestRedis, indexer,
};

/// What a browser sends.
const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

const PUBLIC_URL: (&str, &str) = ("PUBLIC_URL", "https://charts.example");

/// A database with the charts of a library, and a service.
struct Instance {
    database: TestDatabase,
    redis: TestRedis,
    service: Service,
}

impl Instance {
    async fn start(library: &Library, variables: &[(&str, &str)]) -> Self {
        let (database, redis) = (TestDatabase::migrated().await, TestRedis::create());
        indexer(database.url(), &["ingest", &library.argument()]).succeeded();
        let variables = [&[("REDIS_URL", redis.url())], variables].concat();
        let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
        let service = Service::start_with(database.url(), &options);
        Self { database, redis, service }
    }
}

/// An instance, and the client of a test: connections do not outlive the runtime of their test.
struct Site {
    instance: Arc<Instance>,
    client: Client,
}

impl Deref for Site {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.instance
    }
}

impl Site {
    /// One that the test may change.
    async fn new(library: &Library) -> Self {
        Self::with(library, &[]).await
    }

    async fn with(library: &Library, variables: &[(&str, &str)]) -> Self {
        Self::of(Arc::new(Instance::start(library, variables).await))
    }

    /// One that tests share, which only read it.
    async fn shared(
        shared: &Shared<Instance>,
        library: impl FnOnce() -> Library,
        variables: &[(&str, &str)],
    ) -> Self {
        Self::of(shared.get_or_start(async || Instance::start(&library(), variables).await).await)
    }

    /// The shared one of [`library`].
    async fn of_library() -> Self {
        static SITE: Shared<Instance> = Shared::empty();
        Self::shared(&SITE, library, &[]).await
    }

    /// The same with the setting [`PUBLIC_URL`].
    async fn public() -> Self {
        static SITE: Shared<Instance> = Shared::empty();
        Self::shared(&SITE, library, &[PUBLIC_URL]).await
    }

    /// The shared one without charts.
    async fn empty() -> Self {
        static SITE: Shared<Instance> = Shared::empty();
        Self::shared(&SITE, Library::new, &[]).await
    }

    fn of(instance: Arc<Instance>) -> Self {
        Self { client: instance.service.client(), instance }
    }

    async fn get(&self, path: &str) -> Response {
        self.client.get_with(path, &[BROWSER]).await
    }

    /// The HTML of a page that exists.
    async fn html(&self, path: &str) -> String {
        let response = self.get(path).await;
        assert_eq!((response.status.as_u16(), response.header("content-type")), (200, HTML), "{path}");
        String::from_utf8(response.body).unwrap()
    }

    /// Gives every chart this density in each part of its length.
    fn set_curves(&self, density: u8) {
        let statement =
            format!("UPDATE charts SET density_curve = decode(repeat('{density:02x}', 48), 'hex')");
        self.database.psql(&statement);
    }

    /// Gives the chart with this name a rating in hundredths.
    fn set_rating(&self, difficulty: &str, hundredths: u16) {
        self.database.psql(&format!(
            "UPDATE charts SET rating = {hundredths} FROM chartset_charts AS member
             WHERE member.chart_hash = hash AND member.difficulty = '{difficulty}'"
        ));
    }

    /// The percentiles of an index of charts whose ratings are evenly distributed up to 5.94, too few of which
    /// have as many keys as any other.
    fn set_percentiles(&self) {
        self.database.psql(
            "INSERT INTO chart_percentiles SELECT 0, 'rating', array_agg(percent * 6.0::float8), 1
             FROM generate_series(1, 99) AS percent",
        );
    }

    /// The id of the chartset with this title.
    async fn id_of(&self, title: &str) -> String {
        let list = self.client.get("/api/chartsets?perPage=60").await.json();
        let item = list["items"].as_array().unwrap().iter().find(|item| item["title"] == title);
        item.unwrap_or_else(|| panic!("{title} is listed"))["id"].as_str().unwrap().to_owned()
    }
}

const HTML: &str = "text/html; charset=utf-8";

/// The values of `href` that start with the prefix, in order.
fn links<'a>(html: &'a str, prefix: &str) -> Vec<&'a str> {
    html.split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .filter(|href| href.starts_with(prefix))
        .collect()
}

/// The titles of the sets of a list, in order.
fn titles(html: &str) -> Vec<&str> {
    let headings = html.split("<h2><a href=\"/chartsets/").skip(1);
    headings.map(|rest| between(rest, "<bdi>", "</bdi>")).collect()
}

/// The text between two others.
fn between<'a>(text: &'a str, open: &str, close: &str) -> &'a str {
    let (_, rest) = text.split_once(open).unwrap_or_else(|| panic!("{open} in {text}"));
    rest.split_once(close).unwrap_or_else(|| panic!("{close} in {rest}")).0
}

/// Charts with other key counts, lengths and densities, of two creators.
fn library() -> Library {
    let library = Library::new();
    let chart = |title: &str, difficulty: &str, keys: u8, notes: Vec<(i64, u8, Option<i64>)>| ChartSpec {
        keys,
        title: title.to_owned(),
        difficulty: difficulty.to_owned(),
        creator: "zoe".to_owned(),
        tags: "piano 旋".to_owned(),
        notes,
        ..ChartSpec::default()
    };
    let dense = |notes: i64, ms: i64| -> Vec<_> {
        (0..notes)
            .zip([0, 1, 2, 3].into_iter().cycle())
            .map(|(note, column)| (note * ms, column, None))
            .collect()
    };
    library.osu("alpha/10 one/easy.osu", chart("One", "Easy", 4, dense(60, 1_000)));
    library.osu("alpha/10 one/hard.osu", chart("One", "Hard", 7, dense(1_000, 50)));
    library.osu("alpha/20 two/only.osu", chart("Two", "Only", 4, vec![(0, 0, Some(500)), (90_000, 1, None)]));
    library.osu(
        "alpha/no id/other.osu",
        ChartSpec { creator: "amy".into(), ..chart("Three", "Other", 5, dense(90, 1_000)) },
    );
    library
}
