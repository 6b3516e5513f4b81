//! Real responses of every operation and status are as the OpenAPI document describes them.

use std::collections::BTreeSet;

use chart_index_tests::{Client, IndexerRun, Service, TestDatabase, indexer, indexer_command, samples};
use reqwest::Method;

use super::openapi::OpenApiDocument;
use super::{CHARTSET, HASH, limits};

/// A GET operation: its path, the target of a success, and targets that give a 400, and a 404 or 410, if it has
/// these.
struct Requests {
    path: &'static str,
    success: String,
    bad: String,
    missing: Option<String>,
}

/// The requests of each GET operation of the document; a unit test of the pages compares the document with the
/// routes.
async fn requests(document: &OpenApiDocument, client: &Client) -> Vec<Requests> {
    let latest = client.get("/api/charts/filter").await;
    let known = known_requests(latest.header("location"));
    let names: BTreeSet<String> = known.iter().map(|requests| format!("GET {}", requests.path)).collect();
    let described = document.operations().into_iter().filter(|name| name.starts_with("GET "));
    assert_eq!(described.collect::<BTreeSet<_>>(), names);
    known
}

/// The requests, with the address of a hash filter.
fn known_requests(filter: &str) -> Vec<Requests> {
    let (unknown_hash, unknown_set) = ("0".repeat(64), "0".repeat(16));
    let of_chart = |path: &'static str, suffix: &str, is_missing: bool| Requests {
        path,
        success: format!("/api/charts/{HASH}{suffix}"),
        bad: format!("/api/charts/x{suffix}"),
        missing: is_missing.then(|| format!("/api/charts/{unknown_hash}{suffix}")),
    };
    let of_set = |path: &'static str, prefix: &str| Requests {
        path,
        success: format!("{prefix}/{CHARTSET}"),
        bad: format!("{prefix}/{CHARTSET}"),
        missing: Some(format!("{prefix}/{unknown_set}")),
    };
    let of_filter = |path: &'static str, success: &str| Requests {
        path,
        success: success.to_owned(),
        bad: success.to_owned(),
        missing: None,
    };
    let list = Requests {
        path: "/api/chartsets",
        success: "/api/chartsets?q=harbour".to_owned(),
        bad: "/api/chartsets?keys=3".to_owned(),
        missing: None,
    };
    let of_export = |path: &'static str| {
        let target = |name: &str| path.replace("{name}", name);
        Requests {
            path,
            success: target(EXPORT),
            bad: target(EXPORT),
            missing: Some(target("20010101T000000Z-1")),
        }
    };
    let latest = "/api/exports/latest";
    let changes = Requests {
        path: "/api/changes",
        success: "/api/changes?limit=1000".to_owned(),
        bad: "/api/changes?after=x".to_owned(),
        missing: Some("/api/changes?after=9007199254740991".to_owned()),
    };
    vec![
        of_chart("/api/charts/{hash}", "", false),
        of_chart("/api/charts/{hash}/rox", "/rox", true),
        of_chart("/api/charts/{hash}/preview", "/preview", true),
        of_filter("/api/charts/filter", "/api/charts/filter"),
        Requests {
            missing: Some("/api/charts/filter/0".to_owned()),
            ..of_filter("/api/charts/filter/{sequence}", filter)
        },
        list,
        of_set("/api/chartsets/{id}", "/api/chartsets"),
        Requests {
            path: "/api/random",
            success: "/api/random?query=title:Byeolbit".to_owned(),
            bad: "/api/random?keys=3".to_owned(),
            missing: Some("/api/random?q=!".to_owned()),
        },
        of_set("/go/chartset/{id}", "/go/chartset"),
        Requests {
            path: "/go/chart/{hash}",
            success: format!("/go/chart/{HASH}"),
            bad: "/go/chart/x".to_owned(),
            missing: Some(format!("/go/chart/{unknown_hash}")),
        },
        Requests { path: latest, success: latest.to_owned(), bad: latest.to_owned(), missing: None },
        of_export("/api/exports/{name}/manifest.json"),
        of_export("/api/exports/{name}/manifest.json.minisig"),
        of_export("/api/exports/{name}/chartsets.ndjson.zst"),
        of_export("/api/exports/{name}/rox.tar"),
        of_export("/api/exports/{name}/catalogue.sqlite.zst"),
        of_export("/api/exports/{name}/catalogue.parquet"),
        changes,
        Requests {
            path: "/api/variants/{variant}",
            success: format!("/api/variants/{VARIANT}"),
            bad: "/api/variants/x".to_owned(),
            missing: None,
        },
    ]
}

