//! The request of an example in several languages.

use super::reference::Example;
use crate::settings::PublicUrl;

/// The address of an index whose public URL is not configured.
const EXAMPLE_URL: &str = "https://charts.example";
const USER_AGENT: &str = "my-client/1.0 (me@example.org)";

/// A request in one language.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) language: &'static str,
    /// Names the code in links.
    pub(crate) anchor: &'static str,
    pub(crate) code: String,
}

/// The request of an example in each language.
pub(crate) fn of(example: &Example<'_>, public_url: Option<&PublicUrl>) -> Vec<Request> {
    let url = format!("{}{}", public_url.map_or(EXAMPLE_URL, PublicUrl::as_str), example.target);
    let body = example.request_body;
    let request = |language, anchor, code| Request { language, anchor, code };
    vec![
        request("curl", "in-curl", curl(&url, body)),
        request("Python", "in-python", python(&url, body)),
        request("JavaScript", "in-javascript", javascript(&url, body)),
        request("Rust", "in-rust", rust(&url, body)),
    ]
}

fn curl(url: &str, body: &str) -> String {
    let data = match body {
        "" => String::new(),
        body => format!(" \\\n    --header 'Content-Type: application/json' --data '{body}'"),
    };
    format!("curl --user-agent '{USER_AGENT}'{data} \\\n    '{url}'")
}

fn python(url: &str, body: &str) -> String {
    let (headers, data) = match body {
        "" => ("", String::new()),
        body => (", \"Content-Type\": \"application/json\"", format!(", data=b'''{body}'''")),
    };
    format!(
        "from urllib.request import Request, urlopen\n\n\
         headers = {{\"User-Agent\": \"{USER_AGENT}\"{headers}}}\n\
         request = Request(\"{url}\"{data}, headers=headers)\n\
         with urlopen(request) as response:\n    print(response.status, response.read())"
    )
}

fn javascript(url: &str, body: &str) -> String {
    let options = match body {
        "" => String::new(),
        body => format!(
            ", {{\n  method: \"POST\",\n  headers: {{ \"Content-Type\": \"application/json\" }},\n  \
             body: `{body}`,\n}}"
        ),
    };
    format!(
        "const response = await fetch(\"{url}\"{options});\nconsole.log(response.status, await response.text());"
    )
}

fn rust(url: &str, body: &str) -> String {
    let (method, call) = match body {
        "" => ("get", "call()".to_owned()),
        body => ("post", format!("content_type(\"application/json\")\n        .send(r#\"{body}\"#)")),
    };
    format!(
        "// Cargo.toml: `ureq = \"3\"`\n\
         fn main() -> Result<(), ureq::Error> {{\n    \
             let mut response = ureq::{method}(\"{url}\")\n        \
                 .header(\"User-Agent\", \"{USER_AGENT}\")\n        \
                 .{call}?;\n    \
             println!(\"{{}} {{}}\", response.status(), response.body_mut().read_to_string()?);\n    \
             Ok(())\n\
         }}"
    )
}
