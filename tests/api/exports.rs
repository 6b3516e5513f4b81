//! `/api/exports/` (docs/api.md, "Exports").

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use hyper::Method;

use super::*;

const CHARTSETS: &str = "chartsets.ndjson.zst";
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// An index with two charts and an export.
struct Exported {
    database: TestDatabase,
    exports: tempfile::TempDir,
    service: Service,
    name: String,
}

impl Exported {
    /// One that tests share, which only read it.
    async fn shared() -> Arc<Self> {
        static EXPORTED: Shared<Exported> = Shared::empty();
        EXPORTED.get_or_start(Self::new).await
    }

    async fn new() -> Self {
        let library = Library::new();
        library.osu("alpha/12 one/a.osu", ChartSpec::numbered(1));
        library.osu("alpha/13 two/b.osu", ChartSpec::numbered(2));
        let (database, exports) = (TestDatabase::migrated().await, tempfile::tempdir().unwrap());
        indexer(database.url(), &["ingest", &library.argument()]).succeeded();
        let directory = exports.path().to_str().unwrap();
        let variables = [("EXPORTS_DIR", directory)];
        let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
        let service = Service::start_with(database.url(), &options);
        let exported = Self { database, exports, service, name: "20261122T182049Z-12345".to_owned() };
        exported.export(&exported.name, &["--rox", "--sqlite", "--parquet"]);
        exported
    }

    /// Writes an export, and renames it: two exports of the same second would have the same name.
    fn export(&self, name: &str, arguments: &[&str]) {
        let directory = self.exports.path().join("new");
        let arguments = [&["export", directory.to_str().unwrap()], arguments].concat();
        let printed = indexer(self.database.url(), &arguments).succeeded();
        let path = printed.split_once(": ").unwrap().0;
        assert!(Path::new(path).starts_with(&directory), "{printed}");
        fs::rename(path, self.exports.path().join(name)).unwrap();
    }

    fn path(&self, file: &str) -> String {
        format!("/api/exports/{}/{file}", self.name)
    }

    fn content(&self, file: &str) -> Vec<u8> {
        fs::read(self.exports.path().join(&self.name).join(file)).unwrap()
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        self.service.client().get_with(path, headers).await
    }
}

#[tokio::test]
async fn latest_redirects_to_the_newest_export() {
    let exported = Exported::new().await;
    fs::create_dir(exported.exports.path().join("20010101T000000Z-99999")).unwrap();
    fs::create_dir(exported.exports.path().join("99990101T000000Z")).unwrap();
    fs::create_dir(exported.exports.path().join(".partial")).unwrap();
    fs::write(exported.exports.path().join("99991231T235959Z-1"), "a file").unwrap();
    let response = exported.get("/api/exports/latest", &[]).await;
    assert_eq!(
        (response.status.as_u16(), response.header("location")),
        (302, &*exported.path("manifest.json"))
    );
    assert_eq!(response.header("cache-control"), "public, max-age=60");
    let manifest = exported.get(response.header("location"), &[]).await;
    assert_eq!((manifest.status.as_u16(), manifest.body.clone()), (200, exported.content("manifest.json")));
    assert_eq!(manifest.header("cache-control"), IMMUTABLE);
    assert_eq!(manifest.header("content-type"), "application/json");
    let tag = manifest.header("etag");
    let unmodified = exported.get(response.header("location"), &[("if-none-match", tag)]).await;
    assert_eq!((unmodified.status.as_u16(), unmodified.body.len()), (304, 0));
    let newer = exported.exports.path().join("99990101T000000Z-1");
    fs::rename(exported.exports.path().join(&exported.name), newer).unwrap();
    let response = exported.get("/api/exports/latest", &[]).await;
    assert_eq!(response.header("location"), "/api/exports/99990101T000000Z-1/manifest.json");
}

