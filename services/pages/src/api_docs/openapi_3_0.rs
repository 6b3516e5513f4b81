//! The OpenAPI document in the form of version 3.0, for generators that do not read 3.1.

use chart_index_cli::DataLicense;
use serde_json::{Map, Value, json};

/// The same document as OpenAPI 3.0.3: what it uses of 3.1 is a licence identifier, values beside `$ref`, and
/// `examples` of schemas.
pub(crate) fn to_3_0(mut document: Value) -> Value {
    document["openapi"] = json!("3.0.3");
    if let Some(license) = document.pointer_mut("/info/license").and_then(Value::as_object_mut)
        && let Some(Value::String(identifier)) = license.remove("identifier")
    {
        license.insert("url".to_owned(), DataLicense::Spdx(identifier).url().into());
    }
    convert(&mut document);
    document
}

fn convert(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(convert),
        Value::Object(object) => {
            convert_examples(object);
            convert_reference(object);
            object.values_mut().for_each(convert);
        }
        _ => {}
    }
}

/// `examples` of a schema is an array, that of a parameter or a body an object.
fn convert_examples(object: &mut Map<String, Value>) {
    if object.get("examples").is_some_and(Value::is_array) {
        let first = object.remove("examples").and_then(|examples| examples.get(0).cloned());
        object.extend(first.map(|first| ("example".to_owned(), first)));
    }
}

/// What is beside a `$ref` is ignored in 3.0.
fn convert_reference(object: &mut Map<String, Value>) {
    if object.len() > 1
        && let Some(reference) = object.remove("$ref")
    {
        object.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_without_a_licence_gets_none() {
        let document = json!({"openapi": "3.1.0", "info": {"title": "A"}});
        assert_eq!(to_3_0(document), json!({"openapi": "3.0.3", "info": {"title": "A"}}));
    }

    #[test]
    fn document_has_the_form_of_3_0() {
        let document = json!({
            "openapi": "3.1.0",
            "info": {"license": {"name": "MIT", "identifier": "MIT"}},
            "schema": {"$ref": "#/a"},
            "described": {"$ref": "#/a", "description": "A"},
            "items": [{"type": "string", "examples": ["a", "b"]}],
            "parameter": {"examples": {"one": {"value": 1}}},
        });
        let expected = json!({
            "openapi": "3.0.3",
            "info": {"license": {"name": "MIT", "url": "https://spdx.org/licenses/MIT.html"}},
            "schema": {"$ref": "#/a"},
            "described": {"description": "A", "allOf": [{"$ref": "#/a"}]},
            "items": [{"type": "string", "example": "a"}],
            "parameter": {"examples": {"one": {"value": 1}}},
        });
        assert_eq!(to_3_0(document), expected);
    }
}
