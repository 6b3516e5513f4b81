//! Files in a bucket (docs/operations/objects.md), of S3 if nothing else is said. What does not depend on
//! buckets is in `tests/api` and `tests/indexer`.

mod azure;

use std::time::{Duration, Instant};

use chart_index_system_tests::{PrivateS3, PrivateVarnish};
use chart_index_tests::{
    ChartSpec, Client, IndexerRun, Library, Proxy, Response, Service, ServiceOptions, TestDatabase,
    fixed_address, indexer, indexer_command, within,
};

/// Number of charts.
const CHARTS: u32 = 40;
/// The longest that a response takes while the bucket hangs: `REQUEST_DEADLINE_MS`, and a margin.
const DEADLINE: Duration = Duration::from_secs(7);
/// Maximum time until the service reads objects again.
const RECOVERY: Duration = Duration::from_secs(15);
/// The time within which a removal takes effect on every replica.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(5);

/// An index whose files are objects of a bucket behind a proxy.
struct Site {
    database: TestDatabase,
    bucket: PrivateS3,
    proxy: Proxy,
    library: Library,
    hashes: Vec<String>,
}

impl Site {
    async fn start() -> Self {
        let (database, bucket, library) =
            (TestDatabase::create().await, PrivateS3::start().await, Library::new());
        let proxy = Proxy::start(&format!("http://s3@{}/", bucket.address())).await;
        let write = |number| library.osu(&format!("alpha/{number} set/a.osu"), ChartSpec::numbered(number));
        let hashes = (1..=CHARTS).map(|number| write(number).note_hash()).collect();
        indexer(database.url(), &["migrate"]).succeeded();
        Self { database, bucket, proxy, library, hashes }
    }

    fn variables(&self) -> [(&'static str, String); 6] {
        PrivateS3::variables(self.proxy.url().replace("s3@", "").trim_end_matches('/'))
    }

    fn try_run(&self, arguments: &[&str]) -> IndexerRun {
        IndexerRun::run(indexer_command(self.database.url(), arguments).envs(self.variables()))
    }

    fn run(&self, arguments: &[&str]) -> String {
        self.try_run(arguments).succeeded()
    }

    fn ingest(&self) {
        self.run(&["ingest", &self.library.argument()]);
    }

    fn serve(&self) -> Service {
        self.serve_with(&[])
    }

    fn serve_with(&self, arguments: &[&str]) -> Service {
        let variables = self.variables();
        let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, &**value)).collect();
        let options = ServiceOptions { arguments, variables: &variables, ..ServiceOptions::default() };
        Service::start_with(self.database.url(), &options)
    }

    /// The path of the object with the ROX file of a chart, in the bucket.
    fn object_of(&self, hash: &str) -> String {
        let name = self
            .database
            .psql(&format!("SELECT encode(object, 'hex') FROM rox_files WHERE hash = '\\x{hash}'"));
        assert_eq!(name.len(), 64, "the file is an object");
        format!("/{}/files/{}/{name}", PrivateS3::BUCKET, &name[..2])
    }

    async fn public_object(&self, path: &str) -> Response {
        self.bucket.client().get(path).await
    }
}

fn rox(hash: &str) -> String {
    format!("/api/charts/{hash}/rox")
}

