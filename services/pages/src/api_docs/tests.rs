//! The router and the OpenAPI document.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use chart_index_browse::{BrowseState, SearchEngines};
use chart_index_bulk::{BulkOptions, ExportsSettings, LongPolls};
use chart_index_cache::{Cache, CacheConfig, CacheConnections};
use chart_index_domain::search::TypedQuery;
use chart_index_http::{ResponseCache, SourcePages};
use chart_index_lookup::LookupState;
use chart_index_ratelimit::{Group, Limits};
use chart_index_store::{CatalogueWatch, PostgresSearch, Store, StoreConfig};
use serde_json::json;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::*;

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

#[tokio::test]
async fn document_has_every_route_and_no_other() {
    let document = openapi::document(None, &Limits::default());
    let documented: BTreeSet<&str> = document.paths.paths.keys().map(String::as_str).collect();
    assert_eq!(documented, routes().into_iter().map(|(_, template, _)| template).collect());
}

#[tokio::test]
async fn operations_have_the_group_and_the_number_of_their_rate_limit() {
    let limits = Limits { bulk: 24.try_into().unwrap(), ..Limits::default() };
    let document = serde_json::to_value(openapi::document(None, &limits)).unwrap();
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
    let document = openapi::document(None, &Limits::default());
    let operations = document.paths.paths.values().flat_map(|item| item.get.iter().chain(&item.post));
    let ids: Vec<_> = operations.map(|operation| operation.operation_id.as_ref()).collect();
    assert!(ids.iter().all(Option::is_some));
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}

#[test]
fn contact_is_an_address_or_a_url() {
    for (contact, field) in [("me@example.org", "email"), ("https://example.org/contact", "url")] {
        let document = serde_json::to_value(openapi::document(Some(contact), &Limits::default())).unwrap();
        assert_eq!(document["info"]["contact"][field], contact);
    }
    let document = serde_json::to_value(openapi::document(None, &Limits::default())).unwrap();
    assert!(document["info"].get("contact").is_none());
}
