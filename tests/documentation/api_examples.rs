//! The examples of docs/api.md and README.md: requests and the responses of a service over the sample library.
//!
//! In docs/api.md a block of the language `http` holds the request line and its headers, an empty line, the
//! request body and another empty line if there is one, the status line, and those response headers that the
//! example shows. `UPDATE_DOCS=1` writes the status line, the values of these headers and the body. In
//! README.md a line with a `curl` command is followed by a line of output.

use chart_index_tests::{Client, Service, ServiceOptions, TestDatabase, indexer, samples};

use super::{check_or_update, code_blocks, read};

const API: &str = "docs/api.md";

/// The values in the documentation of what differs in every run.
const FIXED_TIME_MS: &str = "1790000000000";
const LINEAGE: &str = "5f0e3a1c9d2b7468";
const RETRY_AFTER: &str = "42";
const SEQUENCE: &str = "104";

/// The address of a hash filter up to its sequence.
const FILTER: &str = "/api/charts/filter/";

/// The folders that are ingested first, one after the other: that of the first page of the change feed, and the
/// one whose file becomes the ROX file of a chart that another folder contains as well.
const FIRST: [&str; 2] =
    ["alpha/900106 Haneul Yeonmot - Byeolbit Jeongwon", "alpha/900101 Paper Lanterns - Harbour Lights"];

/// The limit of a group, which an example of a 429 uses up.
const LIMIT: usize = 240;

/// A service over the sample library, with its database.
async fn serve_samples() -> (TestDatabase, Service) {
    let database = TestDatabase::migrated().await;
    // An ingest stores folders in an order that differs from run to run.
    for folder in FIRST.iter().copied().chain([""]) {
        indexer(database.url(), &["ingest", samples().join(folder).to_str().expect("UTF-8")]).succeeded();
    }
    // Each example is a client of its own, by its forwarded address.
    let arguments = ["--trusted-proxies", "127.0.0.1/32", "--rate-limit-list", "240"];
    let options = ServiceOptions { arguments: &arguments, ..ServiceOptions::default() };
    let service = Service::start_with(database.url(), &options);
    (database, service)
}

#[tokio::test]
async fn examples_match_the_responses() {
    let (_database, service) = serve_samples().await;
    let document = read(API);
    let mut parts = Vec::new();
    for (number, block) in code_blocks(&document, "http").into_iter().enumerate() {
        let address = format!("192.0.2.{number}");
        parts.push((block, Example::parse(block).render(&service.client(), &address).await));
    }
    assert!(parts.len() > 10);
    check_or_update(API, &parts);
    check_readme(&service.client()).await;
}

async fn check_readme(client: &Client) {
    let document = read("README.md");
    let [block] = code_blocks(&document, "console")[..] else { panic!("one block of commands") };
    let commands = block.split("$ curl ").skip(1);
    let mut parts = Vec::new();
    for example in commands {
        let command = example.lines().next().unwrap_or_default();
        let path = command.split("127.0.0.1:8080").nth(1).expect("an address").trim_end_matches('\'');
        let response = client.get(path).await;
        let output = if command.contains("redirect_url") {
            format!("{} {}", response.status.as_u16(), response.header("location"))
        } else {
            with_fixed_values(std::str::from_utf8(&response.body).expect("UTF-8"))
        };
        parts.push((example, format!("{command}\n{output}\n")));
    }
    assert!(parts.len() > 1);
    check_or_update("README.md", &parts);
}

struct Example<'a> {
    /// The request as it is documented.
    request: &'a str,
    method: &'a str,
    target: &'a str,
    request_headers: Vec<(&'a str, &'a str)>,
    request_body: &'a str,
    status_line: &'a str,
    /// The names of the response headers that are shown.
    shown: Vec<&'a str>,
}

impl<'a> Example<'a> {
    fn parse(block: &'a str) -> Self {
        let end = block.find("\n\nHTTP/1.1 ").expect("an empty line before the response");
        let (request, response) = (&block[..end], &block[end + 2..]);
        let (request_head, request_body) = request.split_once("\n\n").unwrap_or((request, ""));
        let mut lines = request_head.lines();
        let (method, target) = lines.next().and_then(|line| line.split_once(' ')).expect("a request line");
        let (head, _) = response.split_once("\n\n").unwrap_or((response, ""));
        let mut response_lines = head.lines();
        let status_line = response_lines.next().expect("a status line");
        let header =
            |line: &'a str| line.split_once(':').map(|(name, value)| (name, value.trim())).expect("a header");
        let shown = response_lines.map(|line| header(line).0).collect();
        let request_headers = lines.map(header).collect();
        Self { request, method, target, request_headers, request_body, status_line, shown }
    }

