//! The router and the OpenAPI document.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use chart_index_browse::{BrowseState, SearchEngines};
use chart_index_bulk::{BulkOptions, ExportsSettings, LongPolls};
use chart_index_cache::{Cache, CacheConfig, CacheConnections};
use chart_index_cli::OperatorArguments;
use chart_index_domain::search::TypedQuery;
use chart_index_http::{ResponseCache, SourcePages};
use chart_index_lookup::LookupState;
use chart_index_ratelimit::{Group, Limits};
use chart_index_store::{CatalogueWatch, PostgresSearch, Store, StoreConfig};
use serde_json::json;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use utoipa::openapi::OpenApi;

use super::*;
use crate::settings::PagesSettings;

/// The method, the template and the group of all routes of the API.
fn routes() -> Vec<(&'static str, &'static str, Group)> {
    let cache = Cache::new(CacheConfig::default(), CacheConnections::disabled());
    let cache = ResponseCache::new(cache);
    // Nothing listens on port 1.
    let store = Store::new(&StoreConfig::new("postgres://nobody@127.0.0.1:1/none".parse().unwrap()));
    let source_pages = SourcePages {
        alpha_source_page: "https://alpha.example/sets".parse().unwrap(),
        beta_source_page: "https://beta.example/packs".parse().unwrap(),
    };
    let lookup = chart_index_lookup::routes(LookupState {
        store: store.clone(),
        cache: cache.clone(),
        public_objects: None,
        source_pages: source_pages.clone(),
        background: Handle::current(),
    });
    let browse = chart_index_browse::routes(BrowseState {
        engines: SearchEngines::new(Arc::new(PostgresSearch::new(store.clone(), CatalogueWatch::disabled()))),
        store: store.clone(),
        cache: cache.clone(),
        source_pages,
    });
    let bulk = chart_index_bulk::routes(BulkOptions {
        store,
        background: Handle::current(),
        exports: ExportsSettings::default(),
        long_polls: LongPolls::new(
            CatalogueWatch::disabled().subscribe(),
            NonZeroUsize::MIN,
            CancellationToken::new(),
        ),
    });
    lookup.groups().chain(browse.groups()).chain(bulk.groups()).collect()
}

/// The document for these settings.
fn document(settings: &PagesSettings) -> OpenApi {
    openapi::document(settings, &Limits::default())
}

#[tokio::test]
async fn document_has_every_route_and_no_other() {
    let document = document(&PagesSettings::default());
    let documented: BTreeSet<&str> = document.paths.paths.keys().map(String::as_str).collect();
    assert_eq!(documented, routes().into_iter().map(|(_, template, _)| template).collect());
}

#[tokio::test]
async fn operations_have_the_group_and_the_number_of_their_rate_limit() {
    let limits = Limits { rate_limit_bulk: 24.try_into().unwrap(), ..Limits::default() };
    let document = serde_json::to_value(openapi::document(&PagesSettings::default(), &limits)).unwrap();
    let routes = routes();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let method = method.to_uppercase();
            let mut of_path = routes.iter().filter(|(of, template, _)| *of == method && template == path);
            let group = of_path.next().unwrap().2;
            let expected = json!({"group": group.as_str(), "requests": limits.get(group), "seconds": 60});
            assert_eq!(operation["x-rate-limit"], expected, "{method} {path}");
            let has_budget = operation["responses"]["500"]["headers"].get("RateLimit").is_some();
            assert_eq!(has_budget, group.reports_budget(), "{method} {path}");
        }
    }
}

/// The table of typed filters has the names and the aliases that the parser knows.
#[test]
fn typed_filters_have_their_documented_names() {
    let section = reference::section("Chartset list");
    let rows = reference::rows(section, "Filter");
    let names_of = |text: &'static str| text.split('`').skip(1).step_by(2).collect::<Vec<_>>();
    for (name, aliases) in TypedQuery::filter_names() {
        let row = rows.iter().find(|row| row.names.first() == Some(&name)).expect(name);
        // A row without aliases has an empty cell.
        let documented = names_of(row.cells[0].split('|').next().unwrap());
        assert_eq!(documented, aliases, "{name}");
    }
}

#[test]
fn operation_ids_are_unique() {
    let document = document(&PagesSettings::default());
    let operations = document.paths.paths.values().flat_map(|item| item.get.iter().chain(&item.post));
    let ids: Vec<_> = operations.map(|operation| operation.operation_id.as_ref()).collect();
    assert!(ids.iter().all(Option::is_some));
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}

#[test]
fn operator_names_contact_licence_and_terms() {
    let with = |contact: &str, license: &str| {
        let operator = OperatorArguments {
            contact: Some(contact.to_owned()),
            data_license: Some(license.parse().unwrap()),
            terms_url: Some("https://example.org/terms".parse().unwrap()),
        };
        let settings = PagesSettings { operator, ..PagesSettings::default() };
        serde_json::to_value(document(&settings)).unwrap()
    };
    for (contact, expected) in [
        ("me@example.org", json!({"name": "Operator", "email": "me@example.org"})),
        ("mailto:me@example.org", json!({"name": "Operator", "email": "me@example.org"})),
        ("https://example.org/@me", json!({"name": "Operator", "url": "https://example.org/@me"})),
        ("ask in the chat", json!({"name": "ask in the chat"})),
    ] {
        let document = with(contact, "CC0-1.0");
        assert_eq!(document["info"]["contact"], expected);
        assert_eq!(document["info"]["termsOfService"], "https://example.org/terms");
    }
    for (license, field) in [("CC0-1.0", "identifier"), ("https://example.org/licence", "url")] {
        assert_eq!(with("me@example.org", license)["info"]["license"][field], license);
    }
    let document = serde_json::to_value(document(&PagesSettings::default())).unwrap();
    for field in ["contact", "license", "termsOfService"] {
        assert!(document["info"].get(field).is_none(), "{field}");
    }
}

#[test]
fn addresses_are_absolute_where_the_public_url_is_known() {
    for (public_url, server, docs) in [
        (None, "/", "/docs/api/chartset-list"),
        (
            Some("https://charts.example"),
            "https://charts.example",
            "https://charts.example/docs/api/chartset-list",
        ),
    ] {
        let public_url = public_url.map(|url| url.parse().unwrap());
        let settings = PagesSettings { public_url, ..PagesSettings::default() };
        let document = serde_json::to_value(document(&settings)).unwrap();
        assert_eq!(document["servers"][0]["url"], server);
        assert_eq!(document["paths"]["/api/chartsets"]["get"]["externalDocs"]["url"], docs);
        assert_eq!(document["security"], json!([]));
    }
}

#[test]
fn examples_of_parameters_are_those_of_one_request() {
    let document = serde_json::to_value(document(&PagesSettings::default())).unwrap();
    let examples = |path: &str| -> Vec<(String, serde_json::Value)> {
        let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap().iter();
        let with_example = parameters.filter(|parameter| parameter.get("example").is_some());
        with_example.map(|one| (one["name"].as_str().unwrap().to_owned(), one["example"].clone())).collect()
    };
    let list =
        [("q", json!("harbour")), ("keys", json!([4])), ("sort", json!("density")), ("perPage", json!(1))];
    assert_eq!(examples("/api/chartsets"), list.map(|(name, value)| (name.to_owned(), value)));
    // Decoded.
    assert_eq!(examples("/api/random"), [("query".to_owned(), json!("title:Byeolbit"))]);
    let request =
        &document["paths"]["/api/charts/lookup"]["post"]["requestBody"]["content"]["application/json"];
    assert!(request["example"].is_object(), "{request}");
}