#[tokio::test]
async fn signature_is_served_if_there_is_one() {
    let exported = Exported::new().await;
    let path = exported.path("manifest.json.minisig");
    assert_eq!(exported.get(&path, &[]).await.status, 404);
    let file = exported.exports.path().join(&exported.name).join("manifest.json.minisig");
    fs::write(file, "a signature\n").unwrap();
    let signature = exported.get(&path, &[]).await;
    assert_eq!((signature.status.as_u16(), &*signature.body), (200, &b"a signature\n"[..]));
    assert_eq!(signature.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(signature.header("cache-control"), IMMUTABLE);
    let tag = signature.header("etag");
    assert_eq!(exported.get(&path, &[("if-none-match", tag)]).await.status, 304);
    exported.database.psql(&format!("INSERT INTO removals VALUES ('\\x{}', 1)", "00".repeat(32)));
    assert_eq!(exported.get(&path, &[]).await.status, 404);
}

/// Exports from before a removal may contain what was removed.
#[tokio::test]
async fn exports_from_before_a_removal_are_not_served() {
    let exported = Exported::new().await;
    let tag = exported.get(&exported.path(CHARTSETS), &[]).await.header("etag").to_owned();
    let paths = ["/api/exports/latest".to_owned()]
        .into_iter()
        .chain(["manifest.json", CHARTSETS, "rox.tar"].map(|file| exported.path(file)));
    let paths: Vec<String> = paths.collect();
    let statuses = async || {
        let mut statuses = Vec::new();
        for path in &paths {
            let response = exported.get(path, &[("if-none-match", &tag)]).await;
            if response.status == 404 {
                assert_eq!(response.json()["type"], "/problems/export-withdrawn");
                assert_eq!(
                    (response.header("retry-after"), response.header("cache-control")),
                    ("60", "no-store")
                );
            }
            statuses.push(response.status.as_u16());
        }
        statuses
    };
    assert_eq!(statuses().await, [302, 200, 304, 200]);
    let unknown = format!("INSERT INTO removals VALUES ('\\x{}', 1)", "00".repeat(32));
    exported.database.psql(&unknown);
    assert_eq!(statuses().await, [404; 4]);
    indexer(exported.database.url(), &["restore", "chart", &"00".repeat(32)]).succeeded();
    assert_eq!(statuses().await, [404; 4], "also once it is restored");
    // It was written while the clock was ahead.
    let later = exported.exports.path().join("99990101T000000Z-1");
    fs::rename(exported.exports.path().join(&exported.name), later).unwrap();
    exported.export(&exported.name, &["--rox"]);
    assert_eq!(statuses().await, [302, 200, 304, 200]);
}

#[tokio::test]
async fn files_are_sent_as_they_are() {
    let exported = Exported::shared().await;
    let manifest = exported.get(&exported.path("manifest.json"), &[]).await.json();
    for (file, media_type) in [
        (CHARTSETS, "application/zstd"),
        ("rox.tar", "application/x-tar"),
        ("catalogue.sqlite.zst", "application/zstd"),
        ("catalogue.parquet", "application/vnd.apache.parquet"),
    ] {
        let (path, content) = (exported.path(file), exported.content(file));
        let response = exported.get(&path, &[("accept-encoding", "gzip")]).await;
        assert_eq!((response.status.as_u16(), &response.body), (200, &content), "{file}");
        let described = manifest["files"].as_array().unwrap();
        let described = described.iter().find(|described| described["name"] == file).unwrap();
        let tag = format!("\"{}\"", described["blake3"].as_str().unwrap());
        let disposition = format!("attachment; filename=\"{file}\"");
        let length = content.len().to_string();
        let expected = [
            ("etag", &*tag),
            ("cache-control", IMMUTABLE),
            ("content-type", media_type),
            ("content-disposition", &disposition),
            ("content-length", &length),
            ("accept-ranges", "bytes"),
            ("x-content-type-options", "nosniff"),
            ("content-encoding", ""),
        ];
        for (name, value) in expected {
            assert_eq!(response.header(name), value, "{file}: {name}");
        }
        let head = exported.service.client().request(Method::HEAD, &path, &[("range", "bytes=0-1")]).await;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0), "a range is for GET");
        for (name, value) in expected {
            assert_eq!(head.header(name), value, "HEAD {file}: {name}");
        }
        for headers in [&[("if-none-match", &*tag)][..], &[("if-none-match", &tag), ("range", "bytes=0-1")]] {
            let unmodified = exported.get(&path, headers).await;
            assert_eq!((unmodified.status.as_u16(), unmodified.body.len()), (304, 0), "{headers:?}");
            assert_eq!((unmodified.header("etag"), unmodified.header("cache-control")), (&*tag, IMMUTABLE));
        }
    }
}

#[tokio::test]
async fn download_is_continued_by_a_range() {
    let exported = Exported::shared().await;
    let (path, content) = (exported.path("rox.tar"), exported.content("rox.tar"));
    let (size, tag) =
        (content.len(), exported.get(&exported.path("rox.tar"), &[]).await.header("etag").to_owned());
    let (first, rest) = (format!("bytes=0-{}", size / 2), format!("bytes={}-", size / 2 + 1));
    let mut parts = Vec::new();
    for (range, headers) in [(&first, vec![]), (&rest, vec![("if-range", &*tag)])] {
        let headers = [&[("range", &**range)], &headers[..]].concat();
        let response = exported.get(&path, &headers).await;
        assert_eq!((response.status.as_u16(), response.header("etag")), (206, &*tag), "{range}");
        let end = parts.len() + response.body.len() - 1;
        assert_eq!(response.header("content-range"), format!("bytes {}-{end}/{size}", parts.len()));
        assert_eq!(response.header("content-length"), response.body.len().to_string());
        assert_eq!(response.header("cache-control"), IMMUTABLE);
        parts.extend(response.body);
    }
    assert_eq!(parts, content);
    let last = exported.get(&path, &[("range", "bytes=-100")]).await;
    assert_eq!((last.status.as_u16(), &last.body[..]), (206, &content[size - 100..]));
    for headers in [
        vec![("range", "bytes=5-9"), ("if-range", "\"other\"")],
        vec![("range", "bytes=5-9"), ("if-range", "Sun, 22 Nov 2026 18:20:49 GMT")],
        vec![("range", "bytes=0-1,5-9")],
        vec![("range", "bytes=9-5")],
        vec![("range", "items=0-1")],
    ] {
        let whole = exported.get(&path, &headers).await;
        assert_eq!((whole.status.as_u16(), &whole.body), (200, &content), "{headers:?}");
        assert_eq!(whole.header("content-range"), "");
    }
    let beyond = exported.get(&path, &[("range", &format!("bytes={size}-"))]).await;
    assert_eq!((beyond.status.as_u16(), beyond.header("content-range")), (416, &*format!("bytes */{size}")));
    assert_eq!(beyond.json()["type"], "/problems/range-not-satisfiable");
    assert_eq!(beyond.header("cache-control"), "no-store");
}

