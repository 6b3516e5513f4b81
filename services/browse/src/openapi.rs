//! What the OpenAPI document says of the operations: parameters and responses.

use axum::http::StatusCode;
use chart_index_domain::search::{Direction, Engine, MAX_NUMBER, MAX_TEXT_CHARACTERS, PageRequest, Sort};
use chart_index_domain::{KeyCount, Pattern, SourceKind};
use chart_index_http::openapi::{
    JSON, Responses, after_redirect, by_status, errors, errors_or_pages, extension, header,
    include_parameter, json, response, schema_of,
};
use chart_index_http::{CachePolicy, ErrorType, FieldGroup};
use serde_json::json;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::schema::{ArrayBuilder, KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{Ref, RefOr, Required, Schema};
use utoipa::{IntoParams, IntoResponses, PartialSchema, ToSchema};

use crate::json_bodies::{DetailBody, ListBody};

pub(crate) struct ListResponses;

impl IntoResponses for ListResponses {
    fn responses() -> Responses {
        let engines = [Engine::Meilisearch, Engine::Postgres].map(Engine::as_str);
        let engine = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(engines));
        let engine = HeaderBuilder::new().schema(Some(engine)).description(Some("The engine that answered"));
        let engine = engine.extensions(Some(extension())).build();
        let mut ok = json::<ListBody<'static>>("A page of chartsets", CachePolicy::Listing);
        for response in ok.values_mut() {
            if let RefOr::T(response) = response {
                response.headers.insert("X-Search-Engine".to_owned(), engine.clone().into());
            }
        }
        ok.into_iter().chain(errors(&[ErrorType::BadParameter], CachePolicy::NoStore)).collect()
    }
}

pub(crate) struct RandomResponses;

impl IntoResponses for RandomResponses {
    fn responses() -> Responses {
        let chosen = response("The detail of a chartset that matches is at `Location`", CachePolicy::NoStore);
        let chosen = chosen.header("Location", header("The path of the detail").build());
        let types = [ErrorType::BadParameter, ErrorType::NotFound];
        let detail = after_redirect(JSON, schema_of::<DetailBody<'static>>());
        let chosen = by_status([(StatusCode::SEE_OTHER, chosen), (StatusCode::OK, detail)]);
        chosen.into_iter().chain(errors(&types, CachePolicy::NoStore)).collect()
    }
}

pub(crate) struct DetailResponses;

impl IntoResponses for DetailResponses {
    fn responses() -> Responses {
        let ok = json::<DetailBody<'static>>("The chartset with its charts", CachePolicy::Listing);
        let types = [ErrorType::BadParameter, ErrorType::NotFound];
        ok.into_iter().chain(errors(&types, CachePolicy::NoStore)).collect()
    }
}

/// The query parameter of the detail.
pub(crate) struct DetailParameters;

impl IntoParams for DetailParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![include_parameter(FieldGroup::OF_DETAILS)]
    }
}

pub(crate) struct RedirectResponses;

impl IntoResponses for RedirectResponses {
    fn responses() -> Responses {
        let found = response("The page that publishes the chartset is at `Location`", CachePolicy::Redirect);
        let found = found.header("Location", header("The page of the source").build());
        let found = by_status([(StatusCode::FOUND, found)]);
        found.into_iter().chain(errors_or_pages(&[ErrorType::NotFound])).collect()
    }
}

pub(crate) struct ChartRedirectResponses;

impl IntoResponses for ChartRedirectResponses {
    fn responses() -> Responses {
        let found =
            response("The page of the best source of the chart is at `Location`", CachePolicy::Redirect);
        let found = found.header("Location", header("The page of the source").build());
        let found = by_status([(StatusCode::FOUND, found)]);
        let types = [ErrorType::MalformedHash, ErrorType::NotFound];
        found.into_iter().chain(errors_or_pages(&types)).collect()
    }
}

/// The parameters of the list. `parse_query_string` of the domain has their rules: numbers out of range are
/// clamped, not refused, so `x-clamped-to` has the ranges, and not `minimum` and `maximum`.
pub(crate) struct ListParameters;

