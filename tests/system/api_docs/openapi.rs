//! The OpenAPI document, and whether a response is one that it describes.

use std::collections::BTreeSet;

use chart_index_tests::{Client, Response};
use serde_json::{Value, json};

/// Response headers that are either described or not sent.
const DESCRIBED_HEADERS: [&str; 11] = [
    "Accept",
    "Cache-Control",
    "Content-Disposition",
    "ETag",
    "Location",
    "RateLimit",
    "RateLimit-Policy",
    "Retry-After",
    "Vary",
    "X-Request-Id",
    "X-Search-Engine",
];

/// The document that a service serves.
pub(crate) struct OpenApiDocument(pub(crate) Value);

impl OpenApiDocument {
    pub(crate) async fn of(client: &Client) -> Self {
        Self(client.get("/docs/openapi.json").await.json())
    }

    /// The path templates with an operation.
    pub(crate) fn paths(&self) -> Vec<&str> {
        self.0["paths"].as_object().expect("paths").keys().map(String::as_str).collect()
    }

    /// The names of the operations, such as `GET /api/chartsets`.
    pub(crate) fn operations(&self) -> Vec<String> {
        let methods = |path: &str| -> Vec<String> {
            self.0["paths"][path].as_object().expect("methods").keys().cloned().collect()
        };
        let of_path =
            |path| methods(path).into_iter().map(move |method| format!("{} {path}", method.to_uppercase()));
        self.paths().into_iter().flat_map(of_path).collect()
    }

    /// Panics if the document has no operation with this name.
    pub(crate) fn operation(&self, name: &str) -> &Value {
        let (method, path) = name.split_once(' ').expect("a method and a path");
        &self.0["paths"][path][method.to_lowercase()]
    }

    /// The operations with their statuses, without the responses that follow a redirect.
    pub(crate) fn statuses(&self) -> BTreeSet<(String, String)> {
        let statuses = |name: &str| -> Vec<String> {
            let responses = self.operation(name)["responses"].as_object().expect("responses").iter();
            let own = responses.filter(|(_, response)| response["x-after-redirect"].is_null());
            own.map(|(status, _)| status.clone()).collect()
        };
        let operations = self.operations().into_iter();
        operations
            .flat_map(|name| statuses(&name).into_iter().map(move |status| (name.clone(), status)))
            .collect()
    }

    /// What is wrong with a value, by a schema of the document.
    pub(crate) fn errors(&self, schema: &Value, value: &Value) -> Vec<String> {
        let mut root = schema.clone();
        root["components"] = self.0["components"].clone();
        let validator = jsonschema::validator_for(&root).expect("a valid schema");
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }

    /// Asserts that the response after the redirect of this operation is as described.
    pub(crate) fn check_after_redirect(&self, operation: &str, response: &Response) {
        let described = &self.operation(operation)["responses"][response.status.as_str()];
        assert_eq!(described["x-after-redirect"], true, "{operation}: {}", response.status);
        self.check_body(operation, described, response);
    }

    /// Asserts that a response to a request of this operation is as described. Returns its status.
    pub(crate) fn check(&self, operation: &str, response: &Response) -> String {
        let status = response.status.as_str().to_owned();
        let described = &self.operation(operation)["responses"][&status];
        let body = String::from_utf8_lossy(&response.body);
        assert!(described.is_object(), "{operation}: {status} is not described: {body}");
        self.check_headers(operation, described, response);
        self.check_body(operation, described, response);
        status
    }

    fn check_headers(&self, operation: &str, described: &Value, response: &Response) {
        for name in DESCRIBED_HEADERS {
            let (header, sent) = (&described["headers"][name], response.headers.get(name));
            let context = format!("{operation} {} {name}", response.status);
            let is_optional = match name {
                // Only of an export that was withdrawn, not of one that there never was.
                "Retry-After" => response.status == 404,
                // Not of a 400 for the `Host`, which counts in another group, nor of what a cache may keep.
                "RateLimit" | "RateLimit-Policy" => {
                    response.status == 400 || response.header("cache-control") != "no-store"
                }
                _ => false,
            };
            let is_described = header.is_object() == sent.is_some() || is_optional && header.is_object();
            assert!(is_described, "{context}: {sent:?}");
            let Some(sent) = sent.map(|value| value.to_str().expect("text")) else { continue };
            let is_integer = header["schema"]["type"] == "integer";
            let value = if is_integer { json!(sent.parse::<u64>().expect("digits")) } else { json!(sent) };
            assert_eq!(self.errors(&header["schema"], &value), [""; 0], "{context}: {sent}");
        }
    }

    fn check_body(&self, operation: &str, described: &Value, response: &Response) {
        let context = format!("{operation} {}", response.status);
        let Some(media_types) = described["content"].as_object() else {
            assert!(response.body.is_empty(), "{context} has a body");
            return;
        };
        let media_type = response.header("content-type").split(';').next().unwrap_or_default();
        let media = media_types.get(media_type).unwrap_or_else(|| panic!("{context}: {media_type}"));
        if media_type.ends_with("json") {
            assert_eq!(self.errors(&media["schema"], &response.json()), [""; 0], "{context}");
        } else {
            assert_eq!(media["schema"]["type"], "string", "{context}");
        }
    }
}
