//! Ratings and patterns in JSON (docs/formats/records.md, "Chart rating" and "Chart patterns"), with their
//! schemas.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use strum::VariantArray;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::{Pattern, Patterns, Rating};

#[derive(Serialize, ToSchema)]
struct RatingFields {
    algorithm: &'static str,
    version: u8,
    #[schema(minimum = 0, maximum = 15)]
    value: f64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PatternsFields<'a> {
    version: u8,
    rows: PatternRows<'a>,
    #[schema(maximum = 100)]
    ln_notes: u8,
    #[schema(maximum = 100)]
    ln_time: u8,
    rows_per_second: RowsPerSecond,
}

/// The shares of rows above 0, in percent.
struct PatternRows<'a>(&'a Patterns);

#[derive(Serialize, ToSchema)]
struct RowsPerSecond {
    median: f64,
    p90: f64,
}

impl Serialize for Rating {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = RatingFields { algorithm: Self::ALGORITHM, version: Self::VERSION, value: self.value() };
        fields.serialize(serializer)
    }
}

impl PartialSchema for Rating {
    fn schema() -> RefOr<Schema> {
        extension(RatingFields::schema())
    }
}

impl ToSchema for Rating {}

impl Serialize for Patterns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let per_second = |hundredths: u16| f64::from(hundredths) / 100.0;
        let fields = PatternsFields {
            version: Self::VERSION,
            rows: PatternRows(self),
            ln_notes: self.ln_note_share,
            ln_time: self.ln_time_share,
            rows_per_second: RowsPerSecond {
                median: per_second(self.rows_per_second_median),
                p90: per_second(self.rows_per_second_p90),
            },
        };
        fields.serialize(serializer)
    }
}

impl PartialSchema for Patterns {
    fn schema() -> RefOr<Schema> {
        extension(PatternsFields::schema())
    }
}

impl ToSchema for Patterns {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        PatternsFields::schemas(schemas);
    }
}

impl Serialize for PatternRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for &pattern in Pattern::VARIANTS {
            let share = self.0.share(pattern);
            if share > 0 {
                map.serialize_entry(pattern.as_str(), &share)?;
            }
        }
        map.end()
    }
}

/// Later versions may have further classes.
impl PartialSchema for PatternRows<'_> {
    fn schema() -> RefOr<Schema> {
        let share = || ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(100));
        let object = Pattern::VARIANTS
            .iter()
            .fold(ObjectBuilder::new(), |object, pattern| object.property(pattern.as_str(), share()));
        object.into()
    }
}

impl ToSchema for PatternRows<'_> {}

/// Marks a schema as an extension (docs/api.md, "Extensions"): utoipa has no marks of references.
fn extension(mut schema: RefOr<Schema>) -> RefOr<Schema> {
    if let RefOr::T(Schema::Object(object)) = &mut schema {
        object.extensions = Some([("x-extension", true)].into_iter().collect());
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hundredths_become_numbers_with_two_decimals() {
        for (hundredths, expected) in [(0, "0.0"), (527, "5.27"), (530, "5.3"), (1_500, "15.0")] {
            let json = serde_json::to_string(&Rating::from_hundredths(hundredths).unwrap()).unwrap();
            assert_eq!(json, format!(r#"{{"algorithm":"alphaStars","version":1,"value":{expected}}}"#));
        }
    }

    #[test]
    fn rows_have_the_classes_that_occur() {
        let mut patterns = Patterns {
            ln_note_share: 12,
            ln_time_share: 30,
            rows_per_second_median: 620,
            rows_per_second_p90: 910,
            ..Patterns::default()
        };
        patterns.row_shares[Pattern::Stream as usize] = 43;
        patterns.row_shares[Pattern::Jack as usize] = 10;
        let json = serde_json::to_string(&patterns).unwrap();
        assert_eq!(
            json,
            r#"{"version":1,"rows":{"jack":10,"stream":43},"lnNotes":12,"lnTime":30,"rowsPerSecond":{"median":6.2,"p90":9.1}}"#
        );
        assert!(serde_json::to_string(&Patterns::default()).unwrap().contains(r#""rows":{}"#));
    }
}