/// The variant of the chart with the hash of these tests.
const VARIANT: &str = "8a665c6e346d5a595e966275751b720f4c8d61d0fdcf43f9c7a77c5094ea1670";

/// The name that the export of the samples gets here.
const EXPORT: &str = "20261122T182049Z-1";

/// Exports an index under this name, and returns the folder.
pub(crate) fn exports(database: &TestDatabase) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().to_str().expect("UTF-8");
    let arguments = ["export", directory, "--rox", "--sqlite", "--parquet"];
    let printed = indexer(database.url(), &arguments).succeeded();
    let written = printed.split_once(": ").expect("the path").0;
    // The service does not verify it.
    std::fs::write(std::path::Path::new(written).join("manifest.json.minisig"), "a signature\n")
        .expect("a file");
    std::fs::rename(written, folder.path().join(EXPORT)).expect("the export is renamed");
    folder
}

/// A database of the samples whose ROX files are objects in a folder, which the URL names.
async fn database_with_objects() -> (TestDatabase, tempfile::TempDir, String) {
    let (database, folder) = (TestDatabase::create().await, tempfile::tempdir().expect("a folder"));
    let url = format!("file://{}", folder.path().display());
    for arguments in [&["migrate"][..], &["ingest", samples().to_str().expect("UTF-8")]] {
        let mut command = indexer_command(database.url(), arguments);
        IndexerRun::run(command.env("OBJECT_STORE_URL", &url)).succeeded();
    }
    (database, folder, url)
}

/// The settings of a service with these exports.
pub(crate) fn with_exports(folder: &std::path::Path) -> [(&str, &str); 2] {
    // More requests of this group are sent than the default admits.
    [("EXPORTS_DIR", folder.to_str().expect("UTF-8")), ("RATE_LIMIT_BULK", "240")]
}

const BATCH: &str = "POST /api/charts/lookup";
const BATCH_PATH: &str = "/api/charts/lookup";
const JSON: (&str, &str) = ("content-type", "application/json");

/// Checks responses and collects their statuses.
struct Checked<'a> {
    document: &'a OpenApiDocument,
    statuses: BTreeSet<(String, String)>,
}

impl Checked<'_> {
    async fn get(&mut self, client: &Client, path: &str, target: &str, headers: &[(&str, &str)]) {
        let response = client.get_with(target, headers).await;
        let operation = format!("GET {path}");
        let status = self.document.check(&operation, &response);
        self.statuses.insert((operation, status));
        // HEAD is described by the GET of the same path.
        let head = client.request(Method::HEAD, target, headers).await;
        assert_eq!(head.status, response.status, "HEAD {target}");
        assert!(head.body.is_empty(), "HEAD {target}");
        for name in ["etag", "cache-control", "content-type", "vary", "location"] {
            assert_eq!(head.header(name), response.header(name), "HEAD {target}: {name}");
        }
    }

    async fn batch(&mut self, client: &Client, target: &str, headers: &[(&str, &str)], body: &str) {
        let response = client.send(Method::POST, target, headers, body.to_owned()).await;
        let status = self.document.check(BATCH, &response);
        self.statuses.insert((BATCH.to_owned(), status));
    }

    /// Sends batch lookups that a service rejects, and one that succeeds.
    async fn batches(&mut self, client: &Client) {
        let hashes = |number: usize| format!("{{\"hashes\":{:?}}}", vec![HASH; number]);
        let (one, large) = (hashes(1), " ".repeat(129 * 1024));
        self.batch(client, BATCH_PATH, &[JSON], &one).await;
        for malformed in [&hashes(0), &hashes(1_001), "{\"hashes\":[\"x\"]}", "[", ""] {
            self.batch(client, BATCH_PATH, &[JSON], malformed).await;
        }
        self.batch(client, BATCH_PATH, &[JSON], &large).await;
        self.batch(client, BATCH_PATH, &[("content-type", "text/plain")], &one).await;
        let long = format!("{BATCH_PATH}?x={}", "x".repeat(9_000));
        self.batch(client, &long, &[JSON], &one).await;
        let unfinished = client.send_endless(Method::POST, BATCH_PATH, &[JSON]).await;
        let status = self.document.check(BATCH, &unfinished);
        self.statuses.insert((BATCH.to_owned(), status));
    }
}

