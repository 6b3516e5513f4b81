//! The words and examples of the OpenAPI document, from docs/api.md and docs/formats.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::openapi::external_docs::{ExternalDocs, ExternalDocsBuilder};
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, Paths};
use utoipa::openapi::schema::{Object, Schema};
use utoipa::openapi::{Array, RefOr};

use super::reference::{self, Example, Row, Section, anchor};
use crate::list_query::raw_parameters;

/// The sections whose tables describe the fields of a schema.
const FIELDS: [(&str, &[&str]); 29] = [
    ("KnownChart", &["Chart lookup", "Extension fields", "Variants"]),
    ("UnknownChart", &["Chart lookup", "Variants"]),
    ("ChartOccurrence", &["Extension fields"]),
    ("Chart", &["Chart"]),
    ("Rating", &["Chart rating"]),
    ("Patterns", &["Chart patterns"]),
    ("PatternRows", &["Chart patterns"]),
    ("RowsPerSecond", &["Chart patterns"]),
    ("ChartPreview", &["Preview"]),
    ("BatchLookupRequest", &["Batch lookup"]),
    ("BatchLookup", &["Batch lookup"]),
    ("KnownBatchItem", &["Batch lookup", "Chart lookup", "Extension fields", "Variants"]),
    ("UnknownBatchItem", &["Batch lookup", "Chart lookup", "Variants"]),
    ("ChartReference", &["Batch lookup"]),
    ("ChartVariant", &["Variants", "Extension fields"]),
    ("VariantCharts", &["Variants"]),
    ("Changes", &["Changes"]),
    ("Change", &["Change"]),
    ("ChartsetList", &["Chartset list"]),
    ("Chartset", &["Chartset"]),
    ("ChartsetDetail", &["Chartset", "Chartset detail"]),
    ("ChartsetChart", &["Chartset detail", "Extension fields"]),
    ("Source", &["Sources"]),
    ("PublicSource", &["Sources"]),
    ("ChartsetRecord", &["Chartset record"]),
    ("ChartRecord", &["Chart", "Chartset record"]),
    ("ExportManifest", &["Manifest"]),
    ("ExportedFile", &["Manifest"]),
    ("Problem", &["Errors"]),
];

/// Describes the fields of all schemas, and puts them in the order of the tables.
pub(crate) fn describe_schemas(schemas: &mut BTreeMap<String, RefOr<Schema>>) {
    for (name, sections) in FIELDS {
        let Some(RefOr::T(Schema::Object(object))) = schemas.get_mut(name) else { continue };
        let rows = sections.iter().flat_map(|heading| reference::rows(reference::section(heading), "Field"));
        describe_fields(object, &rows.collect::<Vec<_>>());
        object.description = None;
    }
}

fn describe_fields(object: &mut Object, rows: &[Row]) {
    let position = |name: &str| rows.iter().position(|row| row.names.contains(&name));
    let mut place: Vec<String> = object.properties.keys().cloned().collect();
    place.sort_by_key(|name| {
        position(name).map(|row| (row, rows[row].names.iter().position(|one| one == name)))
    });
    let mut properties = std::mem::take(&mut object.properties);
    for name in place {
        let Some(mut schema) = properties.shift_remove(&name) else { continue };
        let meaning = position(&name).and_then(|row| rows[row].cells.last());
        set_description(&mut schema, meaning.map(|text| (*text).to_owned()));
        object.properties.insert(name, schema);
    }
    object.required.sort_by_key(|name| object.properties.get_index_of(name));
}

fn set_description(schema: &mut RefOr<Schema>, text: Option<String>) {
    match schema {
        RefOr::Ref(reference) => reference.description = text.unwrap_or_default(),
        RefOr::T(Schema::Object(Object { description, .. }) | Schema::Array(Array { description, .. })) => {
            *description = text;
        }
        RefOr::T(_) => {}
    }
}

/// Describes all operations: summary, description, parameters, examples.
pub(crate) fn describe_operations(paths: &mut Paths, base: &str) {
    for (method, path, operation) in operations(paths) {
        let Some((summary, section)) = section_of(method, path) else { continue };
        operation.summary = Some(summary.to_owned());
        operation.description = Some(first_paragraphs(section.text).to_owned());
        let page = format!("/docs/api/{}", anchor(section.heading));
        operation.external_docs = Some(external_docs(base, &page));
        // Other operations describe only what the list does not.
        let list = reference::section("Chartset list");
        let parameters: Vec<Row> =
            [section.text, list].into_iter().flat_map(|text| reference::rows(text, "Parameter")).collect();
        let examples: Vec<Example<'_>> =
            reference::examples().filter(|example| is_of(method, path, example)).collect();
        let request = request_of(&examples);
        for parameter in operation.parameters.iter_mut().flatten() {
            if let RefOr::T(parameter) = parameter {
                describe_parameter(parameter, &parameters, path, request);
            }
        }
        add_examples(operation, &examples);
    }
}

