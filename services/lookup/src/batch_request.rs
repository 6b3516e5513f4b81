//! The request of a batch lookup, and its items.

use std::str::FromStr;

use chart_index_domain::search::ParameterError;
use chart_index_domain::{FileMd5, NoteHash, Variant};
use chart_index_http::{ApiError, FieldGroup, Include};
use chart_index_store::ChartIdentifier;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::json_object::JsonObject;

/// The maximum number of charts in a request.
const MAX_CHARTS: usize = 1_000;
/// The maximum number of charts in a request for variants, or for chartsets.
const MAX_EXTENDED: usize = 100;
/// The maximum number of charts in a request for the chartsets of variants.
const MAX_WITH_BOTH: usize = 25;
/// The greatest id of a chart that the first game has: a larger one is no id.
const MAX_BEATMAP_ID: u64 = i32::MAX as u64;

/// The request body. Unknown fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = BatchLookupRequest)]
pub(crate) struct BatchRequest {
    #[serde(default)]
    #[schema(value_type = Option<Vec<NoteHash>>, nullable = false, max_items = 1_000)]
    hashes: Vec<String>,
    #[serde(default)]
    #[schema(value_type = Option<Vec<ChartReference>>, nullable = false, max_items = 1_000)]
    charts: Vec<JsonObject<ChartReference>>,
}

/// A chart by one of its identifiers.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChartReference {
    #[serde(default, deserialize_with = "not_null")]
    #[schema(value_type = Option<NoteHash>, nullable = false)]
    hash: Option<String>,
    #[serde(default, deserialize_with = "not_null")]
    #[schema(value_type = Option<FileMd5>, nullable = false)]
    md5: Option<String>,
    #[serde(default, deserialize_with = "not_null")]
    #[schema(nullable = false, minimum = 1, maximum = 2_147_483_647)]
    alpha_beatmap_id: Option<u64>,
    /// Used with `include=variants`.
    #[serde(default, deserialize_with = "not_null")]
    #[schema(value_type = Option<Variant>, nullable = false)]
    variant: Option<String>,
}

/// Reads the value of a field that is present.
fn not_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A parsed item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchItem {
    pub(crate) subject: Subject,
    pub(crate) variant: Option<Variant>,
}

/// What identifies the chart of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Hash(NoteHash),
    Identifier(ChartIdentifier),
}

/// The first field of an item that was not requested by its hash.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum IdentifierField {
    Md5(FileMd5),
    AlphaBeatmapId(u64),
}

impl BatchRequest {
    /// The items, in the order of the request: those of `hashes` first.
    ///
    /// # Errors
    ///
    /// There are none, or too many, or one of them is malformed.
    pub(crate) fn items(&self, include: Include) -> Result<Vec<BatchItem>, ApiError> {
        let Self { hashes, charts } = self;
        let limit = match (include.has(FieldGroup::Variants), include.has(FieldGroup::Chartsets)) {
            (false, false) => MAX_CHARTS,
            (true, true) => MAX_WITH_BOTH,
            _ => MAX_EXTENDED,
        };
        let count = hashes.len() + charts.len();
        if count == 0 || count > limit {
            let parameter = if charts.is_empty() { "hashes" } else { "charts" };
            let reason = format!("a request has 1 to {limit} charts, not {count}");
            return Err(ParameterError { parameter, reason: reason.into() }.into());
        }
        let of_hash = |(index, hash): (usize, &String)| {
            let hash = hash.parse().map_err(|_| ApiError::MalformedHashAt { parameter: "hashes", index })?;
            Ok(BatchItem { subject: Subject::Hash(hash), variant: None })
        };
        let of_chart = |(index, JsonObject(chart)): (usize, &JsonObject<ChartReference>)| {
            chart.parse().map_err(|error| ApiError::BadElement { array: "charts", index, error })
        };
        let hashes = hashes.iter().enumerate().map(of_hash);
        hashes.chain(charts.iter().enumerate().map(of_chart)).collect()
    }
}

impl ChartReference {
    fn parse(&self) -> Result<BatchItem, ParameterError> {
        let hash = self.hash.as_ref().map(|hash| parse("hash", hash).map(Subject::Hash));
        let md5 = self.md5.as_ref().map(|md5| parse("md5", md5).map(ChartIdentifier::Md5));
        let id = self.alpha_beatmap_id.map(|id| match id {
            1..=MAX_BEATMAP_ID => Ok(ChartIdentifier::AlphaBeatmapId(id)),
            _ => Err(error("alphaBeatmapId", format!("accepts 1 to {MAX_BEATMAP_ID}"))),
        });
        let identifiers = [md5, id].into_iter().flatten();
        let mut subjects = hash.into_iter().chain(identifiers.map(|parsed| parsed.map(Subject::Identifier)));
        let (Some(subject), None) = (subjects.next(), subjects.next()) else {
            return Err(error("hash", "a chart has one of hash, md5 and alphaBeatmapId".to_owned()));
        };
        let variant = self.variant.as_ref().map(|variant| parse("variant", variant)).transpose();
        Ok(BatchItem { subject: subject?, variant: variant? })
    }
}

