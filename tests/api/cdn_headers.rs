//! What a CDN may cache of every response (docs/operations/cdn.md): nothing for longer than a day, unless it is
//! purged by the tag of the response.

use std::collections::BTreeSet;

use super::*;

/// `CDN_MAX_AGE_SECONDS`.
const PURGED_MAX_AGE: u64 = 2_592_000;
const DAY: u64 = 86_400;
/// The route without a response to GET.
const POST_ONLY: &str = "/api/charts/lookup";

/// The value of `max-age` in a header.
fn max_age(header: &str) -> Option<u64> {
    header.split(", ").find_map(|directive| directive.strip_prefix("max-age="))?.parse().ok()
}

fn assert_kept_no_longer_than_allowed(response: &Response, what: &str, is_purged: bool) {
    let [cache_control, of_cdn, tags, cache_tag] =
        ["cache-control", "cdn-cache-control", "surrogate-key", "cache-tag"]
            .map(|name| response.header(name));
    let Some(max_age_of_clients) = max_age(cache_control) else {
        assert_eq!([cache_control, of_cdn, tags, cache_tag], ["no-store", "", "", ""], "{what}");
        return;
    };
    assert_eq!(tags.replace(' ', ","), cache_tag, "{what}");
    let kept = max_age(of_cdn).unwrap_or(max_age_of_clients);
    match tags {
        "" => assert!(!is_purged && kept <= DAY, "{what}: {kept}"),
        "all shared" => assert!(is_purged && kept <= DAY, "{what}: {kept}"),
        _ => assert!(is_purged && kept == PURGED_MAX_AGE, "{what}: {kept}, {tags}"),
    }
}

/// A database and exports with something for every route.
struct Catalogue {
    database: TestDatabase,
    exports: tempfile::TempDir,
    /// Values of parameters of routes, each of which some route has.
    values: Vec<String>,
    /// The path of the comparison of its charts, whose hashes are in the query string.
    comparison: String,
}

impl Catalogue {
    async fn new() -> Self {
        let library = Library::new();
        let chart = library.osu("alpha/12 one/a.osu", ChartSpec::numbered(1)).note_hash();
        let other = library.osu("beta/7 pack/song/a.osu", ChartSpec::numbered(2)).note_hash();
        let comparison = format!("/compare?a={chart}&b={other}");
        let (database, exports) = (TestDatabase::migrated().await, tempfile::tempdir().unwrap());
        let folder = exports.path().to_str().unwrap();
        indexer(database.url(), &["ingest", &library.argument()]).succeeded();
        indexer(database.url(), &["export", folder, "--rox", "--sqlite", "--parquet"]).succeeded();
        let mut entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
        let export = entries.find(|entry| entry.path().is_dir()).unwrap();
        std::fs::write(export.path().join("manifest.json.minisig"), "a signature\n").unwrap();
        let rows = database.psql(
            "SELECT id FROM chartsets UNION ALL SELECT encode(variant, 'hex') FROM charts
             UNION ALL SELECT sequence::text FROM hash_filters",
        );
        let mut values: Vec<String> = rows.lines().map(str::to_owned).collect();
        values.extend([chart, export.file_name().into_string().unwrap(), ChartSpec::numbered(1).creator]);
        values.extend(["7", "0.xml", "note-hash", "errors", "not-found", "x"].map(str::to_owned));
        Self { database, exports, values, comparison }
    }

    /// A service with this `CDN_MAX_AGE_SECONDS`, if there is one.
    fn serve(&self, redis: &TestRedis, cdn_max_age: Option<&str>) -> Service {
        let mut variables = vec![
            ("REDIS_URL", redis.url()),
            ("EXPORTS_DIR", self.exports.path().to_str().unwrap()),
            ("PUBLIC_URL", "https://index.example"),
        ];
        variables.extend(cdn_max_age.map(|seconds| ("CDN_MAX_AGE_SECONDS", seconds)));
        let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
        Service::start_with(self.database.url(), &options)
    }

    /// The paths of a route with every value of its parameter.
    fn paths(&self, template: &str) -> Vec<String> {
        match (template.find('{'), template.find('}')) {
            (Some(start), Some(end)) => {
                let path = |value: &String| [&template[..start], value, &template[end + 1..]].concat();
                self.values.iter().map(path).collect()
            }
            _ if template == "/compare" => vec![self.comparison.clone()],
            _ => vec![template.to_owned()],
        }
    }
}

#[tokio::test]
async fn no_response_is_cached_for_longer_than_it_may() {
    let mut catalogue = Catalogue::new().await;
    for cdn_max_age in [None, Some(PURGED_MAX_AGE.to_string())] {
        let redis = TestRedis::create();
        let service = catalogue.serve(&redis, cdn_max_age.as_deref());
        let client = service.client();
        let page = String::from_utf8(client.get_with("/", &[("accept", "text/html")]).await.body).unwrap();
        let asset = page.split("/assets/").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        catalogue.values.push(asset.to_owned());
        let document = client.get("/docs/openapi.json").await.json();
        let templates = document["paths"].as_object().unwrap().keys().map(String::as_str);
        let mut without_success = BTreeSet::new();
        for template in templates.chain(PAGES).chain(["/assets/{name}"]) {
            let mut is_successful = false;
            for path in catalogue.paths(template) {
                is_successful |= check_encodings(&client, &path, cdn_max_age.is_some()).await;
            }
            if !is_successful {
                without_success.insert(template.to_owned());
            }
        }
        assert!(without_success.iter().eq([POST_ONLY]), "{without_success:?}");
    }
}

/// Checks the responses in every encoding, and those to conditional requests. Returns whether one succeeds.
async fn check_encodings(client: &Client, path: &str, is_purged: bool) -> bool {
    let mut is_successful = false;
    for encoding in ["identity", "gzip", "br, zstd, gzip;q=0.5"] {
        let encoding = ("accept-encoding", encoding);
        let response = client.get_with(path, &[encoding]).await;
        let what = format!("{path} with {encoding:?}: {}", response.status);
        assert_kept_no_longer_than_allowed(&response, &what, is_purged);
        is_successful |= response.status.is_success() || response.status.is_redirection();
        let tag = response.header("etag");
        let again = client.get_with(path, &[encoding, ("if-none-match", tag)]).await;
        for name in ["cache-control", "cdn-cache-control", "surrogate-key", "cache-tag"] {
            assert_eq!(again.header(name), response.header(name), "{what}: {name}");
        }
    }
    is_successful
}
