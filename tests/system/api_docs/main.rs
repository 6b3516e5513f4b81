//! The pages for authors of clients, the OpenAPI document, and the examples of docs/snippets, over real
//! servers.
#![expect(clippy::expect_used, reason = "a test panics if its set-up fails")]

mod catalogues;
mod document;
mod fuzzing;
mod generated_clients;
mod hash_filters;
mod openapi;
mod pages;
mod readers;
mod responses;
mod snippets;

use chart_index_system_tests::{code_blocks, read};
use chart_index_tests::{Service, TestDatabase, workspace_root};

/// A chart and a chartset of the sample library.
const HASH: &str = "ec3d3891de5128da2c66057ae435300d5ef5d71101c269160eaa553534f425bb";
const CHARTSET: &str = "21642f9846d39260";

/// A service over the sample library with these settings, and its database.
async fn serve_samples(variables: &[(&str, &str)]) -> (TestDatabase, Service) {
    let database = TestDatabase::with_samples().await;
    let service = Service::with_variables(database.url(), variables);
    (database, service)
}

/// The limit of each group as settings.
fn limits(limit: &str) -> Vec<(&'static str, &str)> {
    let groups = [
        "RATE_LIMIT_LOOKUP",
        "RATE_LIMIT_ROX",
        "RATE_LIMIT_LIST",
        "RATE_LIMIT_DETAIL",
        "RATE_LIMIT_PREVIEW",
        "RATE_LIMIT_BULK",
        "RATE_LIMIT_FEED",
        "RATE_LIMIT_PAGE",
        "RATE_LIMIT_OTHER",
    ];
    groups.map(|group| (group, limit)).into()
}

/// The paths of the pages of docs/api.md and docs/formats, with the texts of these documents.
fn documents() -> Vec<(String, String)> {
    let folder = workspace_root().join("docs/formats");
    let files = std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("a file").path());
    let mut names: Vec<String> =
        files.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    names.sort();
    let formats =
        names.iter().map(|name| (format!("/docs/{name}"), read(&format!("docs/formats/{name}.md"))));
    std::iter::once(("/docs".to_owned(), read("docs/api.md"))).chain(formats).collect()
}