impl IntoParams for ListParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let keys = query("keys", ArrayBuilder::new().items(KeyCount::schema()).min_items(Some(1)));
        // The form of the contract. `keys=4&keys=7` is accepted as well.
        let keys = keys.style(Some(ParameterStyle::Form)).explode(Some(false));
        let order = query("order", Ref::from_schema_name(Direction::name()));
        let extensions = [Sort::MainBpm, Sort::Rating, Sort::Notes, Sort::Relevance].map(Sort::as_str);
        let sort_extensions = [("x-extension-values", json!(extensions))].into_iter().collect();
        let parameters = vec![
            query("q", text()),
            query("query", text()).extensions(Some(extension())),
            keys,
            query("source", Ref::from_schema_name(SourceFilter::name())),
            query("set", reference()).extensions(Some(extension())),
            query("pack", reference()).extensions(Some(extension())),
            query("creator", text()),
            query("bpmMin", number()),
            query("bpmMax", number()),
            query("mainBpmMin", number()).extensions(Some(extension())),
            query("mainBpmMax", number()).extensions(Some(extension())),
            query("lengthMin", number()),
            query("lengthMax", number()),
            query("densityMin", number()),
            query("densityMax", number()).extensions(Some(extension())),
            query("ratingMin", number()).extensions(Some(extension())),
            query("ratingMax", number()).extensions(Some(extension())),
            query("lnMin", number()).extensions(Some(extension())),
            query("lnMax", number()).extensions(Some(extension())),
            query("notesMin", number()).extensions(Some(extension())),
            query("notesMax", number()).extensions(Some(extension())),
            query("pattern", patterns()).extensions(Some(extension())),
            query("match", string().enum_values(Some(["chart"]))).extensions(Some(extension())),
            include_parameter(FieldGroup::OF_LISTS).into(),
            query("sort", Ref::from_schema_name(Sort::name())).extensions(Some(sort_extensions)),
            order.extensions(Some(extension())),
            // Without its default, which clients would send together with `after`.
            query("page", integer(PageRequest::MAX_NUMBER)),
            query("perPage", integer(PageRequest::MAX_SIZE).default(Some(json!(PageRequest::DEFAULT_SIZE)))),
            query("after", string().pattern(Some("^[A-Za-z0-9_-]*$"))).extensions(Some(extension())),
        ];
        parameters.into_iter().map(ParameterBuilder::build).collect()
    }
}

/// The parameters of the list that select chartsets.
pub(crate) struct FilterParameters;

impl IntoParams for FilterParameters {
    fn into_params(parameter_in: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let others = ["include", "sort", "order", "page", "perPage", "after"];
        let parameters = ListParameters::into_params(parameter_in).into_iter();
        parameters.filter(|parameter| !others.contains(&parameter.name.as_str())).collect()
    }
}

fn query(name: &str, schema: impl Into<RefOr<Schema>>) -> ParameterBuilder {
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Query);
    parameter.required(Required::False).schema(Some(schema))
}

fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// Text without control characters, other than those that are white space.
fn text() -> ObjectBuilder {
    let pattern = r"^[^\u0000-\u0008\u000E-\u001F\u007F-\u0084\u0086-\u009F]*$";
    string().max_length(Some(MAX_TEXT_CHARACTERS)).pattern(Some(pattern))
}

/// Classes of rows, each with its least share in percent, separated by commas. An empty value counts as absent.
fn patterns() -> ObjectBuilder {
    let names = Pattern::ALL.iter().map(|pattern| pattern.as_str()).collect::<Vec<_>>().join("|");
    let share = format!("({names}):(100|[1-9][0-9]?)");
    string().pattern(Some(format!("^({share}(,{share})*)?$")))
}

/// The id of a set or pack.
fn reference() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(i32::MAX))
}

/// The kinds of source that the list can be filtered by: a closed set, other than that of responses.
pub(crate) struct SourceFilter;

impl PartialSchema for SourceFilter {
    fn schema() -> RefOr<Schema> {
        string().enum_values(Some(SourceKind::ALL.map(SourceKind::as_str))).into()
    }
}

impl ToSchema for SourceFilter {}

fn number() -> ObjectBuilder {
    let number = ObjectBuilder::new().schema_type(Type::Number);
    number
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Double)))
        .extensions(Some(clamped(0.0, MAX_NUMBER)))
}

fn integer(max: u32) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).extensions(Some(clamped(1, max)))
}

fn clamped<T: serde::Serialize>(min: T, max: T) -> utoipa::openapi::extensions::Extensions {
    [("x-clamped-to", json!({"minimum": min, "maximum": max}))].into_iter().collect()
}
