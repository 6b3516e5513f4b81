//! `/docs`, the pages of docs/formats below it, and `/problems/{slug}`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use chart_index_tests::{Client, workspace_root};

use super::openapi::OpenApiDocument;
use super::snippets::{csharp_command, succeeded};
use super::{documents, read, serve_samples};

async fn page(client: &Client, path: &str) -> String {
    let response = client.get(path).await;
    assert_eq!(response.status, 200, "{path}");
    assert_eq!(response.header("content-type"), "text/html; charset=utf-8", "{path}");
    assert!(response.header("content-security-policy").starts_with("default-src 'none'"), "{path}");
    let tag = response.header("etag").to_owned();
    assert_eq!(client.get_with(path, &[("if-none-match", &tag)]).await.status, 304, "{path}");
    let head = client.request(reqwest::Method::HEAD, path, &[]).await;
    for name in ["content-type", "content-length", "etag", "cache-control", "vary"] {
        assert_eq!(head.header(name), response.header(name), "{path}: {name}");
    }
    assert_eq!((head.status.as_u16(), head.header("cache-control")), (200, "public, max-age=30"), "{path}");
    String::from_utf8(response.body).expect("UTF-8")
}

/// The paths of the pages of docs/api.md.
async fn api_paths(client: &Client) -> Vec<String> {
    let targets = attributes(&page(client, "/docs").await, "href").into_iter();
    let sections: BTreeSet<_> =
        targets.filter(|path| path.starts_with("/docs/api/") && !path.contains('#')).collect();
    assert!(sections.len() > 15, "{sections:?}");
    std::iter::once("/docs".to_owned()).chain(sections).collect()
}

/// The pages of docs/api.md, one after the other.
async fn api_pages(client: &Client) -> String {
    let mut html = String::new();
    for path in api_paths(client).await {
        html.push_str(&page(client, &path).await);
    }
    html
}

/// The values of an attribute, with their character references decoded.
fn attributes(html: &str, name: &str) -> Vec<String> {
    let start = format!(" {name}=\"");
    let values = html.split(&start).skip(1).filter_map(|rest| rest.split('"').next());
    values.map(|value| value.replace("&amp;", "&").replace("&#38;", "&")).collect()
}

#[tokio::test]
async fn links_and_anchors_resolve() {
    let (_database, service) = serve_samples(&[]).await;
    let client = service.client();
    let mut links = BTreeSet::new();
    let others = ["/docs/all".to_owned(), "/problems/rate-limited".to_owned()];
    let paths = documents().into_iter().map(|(path, _)| path).chain(api_paths(&client).await);
    for path in paths.chain(others) {
        let html = page(&client, &path).await;
        // Header and footer are those of every page.
        let main = html.split("<main").nth(1).and_then(|rest| rest.split("</main>").next()).expect("main");
        for link in attributes(main, "href").into_iter().filter(|link| link.starts_with(['/', '#'])) {
            links.insert(if link.starts_with('#') { format!("{path}{link}") } else { link });
        }
    }
    assert!(links.len() > 30, "{links:?}");
    for link in links {
        let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
        let response = client.get(path).await;
        // Examples of errors are linked as well.
        let is_example = path.starts_with("/api/") || path.starts_with("/go/");
        let statuses: &[u16] = if is_example { &[200, 302, 303, 400, 404, 410] } else { &[200, 303] };
        assert!(statuses.contains(&response.status.as_u16()), "{link}: {}", response.status);
        let html = String::from_utf8_lossy(&response.body).into_owned();
        assert!(anchor.is_empty() || attributes(&html, "id").contains(&anchor.to_owned()), "{link}");
    }
}

/// The anchor of a heading, as forges make it.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

