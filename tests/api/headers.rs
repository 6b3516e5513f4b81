//! HEAD, conditional requests, content encodings and CORS of all endpoints (docs/api.md, "Caching and
//! conditional requests" and "CORS").

use super::*;
use reqwest::Method;

fn library() -> Library {
    let library = Library::new();
    for number in 1..=20 {
        library.osu(&format!("alpha/{number} set/a.osu"), ChartSpec::numbered(number));
    }
    library
}

async fn index_and_paths() -> (Index, [String; 5]) {
    static INDEX: Shared<Instance> = Shared::empty();
    let chart = ChartSpec::numbered(1).note_hash();
    let index = Index::shared(&INDEX, library).await;
    let id = index.list("perPage=1").await["items"][0]["id"].as_str().unwrap().to_owned();
    let paths = [
        format!("/api/charts/{chart}"),
        format!("/api/charts/{chart}/rox"),
        "/api/chartsets".to_owned(),
        format!("/api/chartsets/{id}"),
        format!("/api/charts/{chart}/preview"),
    ];
    (index, paths)
}

/// HEAD has the headers of GET and no body.
#[tokio::test]
async fn head_has_the_headers_of_get() {
    let (index, paths) = index_and_paths().await;
    let id = index.list("perPage=1").await["items"][0]["id"].as_str().unwrap().to_owned();
    let others = [
        format!("/go/chartset/{id}"),
        format!("/api/charts/{}/rox", "0".repeat(64)),
        "/nowhere".to_owned(),
        "/".to_owned(),
    ];
    for path in paths.into_iter().chain(others) {
        for encoding in ["identity", "gzip"] {
            let accepted = [("accept-encoding", encoding)];
            let get = index.client.get_with(&path, &accepted).await;
            let head = index.client.request(Method::HEAD, &path, &accepted).await;
            assert_eq!((head.status, head.body.len()), (get.status, 0), "{path}");
            assert_eq!(get.header("content-length"), get.body.len().to_string(), "{path}");
            for name in [
                "content-type",
                "content-length",
                "content-encoding",
                "etag",
                "cache-control",
                "vary",
                "location",
                "content-disposition",
                "content-security-policy",
            ] {
                assert_eq!(head.header(name), get.header(name), "{path} as {encoding}: {name}");
            }
        }
    }
}

/// A 304 has `ETag`, `Cache-Control` and `Vary` of the full response, and nothing of its content.
fn assert_not_modified(response: &Response, full: &Response, what: &str) {
    assert_eq!((response.status.as_u16(), response.body.len()), (304, 0), "{what}");
    for name in ["etag", "cache-control", "vary"] {
        assert_eq!(response.header(name), full.header(name), "{what}: {name}");
    }
    for name in ["content-type", "content-length", "content-encoding"] {
        assert_eq!(response.header(name), "", "{what}: {name}");
    }
}

/// `If-None-Match` takes lists, weak tags and `*` (RFC 9110).
#[tokio::test]
async fn if_none_match_takes_lists_weak_tags_and_a_star() {
    let (index, paths) = index_and_paths().await;
    for path in paths {
        let full = index.get(&path).await;
        let tag = full.header("etag").to_owned();
        for condition in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag} , \"y,z\""), "*".to_owned()]
        {
            for method in [Method::GET, Method::HEAD] {
                let response = index.client.request(method, &path, &[("if-none-match", &condition)]).await;
                assert_not_modified(&response, &full, &format!("{path}: {condition}"));
            }
        }
        for condition in ["\"x\"", "W/\"x\"", &tag[1..tag.len() - 1], ""] {
            let response = index.client.get_with(&path, &[("if-none-match", condition)]).await;
            assert_eq!(response.status, 200, "{path}: {condition}");
        }
    }
}

/// A strong tag identifies the bytes that are sent (RFC 9110, section 8.8.1).
#[tokio::test]
async fn tag_is_a_digest_of_the_bytes_sent() {
    let (index, paths) = index_and_paths().await;
    for path in ["/api/chartsets", &paths[0], &paths[3], &paths[4]] {
        for encoding in ["identity", "gzip"] {
            let response = index.client.get_with(path, &[("accept-encoding", encoding)]).await;
            if path == "/api/chartsets" {
                assert_eq!(response.header("content-encoding") == "gzip", encoding == "gzip");
            }
            let digest = blake3::hash(&response.body).to_hex();
            assert_eq!(response.header("etag"), format!("\"{}\"", &digest[..32]), "{path} as {encoding}");
            assert_eq!(response.header("vary"), "Accept-Encoding", "{path}");
            let conditions = [("accept-encoding", encoding), ("if-none-match", response.header("etag"))];
            let again = index.client.get_with(path, &conditions).await;
            assert_not_modified(&again, &response, &format!("{path} as {encoding}"));
        }
    }
}

/// docs/api.md, "Conventions": whatever its method, no request changes data. Nor does a response have an image
/// or audio.
#[tokio::test]
async fn no_request_changes_data_or_returns_images_or_audio() {
    let (index, paths) = index_and_paths().await;
    let [chart, id] = [&paths[0], &paths[3]].map(|path| path.rsplit('/').next().unwrap());
    let data = || {
        index.database.psql(
            "SELECT oid::regclass, md5(table_to_xml(oid, true, false, '')::text) FROM pg_class
             WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1",
        )
    };
    let before = data();
    assert_eq!(index.client.look_up("", &serde_json::json!({ "hashes": [chart] })).await.status, 200);
    for path in paths_of_all_routes(&index.client, &[chart, id, "1"]).await {
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let response = index.client.request(method.clone(), &path, &[]).await;
            let media_type = response.header("content-type");
            for kind in ["image/", "audio/", "video/"] {
                assert!(!media_type.starts_with(kind), "{method} {path}: {media_type}");
            }
        }
    }
    assert_eq!(data(), before);
}

/// docs/api.md, "CORS".
#[tokio::test]
async fn any_origin_may_read() {
    let (index, paths) = index_and_paths().await;
    let origin = ("origin", "https://page.example");
    let batch = "/api/charts/lookup";
    for path in paths.iter().map(String::as_str).chain(["/nowhere", "/api/charts/bad", batch]) {
        let response = index.client.get_with(path, &[origin]).await;
        assert_eq!(response.header("access-control-allow-origin"), "*");
        assert_eq!(response.header("access-control-allow-credentials"), "");
        let exposed = response.header("access-control-expose-headers").to_ascii_lowercase();
        for name in ["etag", "retry-after", "ratelimit", "ratelimit-policy", "content-disposition"] {
            assert!(exposed.split(',').any(|exposed| exposed.trim() == name), "{path}: {name} in {exposed}");
        }
        let preflight_headers = [
            origin,
            ("access-control-request-method", "GET"),
            ("access-control-request-headers", "if-none-match"),
        ];
        let preflight = index.client.request(Method::OPTIONS, path, &preflight_headers).await;
        assert!(preflight.status.is_success(), "{path}: {}", preflight.status);
        let methods = if path == batch { "POST" } else { "GET, HEAD" };
        assert_eq!(preflight.header("access-control-allow-methods"), methods, "{path}");
        assert_eq!(preflight.header("access-control-allow-headers"), "*", "{path}");
    }
}
