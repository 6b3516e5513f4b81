//! The OpenAPI document: the operations of the services, with the words and examples of docs/api.md and
//! docs/formats, so that both describe the API in the same words.

use std::collections::BTreeMap;

use chart_index_cli::{DataLicense, OperatorArguments};
use chart_index_http::openapi::{add_budget, schemas};
use chart_index_ratelimit::{Group, Limits};
use serde_json::json;
use utoipa::openapi::path::Paths;
use utoipa::openapi::schema::{Object, Schema};
use utoipa::openapi::tag::{Tag, TagBuilder};
use utoipa::openapi::{Contact, Info, InfoBuilder, License, OpenApi, OpenApiBuilder, RefOr, ServerBuilder};

use super::openapi_words::{describe_operations, describe_schemas, external_docs, operations};
use super::reference;
use crate::about;
use crate::settings::{PagesSettings, PublicUrl};

/// The document of the whole API.
pub(crate) fn document(settings: &PagesSettings, limits: &Limits) -> OpenApi {
    // Without it, addresses are relative to that of the document.
    let base = settings.public_url.as_ref().map_or("", PublicUrl::as_str);
    let server = if base.is_empty() { "/" } else { base };
    let mut document = OpenApiBuilder::new()
        .info(info(&settings.operator))
        .servers(Some([ServerBuilder::new().url(server).description(Some("This service")).build()]))
        // No operation needs credentials.
        .security(Some([]))
        .tags(Some(tags()))
        .external_docs(Some(external_docs(base, "/docs")))
        .build();
    document.merge(chart_index_lookup::openapi());
    document.merge(chart_index_browse::openapi());
    document.merge(chart_index_bulk::openapi());
    let components = document.components.get_or_insert_default();
    components.schemas.extend(schemas());
    merge_flattened(&mut components.schemas);
    describe_schemas(&mut components.schemas);
    describe_operations(&mut document.paths, base);
    add_limits(&mut document.paths, limits);
    document
}

/// Adds the group and the number of the rate limit to each operation.
fn add_limits(paths: &mut Paths, limits: &Limits) {
    for (method, path, operation) in operations(paths) {
        let group = group_of(method, path);
        let limit = json!({"group": group.as_str(), "requests": limits.get(group), "seconds": 60});
        operation.extensions.get_or_insert_default().insert("x-rate-limit".to_owned(), limit);
        if group.reports_budget() {
            add_budget(&mut operation.responses.responses);
        }
    }
}

/// The group of an operation. A test compares it with that of the route.
pub(super) fn group_of(method: &str, path: &str) -> Group {
    match path {
        _ if method == "POST" => Group::Bulk,
        "/api/changes" => Group::Feed,
        "/api/chartsets" | "/api/random" => Group::List,
        "/api/charts/{hash}/rox" => Group::Rox,
        "/api/charts/{hash}/preview" => Group::Preview,
        "/api/charts/{hash}" | "/api/variants/{variant}" => Group::Lookup,
        _ if path.starts_with("/api/charts/filter") || path.starts_with("/api/exports/") => Group::Bulk,
        _ => Group::Detail,
    }
}

fn info(operator: &OperatorArguments) -> Info {
    let conventions = reference::section("Conventions").trim();
    let extensions = "Where `x-extension` is `true`, and for the values in `x-extension-values`, this service goes \
                      beyond the contract of the API: other implementations need not have it. `x-rate-limit` has the \
                      group of an operation, and the number of `requests` that a client may send to the operations of \
                      the group together in `seconds`. Numbers out of the range \
                      `x-clamped-to` are clamped to it. A response with `x-after-redirect` is that at the \
                      `Location` of a redirect, to which HTTP clients go on by themselves. An empty value of a query parameter counts as absent. Later \
                      versions may add values to `x-extensible-enum`.";
    InfoBuilder::new()
        .title("Chart index")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(format!("{}\n\n{conventions}\n\n{extensions}", summary())))
        .contact(operator.contact.as_deref().map(contact_of))
        .license(operator.data_license.as_ref().map(license_of))
        .terms_of_service(operator.terms_url.as_ref().map(ToString::to_string))
        .build()
}

/// The contact that the operator configured: an e-mail address, a URL or a text.
fn contact_of(text: &str) -> Contact {
    let contact = Contact::builder();
    match about::Contact::new(text) {
        about::Contact { text, url: None } => contact.name(Some(text)),
        about::Contact { text, url: Some(url) } if url.starts_with("mailto:") => {
            contact.name(Some("Operator")).email(Some(text))
        }
        about::Contact { url, .. } => contact.name(Some("Operator")).url(url),
    }
    .build()
}

/// The licence of the records, not that of the program.
fn license_of(license: &DataLicense) -> License {
    let (identifier, url) = match license {
        DataLicense::Spdx(identifier) => (Some(identifier), None),
        DataLicense::Url(url) => (None, Some(url.to_string())),
    };
    License::builder().name(license.to_string()).identifier(identifier.cloned()).url(url).build()
}

/// The first paragraph of the reference.
fn summary() -> &'static str {
    reference::api().introduction().trim_start().split("\n\n").next().unwrap_or_default()
}

fn tags() -> [Tag; 3] {
    let tag = |name: &str, text: &str| TagBuilder::new().name(name).description(Some(text)).build();
    [
        tag("Charts", "Charts, known by the hash of their notes"),
        tag("Chartsets", "Chartsets: the list, one of them, and where it is published"),
        tag("Bulk", "For mirrors and programs with many charts"),
    ]
}

type Schemas = BTreeMap<String, RefOr<Schema>>;

/// Makes one object of each schema that flattens another into itself, as its JSON is one, and removes schemas
/// that nothing else refers to.
fn merge_flattened(schemas: &mut Schemas) {
    let all = schemas.clone();
    let mut parts = Vec::new();
    for schema in schemas.values_mut() {
        let RefOr::T(Schema::AllOf(composed)) = schema else { continue };
        let mut merged = Object::new();
        for item in &composed.items {
            if let Some(object) = object(item, &all) {
                merged.properties.extend(object.properties);
                merged.required.extend(object.required);
            }
            if let RefOr::Ref(reference) = item {
                parts.push(reference.ref_location.clone());
            }
        }
        *schema = RefOr::T(merged.into());
    }
    let text = serde_json::to_string(schemas).unwrap_or_default();
    schemas.retain(|name, _| {
        let reference = format!("#/components/schemas/{name}");
        !parts.contains(&reference) || text.contains(&format!("\"{reference}\""))
    });
}

/// The object that a schema is or refers to.
fn object(schema: &RefOr<Schema>, all: &Schemas) -> Option<Object> {
    match schema {
        RefOr::T(Schema::Object(object)) => Some(object.clone()),
        RefOr::Ref(reference) => object(all.get(reference.ref_location.rsplit('/').next()?)?, all),
        RefOr::T(_) => None,
    }
}