#[tokio::test]
async fn responses_of_every_status_are_as_described() {
    let database = TestDatabase::with_samples().await;
    let exports = exports(&database);
    let served = with_exports(exports.path());
    let start = Service::with_variables;
    let service = start(database.url(), &served);
    let limited = start(database.url(), &[&served[..], &limits("1")].concat());
    // Nothing listens on port 1, and a file is not a folder.
    let file = exports.path().join(EXPORT).join("manifest.json");
    let without_database = start("postgres://nobody@127.0.0.1:1/none", &with_exports(&file));
    let client = service.client();
    let document = OpenApiDocument::of(&client).await;
    let mut checked = Checked { document: &document, statuses: BTreeSet::new() };
    let long = "x".repeat(9_000);
    let requests = requests(&document, &client).await;
    for Requests { path, success, bad, missing } in &requests {
        let separator = if success.contains('?') { '&' } else { '?' };
        checked.get(&client, path, success, &[]).await;
        checked.get(&client, path, success, &[("if-none-match", "*")]).await;
        checked.get(&client, path, bad, &[("host", "a/b")]).await;
        checked.get(&client, path, bad, &[]).await;
        checked.get(&client, path, &format!("{success}{separator}x={long}"), &[]).await;
        if let Some(missing) = missing {
            checked.get(&client, path, missing, &[]).await;
            checked.get(&client, path, missing, &[("accept", "text/html")]).await;
        }
        let refused = limited.client();
        refused.get(success).await;
        checked.get(&refused, path, success, &[]).await;
        checked.get(&without_database.client(), path, success, &[]).await;
    }
    for path in ["/api/random?query=title:Byeolbit", "/api/exports/latest", "/api/charts/filter"] {
        let redirect = client.get(path).await;
        let operation = format!("GET {}", path.split('?').next().unwrap_or_default());
        document.check_after_redirect(&operation, &client.get(redirect.header("location")).await);
    }
    for file in ["chartsets.ndjson.zst", "rox.tar", "catalogue.sqlite.zst", "catalogue.parquet"] {
        let path = format!("/api/exports/{{name}}/{file}");
        let target = path.replace("{name}", EXPORT);
        for range in ["bytes=0-9", "bytes=999999999-"] {
            let response = client.get_with(&target, &[("range", range)]).await;
            let operation = format!("GET {path}");
            let status = document.check(&operation, &response);
            checked.statuses.insert((operation, status));
        }
    }
    let without_exports = start(database.url(), &[]);
    let latest = "/api/exports/latest";
    checked.get(&without_exports.client(), latest, latest, &[]).await;
    // Its database has no hash filter.
    let empty = TestDatabase::migrated().await;
    checked.get(&Service::start(empty.url()).client(), "/api/charts/filter", "/api/charts/filter", &[]).await;
    let (stored, _objects, url) = database_with_objects().await;
    let public = [("OBJECT_STORE_URL", &*url), ("OBJECTS_PUBLIC_URL", "https://files.example/rox")];
    let (path, target) = ("/api/charts/{hash}/rox", format!("/api/charts/{HASH}/rox"));
    checked.get(&start(stored.url(), &public).client(), path, &target, &[]).await;
    let batch = format!("{{\"hashes\":[{HASH:?}]}}");
    checked.batches(&client).await;
    for _ in 0..2 {
        checked.batch(&limited.client(), BATCH_PATH, &[JSON], &batch).await;
    }
    checked.batch(&without_database.client(), BATCH_PATH, &[JSON], &batch).await;
    // A service that has cached nothing, over a schema that it does not know.
    let broken = start(database.url(), &served);
    std::fs::write(&file, "{").expect("the manifest is written");
    database.psql("ALTER TABLE charts RENAME TO charts_of_another_version");
    database.psql("ALTER VIEW known_charts RENAME TO known_charts_of_another_version");
    database.psql("ALTER TABLE hash_filters RENAME TO hash_filters_of_another_version");
    database.psql("ALTER TABLE change_feed RENAME TO change_feed_of_another_version");
    database.psql("ALTER TABLE chartsets RENAME TO chartsets_of_another_version");
    for Requests { path, success, .. } in &requests {
        checked.get(&broken.client(), path, success, &[]).await;
    }
    checked.batch(&broken.client(), BATCH_PATH, &[JSON], &batch).await;
    // Those of a proxy in front are tested with it.
    let mut described = document.statuses();
    described.retain(|(_, status)| !["502", "504"].contains(&status.as_str()));
    let unchecked: Vec<_> = described.difference(&checked.statuses).cloned().collect();
    assert!(unchecked.is_empty(), "no response was checked of {unchecked:?}");
}