fn parse<T>(parameter: &'static str, text: &str) -> Result<T, ParameterError>
where
    T: FromStr<Err: ToString>,
{
    text.parse().map_err(|malformed: T::Err| error(parameter, malformed.to_string()))
}

fn error(parameter: &'static str, reason: String) -> ParameterError {
    ParameterError { parameter, reason: reason.into() }
}

impl From<ChartIdentifier> for IdentifierField {
    fn from(identifier: ChartIdentifier) -> Self {
        match identifier {
            ChartIdentifier::Md5(md5) => Self::Md5(md5),
            ChartIdentifier::AlphaBeatmapId(id) => Self::AlphaBeatmapId(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(body: &str, include: &str) -> Result<Vec<BatchItem>, ApiError> {
        let include = Include::of_query(&format!("include={include}"), FieldGroup::OF_LOOKUPS).unwrap();
        serde_json::from_str::<BatchRequest>(body).unwrap().items(include)
    }

    #[test]
    fn items_are_in_the_order_of_the_request() {
        let (hash, md5, variant) = ("ab".repeat(32), "cd".repeat(16), "ef".repeat(32));
        let body = format!(
            r#"{{"hashes":["{hash}"],"charts":[{{"md5":"{md5}","other":1}},{{"alphaBeatmapId":7}},
                 {{"hash":"{hash}","variant":"{variant}"}}]}}"#
        );
        let hash = Subject::Hash(NoteHash::from_bytes([0xab; 32]));
        let md5 = Subject::Identifier(ChartIdentifier::Md5(FileMd5::from_bytes([0xcd; 16])));
        let id = Subject::Identifier(ChartIdentifier::AlphaBeatmapId(7));
        let variant = Some(Variant::from_bytes([0xef; 32]));
        let expected = [(hash, None), (md5, None), (id, None), (hash, variant)];
        assert_eq!(
            items(&body, "variants").unwrap(),
            expected.map(|(subject, variant)| BatchItem { subject, variant })
        );
    }

    #[test]
    fn errors_name_the_item_and_its_field() {
        let hash = "ab".repeat(32);
        let many = |count| format!(r#"{{"hashes":[{}]}}"#, vec![format!("\"{hash}\""); count].join(","));
        let (above_25, above_100) = (many(26), many(101));
        for (body, include, parameter) in [
            ("{}", "", "hashes"),
            (r#"{"charts":[]}"#, "", "hashes"),
            (r#"{"charts":[{"alphaBeatmapId":0}]}"#, "", "charts[0].alphaBeatmapId"),
            (&above_100, "variants", "hashes"),
            (&above_100, "chartsets,links", "hashes"),
            (&above_25, "variants,chartsets", "hashes"),
            (r#"{"hashes":["x"]}"#, "", "hashes[0]"),
            (r#"{"charts":[{"hash":"x"}]}"#, "", "charts[0].hash"),
            (r#"{"charts":[{"alphaBeatmapId":7},{"md5":"AB"}]}"#, "", "charts[1].md5"),
            (r#"{"charts":[{"alphaBeatmapId":7,"variant":"x"}]}"#, "", "charts[0].variant"),
            (r#"{"charts":[{}]}"#, "", "charts[0].hash"),
            (
                r#"{"charts":[{"alphaBeatmapId":7,"md5":"abababababababababababababababab"}]}"#,
                "",
                "charts[0].hash",
            ),
        ] {
            let error = items(body, include).unwrap_err();
            let named = match error {
                ApiError::BadParameter(error) => error.parameter.to_owned(),
                ApiError::MalformedHashAt { parameter, index } => format!("{parameter}[{index}]"),
                ApiError::BadElement { array, index, error } => {
                    format!("{array}[{index}].{}", error.parameter)
                }
                other => panic!("{body}: {other:?}"),
            };
            assert_eq!(named, parameter, "{body}");
        }
        assert_eq!(items(&above_100, "rating,links").unwrap().len(), 101);
        assert_eq!(items(&above_25, "chartsets").unwrap().len(), 26);
    }
}