#[tokio::test]
async fn navigation_has_all_documents_and_the_sections_of_the_page() {
    let (_database, service) = serve_samples(&[]).await;
    let client = service.client();
    let documents = documents();
    assert!(documents.len() > 5, "{documents:?}");
    for (current, text) in &documents {
        let html = page(&client, current).await;
        let nav = html.split("<nav aria-label=\"Documentation\"").nth(1).expect("a navigation");
        let nav = nav.split("</nav>").next().expect("its end");
        assert_eq!(nav.matches(" aria-current=\"page\"").count(), 1, "{current}");
        assert!(nav.contains(&format!(" href=\"{current}\" aria-current=\"page\">")), "{current}: {nav}");
        let targets = attributes(nav, "href");
        for (path, _) in &documents {
            assert!(targets.contains(path), "{current}: {path}");
        }
        for heading in text.lines().filter_map(|line| line.strip_prefix("## ")) {
            let of_api = targets.contains(&format!("/docs/api/{}", anchor(heading)));
            assert!(of_api || targets.contains(&format!("#{}", anchor(heading))), "{current}: {heading}");
        }
    }
}

/// The sections that were part of docs/api.md once.
#[tokio::test]
async fn docs_lead_from_old_anchors_to_the_documents_of_formats() {
    let (_database, service) = serve_samples(&[]).await;
    let html = api_pages(&service.client()).await;
    for (old, new) in [
        ("note-hash", "/docs/note-hash"),
        ("local-files", "/docs/note-hash#local-files"),
        ("variant", "/docs/variant"),
        ("mirrors", "/docs/change-feed#mirrors"),
        ("chart-numbers", "/docs/records#chart-numbers"),
        ("chartsets-and-ids", "/docs/records#chartsets-and-ids"),
        ("sources", "/docs/records#sources"),
        ("chartset-record", "/docs/records#chartset-record"),
        ("rox-encoding", "/docs/rox"),
    ] {
        let (_, below) = html.split_once(&format!(" id=\"{old}\"")).unwrap_or_else(|| panic!("{old}"));
        let next = below.split("</p>").next().unwrap_or_default();
        assert!(attributes(next, "href").contains(&new.to_owned()), "{old}: {next}");
    }
}

#[tokio::test]
async fn docs_show_every_operation_with_a_live_link() {
    let (_database, service) = serve_samples(&[]).await;
    let client = service.client();
    let html = api_pages(&client).await;
    let document = OpenApiDocument::of(&client).await;
    let operations = document.operations();
    for operation in &operations {
        assert!(html.contains(&format!("<code>{operation}</code>")), "{operation}");
        for parameter in document.operation(operation)["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().expect("a name");
            assert!(html.contains(&format!("<code>{name}</code>")), "{operation}: {name}");
        }
    }
    let live = html
        .split("<div class=\"operation\">")
        .skip(1)
        .filter(|part| part.contains(">Send this request</a>"))
        .count();
    // The examples of exports are errors: names of exports are those of one instance.
    let is_live = |name: &&String| name.starts_with("GET ") && !name.starts_with("GET /api/exports/");
    assert_eq!(live, operations.iter().filter(is_live).count());
    for heading in ["quick-start", "etiquette"] {
        assert!(html.contains(&format!(" id=\"{heading}\"")), "{heading}");
    }
    for name in ["errors", "rate-limits", "compatibility", "extensions", "changelog", "examples-in-code"] {
        page(&client, &format!("/docs/api/{name}")).await;
    }
    assert!(!html.contains("/readyz"), "the private listener is not for clients");
    assert!(!html.contains(" style=") && !html.contains("<script>"), "the policy forbids both");
}

/// Every section is on the page of its document, word for word.
#[tokio::test]
async fn pages_have_the_text_of_the_reference() {
    let (_database, service) = serve_samples(&[]).await;
    let client = service.client();
    let mut count = 0;
    for (path, document) in documents() {
        let html = if path == "/docs" { api_pages(&client).await } else { page(&client, &path).await };
        let text = text_of(&html);
        // Paragraphs without markup: what has markup is covered by the test of the Markdown.
        let paragraphs =
            document.split("\n\n").filter(|text| !text.contains(['`', '[', '|', '*', '-', '"', '#']));
        for paragraph in paragraphs.filter(|text| text.split_whitespace().count() > 3) {
            let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(&words), "{path}: {words}");
            count += 1;
        }
    }
    assert!(count > 5, "{count} paragraphs");
}

