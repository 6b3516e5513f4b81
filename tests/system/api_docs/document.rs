//! What the OpenAPI document states, beside docs/api.md.

use std::collections::BTreeSet;

use serde_json::Value;

use super::openapi::OpenApiDocument;
use super::{documents, read, serve_samples};

#[tokio::test]
async fn document_is_cacheable_and_open_to_any_origin() {
    let (_database, service) =
        serve_samples(&[("CONTACT", "me@example.org"), ("DATA_LICENSE", "CC0-1.0")]).await;
    let response = service.client().get("/docs/openapi.json").await;
    assert_eq!(response.header("content-type"), "application/json");
    assert!(response.header("cache-control").starts_with("public, max-age="));
    assert_eq!(response.header("access-control-allow-origin"), "*");
    let tag = response.header("etag").to_owned();
    let again = service.client().get_with("/docs/openapi.json", &[("if-none-match", &tag)]).await;
    assert_eq!(again.status, 304);
    let document = response.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["contact"]["email"], "me@example.org");
    assert_eq!(document["info"]["license"]["identifier"], "CC0-1.0");
    assert_eq!(document["servers"][0]["url"], "/");
}

#[tokio::test]
async fn everything_is_described() {
    let (_database, service) = serve_samples(&[]).await;
    let document = OpenApiDocument::of(&service.client()).await;
    let has_text =
        |value: &Value, name: &str| value[name].as_str().is_some_and(|text| !text.trim().is_empty());
    let mut missing = Vec::new();
    for operation_name in &document.operations() {
        let operation = document.operation(operation_name);
        for name in ["summary", "description", "operationId"] {
            if !has_text(operation, name) {
                missing.push(format!("{operation_name}: {name}"));
            }
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            if !has_text(parameter, "description") {
                missing.push(format!("{operation_name}: {}", parameter["name"]));
            }
        }
    }
    for (name, schema) in document.0["components"]["schemas"].as_object().expect("schemas") {
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            if !has_text(property, "description") {
                missing.push(format!("{name}: {field}"));
            }
        }
        assert!(!schema.to_string().contains("\"null\""), "{name}: no field is null");
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The documents have a row for each field, and no others; the types agree.
#[tokio::test]
async fn fields_and_types_are_those_of_the_reference() {
    let (_database, service) = serve_samples(&[]).await;
    let document = OpenApiDocument::of(&service.client()).await;
    let documented: BTreeSet<(String, String)> =
        documents().iter().flat_map(|(_, text)| field_rows(text)).collect();
    let schemas = document.0["components"]["schemas"].as_object().expect("schemas");
    let actual = schemas.values().filter_map(|schema| schema["properties"].as_object()).flatten();
    let actual: BTreeSet<(String, String)> =
        actual.map(|(field, property)| (field.clone(), kind(&document, property))).collect();
    assert_eq!(documented, actual);
}

/// The fields in the tables of a document, each with the kind of its type.
fn field_rows(document: &str) -> Vec<(String, String)> {
    let tables = document.split("| Field | Type | Meaning |\n").skip(1);
    let rows = tables.flat_map(|table| table.lines().take_while(|line| line.starts_with('|')).skip(1));
    rows.flat_map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let kind = match cells[2] {
            array if array.starts_with("array") => "array",
            scalar @ ("boolean" | "string" | "integer" | "number") => scalar,
            _ => "object",
        };
        cells[1]
            .split('`')
            .skip(1)
            .step_by(2)
            .map(move |name| (name.to_owned(), kind.to_owned()))
            .collect::<Vec<_>>()
    })
    .collect()
}

/// The type of a property, which may be a reference.
fn kind(document: &OpenApiDocument, property: &Value) -> String {
    let Some(reference) = property["$ref"].as_str() else {
        return property["type"].as_str().expect("a type").to_owned();
    };
    let name = reference.rsplit('/').next().expect("a name");
    document.0["components"]["schemas"][name]["type"].as_str().expect("a type").to_owned()
}

/// Each parameter of the document is one that the service parses, and the reference lists the same.
#[tokio::test]
async fn list_parameters_are_those_of_the_service() {
    let (_database, service) = serve_samples(&[]).await;
    let document = OpenApiDocument::of(&service.client()).await;
    let parameters =
        document.operation("GET /api/chartsets")["parameters"].as_array().expect("parameters").clone();
    let names: Vec<&str> = parameters
        .iter()
        .filter(|parameter| parameter["in"] == "query")
        .map(|parameter| parameter["name"].as_str().expect("a name"))
        .collect();
    for name in &names {
        // A parameter that is not known is ignored.
        let twice = service.client().get(&format!("/api/chartsets?{name}=x&{name}=x")).await;
        let problem = twice.json();
        assert_eq!((twice.status.as_u16(), problem["parameter"].as_str()), (400, Some(*name)), "{problem}");
    }
    let parsed = read("crates/domain/src/search/query_string.rs");
    let parsed = parsed.split_once("const NAMES").expect("the names").1.split(';').next().unwrap_or_default();
    let parsed = parsed.split('"').skip(1).step_by(2);
    assert_eq!(parsed.collect::<Vec<_>>(), names, "the parameters that are parsed");
    let reference = read("docs/api.md");
    let section = reference.split_once("\n## Chartset list\n").expect("the section").1;
    let table = section.split_once("| Parameter | Accepts | Default |\n").expect("the table").1;
    let rows = table.lines().take_while(|line| line.starts_with('|')).skip(1);
    let documented: Vec<&str> = rows
        .flat_map(|row| row.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2))
        .collect();
    assert_eq!(documented, names, "the parameters of docs/api.md");
}

/// What is marked as an extension is what docs/api.md lists as such.
#[tokio::test]
async fn extensions_are_marked() {
    let (_database, service) = serve_samples(&[]).await;
    let document = OpenApiDocument::of(&service.client()).await;
    let reference = read("docs/api.md");
    let section = reference.split_once("\n## Extensions\n").expect("the section").1;
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let listed: BTreeSet<&str> = rows
        .flat_map(|row| row.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2))
        .collect();
    let mut marked = BTreeSet::new();
    for name in document.operations() {
        let operation = document.operation(&name);
        if operation["x-extension"] == true {
            marked.insert(name.clone());
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().expect("a name");
            if parameter["x-extension"] == true {
                marked.insert(name.to_owned());
            }
            let values = parameter["x-extension-values"].as_array().into_iter().flatten();
            marked.extend(values.map(|value| format!("{name}={}", value.as_str().expect("a value"))));
        }
        for response in operation["responses"].as_object().expect("responses").values() {
            let headers = response["headers"].as_object().into_iter().flatten();
            marked.extend(
                headers.filter(|(_, header)| header["x-extension"] == true).map(|(name, _)| name.clone()),
            );
        }
    }
    let schemas = &document.0["components"]["schemas"];
    // A reference is marked by its target.
    let is_marked = |field: &Value| {
        let target = field["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
        target.map_or(field, |name| &schemas[name])["x-extension"] == true
    };
    for schema in schemas.as_object().expect("schemas").values() {
        let fields = schema["properties"].as_object().into_iter().flatten();
        marked.extend(fields.filter(|(_, field)| is_marked(field)).map(|(name, _)| name.clone()));
    }
    let marked: BTreeSet<&str> = marked.iter().map(String::as_str).collect();
    assert_eq!(listed, marked);
}
