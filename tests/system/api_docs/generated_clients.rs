//! Generators make clients from the OpenAPI documents, which compile and call every operation.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use chart_index_tests::{Service, TestDatabase, workspace_root};

use super::openapi::OpenApiDocument;
use super::responses::{exports, with_exports};
use super::snippets::succeeded;
use super::{limits, serve_samples};

/// What the programs call beside the operations.
const STATUSES: [&str; 4] = ["304", "400", "404", "429"];

async fn run(arguments: Vec<String>) -> Output {
    let mut command = Command::new(workspace_root().join("scripts/generated-clients"));
    let run = move || command.args(arguments).output().expect("scripts/generated-clients starts");
    tokio::task::spawn_blocking(run).await.expect("no panic")
}

/// Calls every operation with the client of a generator.
async fn call(generator: &str) {
    let database = TestDatabase::with_samples().await;
    let exports = exports(&database);
    let served = with_exports(exports.path());
    let start = |variables: &[(&str, &str)]| Service::with_variables(database.url(), variables);
    let (service, limited) = (start(&served), start(&limits("1")));
    let document = OpenApiDocument::of(&service.client()).await;
    let id = |operation: &String| document.operation(operation)["operationId"].as_str().map(str::to_owned);
    let operations = document.operations().iter().filter_map(id).collect::<BTreeSet<String>>();
    let expected = operations.into_iter().chain(STATUSES.map(str::to_owned)).collect::<BTreeSet<_>>();

    let urls = [&service, &limited].map(|service| format!("http://{}", service.address()));
    let arguments = ["call", &urls[0], &urls[1], generator];
    let output = run(arguments.map(str::to_owned).to_vec()).await;
    let called = succeeded(generator, &output);
    assert_eq!(called.lines().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
}

#[tokio::test]
async fn openapi_fetch_calls_every_operation() {
    call("openapi-fetch").await;
}

#[tokio::test]
async fn hey_api_calls_every_operation() {
    call("hey-api").await;
}

#[tokio::test]
async fn openapi_python_client_calls_every_operation() {
    call("openapi-python-client").await;
}

#[tokio::test]
#[ignore = "long: compiles the client with its dependencies"]
async fn long_openapi_generator_rust_calls_every_operation() {
    call("openapi-generator-rust").await;
}

#[tokio::test]
async fn redocly_finds_nothing() {
    // A document without a licence is a warning.
    let (_database, service) = serve_samples(&[("DATA_LICENSE", "CC0-1.0")]).await;
    let output = run(vec!["lint".to_owned(), format!("http://{}", service.address())]).await;
    succeeded("redocly", &output);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(!printed.contains("warning"), "{printed}");
}