/// The text of HTML, with single spaces.
fn text_of(html: &str) -> String {
    let text: String =
        html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn every_problem_type_resolves() {
    let (_database, service) = serve_samples(&[]).await;
    let client = service.client();
    let document = OpenApiDocument::of(&client).await;
    let types = &document.0["components"]["schemas"]["Problem"]["properties"]["type"]["x-extensible-enum"];
    let types = types.as_array().expect("the problem types");
    assert!(types.len() > 10, "{types:?}");
    for problem in types {
        let path = problem.as_str().expect("a path");
        let text = text_of(&page(&client, path).await);
        assert!(text.contains(path), "{path}: {text}");
        for heading in ["What it means", "What to do"] {
            let rest = text.split(heading).nth(1).unwrap_or_default();
            assert!(rest.split_whitespace().count() > 3, "{path}: {heading}: {text}");
        }
    }
    for path in ["/problems/", "/problems/none", "/problems/Rate-Limited", "/problems/rate-limited/x"] {
        assert_eq!(client.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn pages_lead_to_vectors_and_that_of_the_note_hash_has_all() {
    let (_database, service) = serve_samples(&[]).await;
    let client = service.client();
    for format in ["variant", "rating", "patterns", "preview"] {
        let vectors = format!("/docs/{format}/vectors.json");
        assert!(page(&client, &format!("/docs/{format}")).await.contains(&vectors), "{format}");
        assert_eq!(client.get(&vectors).await.status, 200, "{vectors}");
    }
    assert_eq!(client.get("/docs/rox/vectors.json").await.status, 404);
    let json = client.get("/docs/note-hash/vectors.json").await;
    assert_eq!(json.header("content-type"), "application/json");
    let golden: serde_json::Value =
        serde_json::from_str(&read("crates/chartfile/golden/note_hash_v1.json")).expect("JSON");
    assert_eq!(json.json(), golden);
    let html = page(&client, "/docs/note-hash").await;
    let vectors = golden["vectors"].as_array().expect("vectors");
    for vector in vectors {
        for field in ["hash", "canonicalHex"] {
            let value = vector[field].as_str().expect("a text");
            assert!(html.contains(&format!("<code>{value}</code>")), "{value}");
        }
    }
    assert!(vectors.len() > 10);
    assert!(!html.contains("language-json"), "some of the vectors are shown twice");
}

#[tokio::test]
async fn pages_of_the_reference_are_short() {
    let (_database, service) = serve_samples(&[]).await;
    let client = service.client();
    for path in api_paths(&client).await {
        let gzip = client.get_with(&path, &[("accept-encoding", "gzip")]).await;
        assert!(gzip.body.len() <= 10_000, "{path}: {} bytes", gzip.body.len());
    }
}

#[tokio::test]
async fn endpoint_has_its_errors_and_its_request_in_five_languages() {
    let (_database, service) = serve_samples(&[]).await;
    let client = service.client();
    let lookup = page(&client, "/docs/api/chart-lookup").await;
    assert!(
        lookup.contains("/problems/malformed-hash") && !lookup.contains("/problems/malformed-body"),
        "{lookup}"
    );
    let batch = page(&client, "/docs/api/batch-lookup").await;
    assert!(
        batch.contains("/problems/malformed-body") && batch.contains("/problems/content-too-large"),
        "{batch}"
    );
    for html in [lookup, batch] {
        for anchor in ["in-curl", "in-python", "in-javascript", "in-rust", "in-csharp"] {
            assert!(
                html.contains(&format!("href=\"#{anchor}\"")) && html.contains(&format!("id=\"{anchor}\""))
            );
        }
    }
}

/// The code of a request on a page, if it has one.
fn code_of(html: &str, anchor: &str) -> Option<String> {
    let (_, code) = html.split_once(&format!("<div id=\"{anchor}\">"))?;
    let (_, code) = code.split_once("<code>")?;
    let characters = [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")];
    let code = code.split("</code>").next()?.to_owned();
    Some(characters.into_iter().fold(code, |code, (reference, character)| code.replace(reference, character)))
}

/// The command that runs a request in one of these languages.
fn request_command(anchor: &str, code: &str, folder: &Path) -> Command {
    let (program, arguments): (_, &[&str]) = match anchor {
        "in-curl" => ("sh".into(), &["-c"]),
        "in-python" => ("python3".into(), &["-c"]),
        "in-javascript" => {
            (workspace_root().join("scripts/browser"), &["node", "--input-type=module", "--eval"])
        }
        _ => {
            let file = folder.join("request.cs");
            std::fs::write(&file, csharp_program(code)).expect("a file");
            return csharp_command(&file, &folder.join("request.exe"));
        }
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(code);
    command
}

/// The statements in a method: Mono, unlike .NET, has no programs without a class.
fn csharp_program(code: &str) -> String {
    let (imports, statements) = code.split_once("\n\n").expect("imports");
    format!(
        "{imports}\nusing System.Threading.Tasks;\n
         class Program {{
             static void Main() => Run().GetAwaiter().GetResult();
             static async Task Run() {{ {statements} }}
         }}"
    )
}

/// What the pages show for these languages runs as it is.
#[tokio::test]
async fn requests_in_code_return_what_they_request() {
    let (_database, service) = serve_samples(&[]).await;
    let client = service.client();
    let base = format!("http://{}", service.address());
    let folder = tempfile::tempdir().expect("a folder");
    for (path, expected) in
        [("chart-lookup", "noteHashVersion"), ("batch-lookup", "items"), ("chartset-list", "items")]
    {
        let html = page(&client, &format!("/docs/api/{path}")).await;
        for anchor in ["in-curl", "in-python", "in-javascript", "in-csharp"] {
            let code = code_of(&html, anchor).expect("the code").replace("https://charts.example", &base);
            let output = request_command(anchor, &code, folder.path()).output().expect("the program starts");
            let printed = succeeded(&format!("{path} {anchor}: {code}"), &output);
            assert!(printed.contains(expected), "{path} {anchor}: {printed}\n{code}");
        }
    }
}

/// The programs `get_request` and `post_request` of this package have the code of every page, except for
/// addresses and bodies.
#[tokio::test]
async fn requests_in_rust_are_compiled() {
    let (_database, service) = serve_samples(&[]).await;
    let client = service.client();
    let compiled = ["get", "post"]
        .map(|method| without_values(&read(&format!("tests/system/api_docs/snippets/{method}_request.rs"))));
    let mut count = 0;
    for path in api_paths(&client).await {
        let Some(code) = code_of(&page(&client, &path).await, "in-rust") else { continue };
        let shown = without_values(&code);
        assert!(compiled.iter().any(|program| program.ends_with(&shown)), "{path}: {code}");
        count += 1;
    }
    assert!(count > 10, "{count} requests");
}

/// The code without spaces, addresses and bodies.
fn without_values(code: &str) -> String {
    let mut code: String = code.split_whitespace().collect();
    for (start, end) in [("(\"https://", "\")"), ("(r#\"", "\"#)")] {
        if let Some((before, rest)) = code.split_once(start) {
            let (_, after) = rest.split_once(end).expect("its end");
            code = format!("{before}{after}");
        }
    }
    code
}

#[tokio::test]
async fn search_finds_pages_with_all_words() {
    let (_database, service) = serve_samples(&[]).await;
    let client = service.client();
    let html = page(&client, "/docs/search?q=binary+FUSE").await;
    assert!(html.contains("<li><a href=\"/docs/hash-filter\">"), "{html}");
    let html = page(&client, "/docs/search?q=%3Cb%3Ezzz").await;
    assert!(html.contains("No page contains all of: <b>&#60;b&#62;zzz</b>"), "{html}");
    assert!(page(&client, "/docs/search").await.contains("noindex"));
}