/// The operations with their methods and paths.
pub(crate) fn operations(paths: &mut Paths) -> impl Iterator<Item = (&'static str, &str, &mut Operation)> {
    paths.paths.iter_mut().flat_map(|(path, item)| {
        let of_methods = [("GET", &mut item.get), ("POST", &mut item.post)];
        of_methods
            .into_iter()
            .filter_map(move |(method, operation)| Some((method, path.as_str(), operation.as_mut()?)))
    })
}

/// A link to the reference. Without a description utoipa 6.0 would write `null`, which is invalid.
pub(crate) fn external_docs(base: &str, page: &str) -> ExternalDocs {
    ExternalDocsBuilder::new().url(format!("{base}{page}")).description(Some("Reference")).build()
}

/// The summary of an operation and its section, by the table of endpoints of docs/api.md.
pub(crate) fn section_of(method: &str, path: &str) -> Option<(&'static str, Section)> {
    let name = format!("{method} {path}");
    let row = reference::ENDPOINTS.iter().find(|row| row.names.first() == Some(&name.as_str()))?;
    let target = row.target?;
    let section = reference::api().sections.iter().find(|section| anchor(section.heading) == target)?;
    Some((row.cells.first()?, *section))
}

/// The text before the first table or example.
fn first_paragraphs(text: &'static str) -> &'static str {
    let end = ["\n\n|", "\n\n```"].iter().filter_map(|start| text.find(start)).min().unwrap_or(text.len());
    text[..end].trim()
}

/// The example whose request has the most parameters: those of several requests contradict each other.
fn request_of<'a>(examples: &[Example<'a>]) -> Option<&'a str> {
    let sent = examples.iter().filter(|example| matches!(example.status, "200" | "302" | "303"));
    // Of several the first.
    sent.rev().map(|example| example.target).max_by_key(|target| target.matches('=').count())
}

fn describe_parameter(parameter: &mut Parameter, rows: &[Row], path: &str, request: Option<&str>) {
    if let Some(row) = rows.iter().find(|row| row.names.contains(&parameter.name.as_str())) {
        let default = row.cells.last().filter(|text| !text.trim().is_empty());
        let default = default.map(|text| format!(". Default: {text}")).unwrap_or_default();
        parameter.description = row.cells.first().map(|text| format!("{text}{default}"));
    }
    if let Some(value) = request.and_then(|target| value_in(parameter, path, target)) {
        *parameter = ParameterBuilder::from(parameter.clone()).example(Some(value)).build();
    }
}

/// The value of a parameter in the target of a request.
fn value_in(parameter: &Parameter, path: &str, target: &str) -> Option<Value> {
    let (target, query) = target.split_once('?').unwrap_or((target, ""));
    let text = if parameter.parameter_in == ParameterIn::Path {
        let position = path.split('/').position(|segment| segment == format!("{{{}}}", parameter.name))?;
        target.split('/').nth(position)?.to_owned()
    } else {
        let mut pairs = raw_parameters(query).into_iter();
        pairs.find(|(name, _)| *name == parameter.name)?.1
    };
    let one = |text: &str| text.parse::<u64>().map_or_else(|_| text.into(), Value::from);
    Some(match &parameter.schema {
        Some(RefOr::T(Schema::Array(_))) => text.split(',').map(one).collect(),
        Some(RefOr::T(Schema::Object(object))) if object.pattern.is_none() => one(&text),
        _ => text.into(),
    })
}

/// The first example of each status, as the example of its body, and that of a request with a body.
fn add_examples(operation: &mut Operation, examples: &[Example<'_>]) {
    let mut successes = examples.iter().filter(|example| example.status == "200");
    let request = successes.find_map(|example| serde_json::from_str(example.request_body).ok());
    if let Some(RefOr::T(body)) = &mut operation.request_body
        && let Some(RefOr::T(content)) = body.content.values_mut().next()
    {
        content.example = request;
    }
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        let mut of_status = examples.iter().filter(|example| example.status == status);
        let body = of_status.find_map(|example| serde_json::from_str(example.body).ok());
        let Some(body) = body else { continue };
        if let Some(RefOr::T(content)) = response.content.values_mut().next() {
            content.example = Some(body);
        }
    }
}

/// Whether an example is of the operation with this method and template.
pub(crate) fn is_of(method: &str, template: &str, example: &Example<'_>) -> bool {
    let path = example.target.split('?').next().unwrap_or_default();
    if example.method != method {
        return false;
    }
    let (mut expected, mut actual) = (template.split('/'), path.split('/'));
    loop {
        match (expected.next(), actual.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if one == other || one.starts_with('{') => {}
            _ => return false,
        }
    }
}
