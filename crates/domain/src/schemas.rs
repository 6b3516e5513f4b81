//! JSON Schemas of the types that do not serialise as a structure, for the OpenAPI document.

use std::borrow::Cow;

use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::search::{Direction, Sort};
use crate::{ExportFile, ExportName, KeyCount, SourceKind, SourceRef};

/// A text that matches a regular expression as a whole.
fn text(pattern: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(format!("^{pattern}$")))
}

/// One of these values. Generators name a type by its component: what is listed in place has no good name.
fn choice(values: impl IntoIterator<Item = &'static str>) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(values))
}

/// Lists the values that are known, of a set to which later versions may add: `enum` would make a new value
/// invalid.
fn open_set(known: impl IntoIterator<Item = &'static str>) -> ObjectBuilder {
    let known: Vec<&str> = known.into_iter().collect();
    let extension = [("x-extensible-enum", serde_json::json!(known))].into_iter().collect();
    ObjectBuilder::new().schema_type(Type::String).examples(known).extensions(Some(extension))
}

impl PartialSchema for ExportName {
    fn schema() -> RefOr<Schema> {
        text("[0-9]{8}T[0-9]{6}Z-[0-9]{1,16}(-[0-9]{1,16})?").into()
    }
}

impl ToSchema for ExportName {}

impl PartialSchema for ExportFile {
    fn schema() -> RefOr<Schema> {
        open_set(Self::ALL.map(Self::name)).into()
    }
}

impl ToSchema for ExportFile {}

impl PartialSchema for KeyCount {
    fn schema() -> RefOr<Schema> {
        let integer = ObjectBuilder::new().schema_type(Type::Integer);
        integer.minimum(Some(Self::MIN)).maximum(Some(Self::MAX)).into()
    }
}

impl ToSchema for KeyCount {}

impl PartialSchema for SourceKind {
    fn schema() -> RefOr<Schema> {
        open_set(Self::ALL.map(Self::as_str)).into()
    }
}

impl ToSchema for SourceKind {}

impl PartialSchema for SourceRef {
    fn schema() -> RefOr<Schema> {
        text("[1-9][0-9]*").into()
    }
}

impl ToSchema for SourceRef {}

impl PartialSchema for Sort {
    fn schema() -> RefOr<Schema> {
        choice(Self::ALL.iter().map(|sort| sort.as_str()))
            .default(Some(Self::default().as_str().into()))
            .into()
    }
}

impl ToSchema for Sort {
    fn name() -> Cow<'static, str> {
        "ChartsetSort".into()
    }
}

impl PartialSchema for Direction {
    fn schema() -> RefOr<Schema> {
        choice([Self::Ascending, Self::Descending].map(Self::as_str)).into()
    }
}

impl ToSchema for Direction {
    fn name() -> Cow<'static, str> {
        "SortOrder".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChartsetId, NoteHash};

    fn json<T: PartialSchema>() -> String {
        serde_json::to_string(&T::schema()).unwrap()
    }

    #[test]
    fn schemas_state_form_and_range() {
        assert_eq!(json::<NoteHash>(), r#"{"type":"string","pattern":"^[0-9a-f]{64}$"}"#);
        assert_eq!(json::<ChartsetId>(), r#"{"type":"string","pattern":"^[0-9a-f]{16}$"}"#);
        assert_eq!(json::<KeyCount>(), r#"{"type":"integer","maximum":7,"minimum":4}"#);
        assert_eq!(json::<SourceRef>(), r#"{"type":"string","pattern":"^[1-9][0-9]*$"}"#);
    }

    #[test]
    fn source_kinds_are_an_open_set() {
        let schema = json::<SourceKind>();
        assert!(schema.contains(r#""x-extensible-enum":["alphaSet","betaPack"]"#), "{schema}");
        assert!(!schema.contains(r#""enum""#), "{schema}");
    }
}