#[tokio::test(flavor = "multi_thread")]
async fn bucket_holds_the_files() {
    let site = Site::start().await;
    site.ingest();
    let stored = "SELECT count(*) FROM rox_files WHERE bytes IS NOT NULL";
    assert_eq!(site.database.psql(stored), "0");
    assert!(site.run(&["verify"]).contains(", 0 findings"));
    let chart = &site.hashes[0];
    let object = site.public_object(&site.object_of(chart)).await;
    assert_eq!(object.header("cache-control"), "public, max-age=300, s-maxage=5");
    let service = site.serve();
    assert_eq!(service.client().get(&rox(chart)).await.body, object.body);
    // Beside readers.
    let mut files = Vec::new();
    for hash in &site.hashes {
        files.push(service.client().get(&rox(hash)).await.body);
    }
    for arguments in [&["objects", "migrate", "--to-postgres"][..], &["objects", "migrate"]] {
        let mut command = indexer_command(site.database.url(), arguments);
        let mut running = command.envs(site.variables()).spawn().expect("chart-indexer starts");
        let mut reads = 0;
        while running.try_wait().expect("a child process").is_none() || reads == 0 {
            // Nothing is cached there.
            let service = site.serve();
            for (hash, file) in site.hashes.iter().zip(&files) {
                let response = service.client().get(&rox(hash)).await;
                assert_eq!((response.status.as_u16(), &response.body), (200, file), "{hash}");
                reads += 1;
            }
        }
        assert!(running.wait().expect("the command ends").success());
    }
    let collected = site.run(&["objects", "gc", "--grace", "0s"]);
    assert!(
        collected.starts_with("40 objects with ") && collected.contains(", 0 with 0 bytes"),
        "{collected}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unavailable_bucket_is_503_for_files_alone() {
    let mut site = Site::start().await;
    site.ingest();
    let service = site.serve();
    let (client, health) = (service.client(), service.private_client());
    let [cached, refused, hanging] = [0, 1, 2].map(|index| site.hashes[index].clone());
    let file = client.get(&rox(&cached)).await.body;
    site.proxy.cut().await;
    for path in [rox(&refused), format!("/api/charts/{refused}/preview")] {
        let response = client.get(&path).await;
        assert_eq!(response.status, 503, "{path}");
        assert!(response.header("retry-after").parse::<u32>().is_ok_and(|seconds| seconds >= 1));
    }
    assert_eq!(client.get(&rox(&cached)).await.body, file);
    assert_eq!(client.get(&format!("/api/charts/{refused}")).await.json()["status"], "known");
    assert_eq!(client.get("/api/chartsets").await.status, 200);
    assert_eq!(health.get("/readyz").await.status, 200);
    // A removal is in force without the bucket, and is completed later.
    let removed = site.hashes[3].clone();
    let object = site.object_of(&removed);
    let run = site.try_run(&["remove", "chart", &removed]);
    assert_eq!((run.code, run.stderr.contains("run this command again")), (Some(1), true), "{}", run.stderr);
    within(CHANGE_TIMEOUT, async || (client.get(&rox(&removed)).await.status == 404).then_some(())).await;
    site.proxy.listen().await;
    assert_eq!(site.public_object(&object).await.status, 200);
    site.run(&["remove", "chart", &removed]);
    assert_eq!(site.public_object(&object).await.status, 404);
    within(RECOVERY, async || (client.get(&rox(&refused)).await.status == 200).then_some(())).await;

    site.bucket.signal("STOP");
    let started = Instant::now();
    assert_eq!(client.get(&rox(&hanging)).await.status, 503);
    assert!(started.elapsed() < DEADLINE, "{:?}", started.elapsed());
    assert_eq!(client.get(&rox(&cached)).await.body, file);
    site.bucket.signal("CONT");
    within(RECOVERY, async || (client.get(&rox(&hanging)).await.status == 200).then_some(())).await;
}

/// Reads that wait for the bucket leave half of the fills to lookups.
#[tokio::test(flavor = "multi_thread")]
async fn hanging_bucket_does_not_delay_lookups() {
    let site = Site::start().await;
    site.ingest();
    let service = site.serve();
    site.bucket.signal("STOP");
    let mut files = tokio::task::JoinSet::new();
    for hash in &site.hashes {
        let (client, path) = (service.client(), rox(hash));
        files.spawn(async move { client.get(&path).await.status.as_u16() });
    }
    let started = Instant::now();
    for hash in &site.hashes {
        let response = service.client().get(&format!("/api/charts/{hash}")).await;
        assert_eq!(response.status, 200);
    }
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    while let Some(status) = files.join_next().await {
        assert_eq!(status.expect("a response"), 503);
    }
    site.bucket.signal("CONT");
}

#[tokio::test(flavor = "multi_thread")]
async fn ingest_waits_for_the_bucket() {
    let mut site = Site::start().await;
    site.proxy.cut().await;
    let mut command = indexer_command(site.database.url(), &["ingest", &site.library.argument()]);
    let mut ingest = command.envs(site.variables()).spawn().expect("chart-indexer starts");
    // Its first transaction has begun to write objects.
    within(RECOVERY, async || (site.database.locks("locktype = 'advisory'") != 0).then_some(())).await;
    site.proxy.listen().await;
    assert!(ingest.wait().expect("the ingest ends").success());
    assert!(
        site.run(&["verify"])
            .contains(&format!("{CHARTS} charts and {CHARTS} chartsets verified, 0 findings"))
    );
}

/// Clients are sent to the bucket, which a mirror follows.
#[tokio::test(flavor = "multi_thread")]
async fn public_bucket_serves_the_files() {
    let site = Site::start().await;
    site.ingest();
    let public = format!("http://{}/{}/files", site.bucket.address(), PrivateS3::BUCKET);
    let service = site.serve_with(&["--objects-public-url", &public, "--rate-limit-feed", "1000000"]);
    let chart = &site.hashes[0];
    let response = service.client().get(&rox(chart)).await;
    let object = site.object_of(chart);
    let location = format!("http://{}{object}", site.bucket.address());
    assert_eq!((response.status.as_u16(), response.header("location")), (302, &*location));
    let mirror = TestDatabase::migrated().await;
    let upstream = format!("http://{}", service.address());
    indexer(mirror.url(), &["mirror", &upstream, "--once", "--objects-url", &public]).succeeded();
    let verified = indexer(mirror.url(), &["verify"]).succeeded();
    assert!(
        verified.contains(&format!("{CHARTS} charts and {CHARTS} chartsets verified, 0 findings")),
        "{verified}"
    );
    // Without the service, and through a CDN in front of the bucket.
    drop(service);
    assert_eq!(site.public_object(&object).await.status, 200);
    let cdn = PrivateVarnish::start(fixed_address(), site.bucket.address(), "\"127.0.0.1\"").await;
    let client = Client::new(cdn.address());
    assert_eq!(client.get(&object).await.status, 200);
    // A hit names the request that filled the cache.
    assert!(client.get(&object).await.header("x-varnish").contains(' '));
    site.run(&["remove", "chart", chart]);
    within(CHANGE_TIMEOUT, async || (client.get(&object).await.status == 404).then_some(())).await;
}