#[tokio::test]
async fn what_is_no_export_is_404() {
    let exported = Exported::new().await;
    fs::write(exported.exports.path().join("secret"), "secret").unwrap();
    fs::write(exported.exports.path().join(&exported.name).join("notes.txt"), "secret").unwrap();
    let plain = "20010102T000000Z-1";
    exported.export(plain, &[]);
    let name = &exported.name;
    for path in [
        "/api/exports".to_owned(),
        "/api/exports/".to_owned(),
        format!("/api/exports/{name}"),
        format!("/api/exports/{name}/"),
        format!("/api/exports/{name}/notes.txt"),
        format!("/api/exports/{plain}/rox.tar"),
        format!("/api/exports/{plain}/catalogue.sqlite.zst"),
        format!("/api/exports/{plain}/catalogue.parquet"),
        format!("/api/exports/{name}/manifest.json.minisig"),
        "/api/exports/20010101T000000Z-1/manifest.json".to_owned(),
        "/api/exports/20010101T000000Z-1/rox.tar".to_owned(),
        "/api/exports/latest/manifest.json".to_owned(),
        "/api/exports/secret/manifest.json".to_owned(),
        "/api/exports/.partial/manifest.json".to_owned(),
        format!("/api/exports/{name}%00/manifest.json"),
        format!("/api/exports/%FF/{CHARTSETS}"),
    ] {
        let response = exported.get(&path, &[]).await;
        assert_eq!(response.status, 404, "{path}");
        assert_eq!(response.json()["type"], "/problems/not-found", "{path}");
    }
    let without = Service::start(exported.database.url());
    for path in ["/api/exports/latest".to_owned(), exported.path("manifest.json"), exported.path("rox.tar")] {
        assert_eq!(without.client().get(&path).await.status, 404, "{path} without EXPORTS_DIR");
    }
}

/// As bytes: clients resolve `..` before they send a path.
#[tokio::test]
async fn no_path_leads_out_of_the_folder() {
    let exported = Exported::shared().await;
    let name = &exported.name;
    let outside = exported.exports.path().join("../manifest.json");
    for path in [
        "/api/exports/../manifest.json".to_owned(),
        "/api/exports/../../../../etc/passwd".to_owned(),
        "/api/exports/..%2f../manifest.json".to_owned(),
        "/api/exports/%2e%2e/manifest.json".to_owned(),
        "/api/exports/%2e%2e%2f%2e%2e%2fetc/manifest.json".to_owned(),
        format!("/api/exports/{name}/../{name}/manifest.json"),
        format!("/api/exports/{name}%2f..%2f{name}/manifest.json"),
        format!("/api/exports/{name}/..%2f..%2fsecret"),
        format!("/api/exports/{name}\\..\\{name}/manifest.json"),
        "/api/exports//manifest.json".to_owned(),
        "/api/exports/./manifest.json".to_owned(),
    ] {
        let mut connection = TcpStream::connect(exported.service.address()).unwrap();
        write!(connection, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 404 "), "{path}: {response}");
    }
    assert!(!outside.exists());
}

#[tokio::test]
async fn damaged_exports_are_errors() {
    let exported = Exported::new().await;
    let folder = exported.exports.path().join(&exported.name);
    fs::write(folder.join("rox.tar"), "short").unwrap();
    let response = exported.get(&exported.path("rox.tar"), &[]).await;
    assert_eq!(
        (response.status.as_u16(), &*response.json()["type"].to_string()),
        (500, "\"/problems/internal\"")
    );
    fs::write(folder.join("manifest.json"), "{").unwrap();
    assert_eq!(exported.get(&exported.path(CHARTSETS), &[]).await.status, 500);
    // A path that is not a folder may be one that is not mounted.
    let file = folder.join("manifest.json");
    let variables = [("EXPORTS_DIR", file.to_str().unwrap())];
    let options = ServiceOptions { variables: &variables, ..ServiceOptions::default() };
    let service = Service::start_with(exported.database.url(), &options);
    let response = service.client().get("/api/exports/latest").await;
    assert_eq!((response.status.as_u16(), response.header("retry-after")), (503, "5"));
}
