//! The schemas of lookups for the OpenAPI document: which fields a body has depends on its status. What is sent
//! is in `lookup_body`.
#![expect(dead_code, reason = "schemas")]

use chart_index_domain::{Chart, ChartOccurrence, FileMd5, NoteHash, Source};
use chart_index_http::openapi::{chartsets_schema, extension};
use utoipa::openapi::schema::{Array, ArrayBuilder, ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::lookup_body::VariantBody;

/// The body of a lookup.
pub(crate) struct ChartLookup;

/// An item of a batch lookup: the body of a lookup, which begins with the identifier of a chart that was not
/// requested by its hash.
pub(crate) struct BatchLookupItem;

/// The body of a lookup of a chart that is known.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct KnownChart {
    chart_hash: NoteHash,
    #[schema(schema_with = known)]
    status: String,
    sources: Vec<Source>,
    ttl_ms: u32,
    chart: Chart,
    #[schema(required = false, schema_with = chartsets_schema)]
    chartsets: Vec<ChartOccurrence>,
    #[schema(required = false, schema_with = variants_schema)]
    variants: Vec<VariantBody<'static>>,
    #[schema(nullable = false, extensions(("x-extension" = json!(true))))]
    variants_total: Option<u64>,
}

/// The body of a lookup of a chart that is unknown.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct UnknownChart {
    chart_hash: NoteHash,
    #[schema(schema_with = unknown)]
    status: String,
    ttl_ms: u32,
    #[schema(required = false, schema_with = variants_schema)]
    variants: Vec<VariantBody<'static>>,
    #[schema(nullable = false, extensions(("x-extension" = json!(true))))]
    variants_total: Option<u64>,
}

/// An item of a batch lookup, of a chart that is known.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct KnownBatchItem {
    #[schema(nullable = false)]
    md5: Option<FileMd5>,
    #[schema(nullable = false)]
    alpha_beatmap_id: Option<u64>,
    chart_hash: NoteHash,
    #[schema(schema_with = known)]
    status: String,
    sources: Vec<Source>,
    ttl_ms: u32,
    chart: Chart,
    #[schema(nullable = false, max_items = 8)]
    chartsets: Option<Vec<ChartOccurrence>>,
    #[schema(nullable = false, max_items = 20)]
    variants: Option<Vec<VariantBody<'static>>>,
    #[schema(nullable = false)]
    variants_total: Option<u64>,
}

/// An item of a batch lookup, of a chart that is unknown.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
struct UnknownBatchItem {
    #[schema(nullable = false)]
    md5: Option<FileMd5>,
    #[schema(nullable = false)]
    alpha_beatmap_id: Option<u64>,
    #[schema(nullable = false)]
    chart_hash: Option<NoteHash>,
    #[schema(schema_with = unknown)]
    status: String,
    ttl_ms: u32,
    #[schema(nullable = false, max_items = 20)]
    variants: Option<Vec<VariantBody<'static>>>,
    #[schema(nullable = false)]
    variants_total: Option<u64>,
}

impl PartialSchema for ChartLookup {
    fn schema() -> RefOr<Schema> {
        by_status::<KnownChart, UnknownChart>()
    }
}

impl ToSchema for ChartLookup {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        add::<KnownChart>(schemas);
        add::<UnknownChart>(schemas);
    }
}

impl PartialSchema for BatchLookupItem {
    fn schema() -> RefOr<Schema> {
        by_status::<KnownBatchItem, UnknownBatchItem>()
    }
}

impl ToSchema for BatchLookupItem {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        add::<KnownBatchItem>(schemas);
        add::<UnknownBatchItem>(schemas);
    }
}

/// One of two objects, which differ in the value of `status`. Without a discriminator: the Rust of
/// openapi-generator would take the field away before the object is read, which requires it.
fn by_status<Known: ToSchema, Unknown: ToSchema>() -> RefOr<Schema> {
    let references = [Known::name(), Unknown::name()].map(Ref::from_schema_name);
    references.into_iter().fold(OneOfBuilder::new(), OneOfBuilder::item).into()
}

fn add<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}

fn known() -> ObjectBuilder {
    status("known")
}

fn unknown() -> ObjectBuilder {
    status("unknown")
}

fn status(value: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some([value]))
}

/// As `chartsets_schema`.
fn variants_schema() -> Array {
    let items = Ref::from_schema_name(VariantBody::name());
    ArrayBuilder::new().items(items).max_items(Some(20)).extensions(Some(extension())).build()
}
