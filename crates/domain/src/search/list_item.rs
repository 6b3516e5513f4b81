//! Serialised list items.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::Chartset;

/// A chartset as JSON, in the form in which list responses contain it.
///
/// A search engine with its own documents stores this JSON, so that it can return a page without deserialising
/// and serialising every field of every chartset, which took more than a third of the instructions of a list.
/// The JSON is not validated when it is read back.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ListItem(Box<RawValue>);

impl ListItem {
    /// Serialises a chartset.
    ///
    /// # Errors
    /// The chartset cannot be serialised, which does not happen with the types of this crate.
    pub fn new(chartset: &Chartset) -> Result<Self, serde_json::Error> {
        to_raw_value(chartset).map(Self)
    }

    /// The item with `ratingMin` and `ratingMax`, from ratings in hundredths.
    #[must_use]
    pub fn with_ratings(&self, least: u16, greatest: u16) -> Self {
        let [min, max] = [least, greatest].map(|hundredths| f64::from(hundredths) / 100.0);
        self.with_fields(format_args!(r#""ratingMin":{min:?},"ratingMax":{max:?}"#))
    }

    /// The item with `updatedAtMs`.
    #[must_use]
    pub fn with_updated(&self, updated_at_ms: i64) -> Self {
        self.with_fields(format_args!(r#""updatedAtMs":{updated_at_ms}"#))
    }

    fn with_fields(&self, added: fmt::Arguments<'_>) -> Self {
        let fields = self.as_str().strip_suffix('}').unwrap_or(self.as_str());
        RawValue::from_string(format!("{fields},{added}}}")).map_or_else(|_| self.clone(), Self)
    }

    /// The JSON text of the item.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for ListItem {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

#[cfg(test)]
mod tests {
    use crate::{ChartsetId, KeyCount, PublicSource, SourceKind, SourceRef};

    use super::*;

    fn chartset() -> Chartset {
        Chartset {
            id: ChartsetId::from_bytes([0xa1; 8]),
            title: "旋 \"5\"".into(),
            artist: "An artist".into(),
            creator: "zoe, amy".into(),
            source: None,
            keys: [4, 7].map(|keys| KeyCount::try_from(keys).unwrap()).into(),
            bpm_min: 87.5,
            bpm_max: 175.0,
            length_min_ms: 92_000,
            length_max_ms: 92_001,
            density_max: 24.0,
            chart_count: 2,
        }
    }

    #[test]
    fn item_has_the_documented_fields() {
        let reference = SourceRef::from_number(577_617).unwrap();
        let source = Some(PublicSource { kind: SourceKind::AlphaSet, reference });
        let item = ListItem::new(&Chartset { source, ..chartset() }).unwrap();
        let expected = concat!(
            r#"{"id":"a1a1a1a1a1a1a1a1","title":"旋 \"5\"","artist":"An artist","creator":"zoe, amy","#,
            r#""sourceKind":"alphaSet","keys":[4,7],"bpmMin":87.5,"bpmMax":175.0,"lengthMinMs":92000,"#,
            r#""lengthMaxMs":92001,"densityMax":24.0,"chartCount":2,"#,
            r#""downloadUrl":"/go/chartset/a1a1a1a1a1a1a1a1"}"#,
        );
        assert_eq!(item.as_str(), expected);
        assert_eq!(serde_json::from_str::<ListItem>(expected).unwrap(), item);
    }

    #[test]
    fn extension_fields_follow_the_other_fields() {
        let item = ListItem::new(&chartset()).unwrap().with_ratings(400, 527).with_updated(1_790_000_000_000);
        let end = r#","chartCount":2,"ratingMin":4.0,"ratingMax":5.27,"updatedAtMs":1790000000000}"#;
        assert!(item.as_str().ends_with(end), "{item:?}");
    }

    #[test]
    fn item_without_source_has_no_download_url() {
        let item = ListItem::new(&chartset()).unwrap();
        for field in ["sourceKind", "downloadUrl", "null"] {
            assert!(!item.as_str().contains(field), "{field}: {item:?}");
        }
    }
}