    /// The block as it should be.
    async fn render(&self, client: &Client, address: &str) -> String {
        let mut headers = self.request_headers.clone();
        headers.push(("X-Forwarded-For", address));
        if self.status_line.contains(" 429 ") {
            for _ in 0..LIMIT {
                client.get_with(self.target, &headers).await;
            }
        }
        let method = self.method.parse().expect("a method");
        let target = match self.target.strip_prefix(FILTER) {
            Some(SEQUENCE) => client.get(FILTER.trim_end_matches('/')).await.header("location").to_owned(),
            _ => self.target.to_owned(),
        };
        let response = client.send(method, &target, &headers, self.request_body.to_owned()).await;
        let content = Content::new(response.header("content-type"), &response.body);
        let mut lines = vec![self.request.to_owned(), String::new(), format!("HTTP/1.1 {}", response.status)];
        lines.extend(self.shown.iter().map(|name| {
            let value = content.fixed_header(name, response.header(name));
            format!("{name}: {value}")
        }));
        if let Some(json) = content.json {
            lines.extend([String::new(), indented(&json, 0)]);
        }
        lines.join("\n") + "\n"
    }
}

/// A body with fixed values in the place of those that differ in every run.
struct Content {
    /// Its tag, and the one that the documentation shows.
    tags: [String; 2],
    json: Option<String>,
}

impl Content {
    fn new(media_type: &str, body: &[u8]) -> Self {
        let json = media_type.ends_with("json").then(|| std::str::from_utf8(body).expect("UTF-8"));
        let fixed = json.map(with_fixed_values);
        let shown = fixed.as_deref().map_or(body, str::as_bytes);
        Self { tags: [tag(body), tag(shown)], json: fixed }
    }

    fn fixed_header(&self, name: &str, value: &str) -> String {
        let seconds =
            |digits: &str| assert!((1..=60).contains(&digits.parse().unwrap_or(0)), "{name}: {value}");
        match (name, value.split_once(";t=")) {
            ("ETag", _) if value == self.tags[0] => self.tags[1].clone(),
            ("Location", _) if value.starts_with(FILTER) => format!("{FILTER}{SEQUENCE}"),
            ("Retry-After", _) => {
                seconds(value);
                RETRY_AFTER.to_owned()
            }
            ("RateLimit", Some((state, reset))) => {
                seconds(reset);
                format!("{state};t={RETRY_AFTER}")
            }
            _ => value.to_owned(),
        }
    }
}

/// docs/api.md, "Caching and conditional requests": the tag of a JSON body is a digest of it.
fn tag(body: &[u8]) -> String {
    format!("\"{}\"", &blake3::hash(body).to_hex()[..32])
}

fn with_fixed_values(json: &str) -> String {
    let times = ["\"checkedAtMs\":", "\"changedAtMs\":", "\"updatedAtMs\":"];
    let fields = times.map(|field| (field, FIXED_TIME_MS)).into_iter().chain([("\"lineage\":\"", LINEAGE)]);
    fields.fold(json.to_owned(), |json, (field, value)| {
        let mut parts = json.split(field);
        let start = parts.next().unwrap_or_default();
        let fixed = parts.map(|part| {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
            format!("{field}{value}{rest}")
        });
        std::iter::once(start.to_owned()).chain(fixed).collect()
    })
}

/// Compact JSON as it is shown: what fits is on one line.
fn indented(json: &str, depth: usize) -> String {
    const WIDTH: usize = 100;
    let Some(inside) = json.strip_prefix(['{', '[']).and_then(|rest| rest.strip_suffix(['}', ']'])) else {
        return json.to_owned();
    };
    let (open, close) = (&json[..1], &json[json.len() - 1..]);
    let parts: Vec<String> = elements(inside)
        .into_iter()
        .map(|element| match element.split_once("\":").filter(|_| open == "{") {
            Some((name, value)) => format!("{name}\": {}", indented(value, depth + 1)),
            None => indented(element, depth + 1),
        })
        .collect();
    let line = parts.join(", ");
    if depth > 0 && 2 * depth + line.len() <= WIDTH && !line.contains('\n') {
        return format!("{open}{line}{close}");
    }
    let margin = "  ".repeat(depth);
    let lines: Vec<String> = parts.into_iter().map(|part| format!("{margin}  {part}")).collect();
    format!("{open}\n{}\n{margin}{close}", lines.join(",\n"))
}

/// The elements of an object or an array, of the text between its brackets.
fn elements(inside: &str) -> Vec<&str> {
    let (mut depth, mut in_string, mut escaped, mut start) = (0, false, false, 0);
    let mut found = Vec::new();
    for (index, byte) in inside.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => {
                found.push(&inside[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    if !inside.is_empty() {
        found.push(&inside[start..]);
    }
    found
}
