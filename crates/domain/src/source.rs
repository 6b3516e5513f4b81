//! Sources: where a chart can be downloaded (docs/formats/records.md, "Sources").

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::EnumString;
use utoipa::ToSchema;

/// The kinds of source. Clients must ignore unknown kinds, since later versions may add some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, EnumString)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "camelCase")]
pub enum SourceKind {
    /// A set of the first game.
    AlphaSet,
    /// A pack of the second game.
    BetaPack,
}

impl SourceKind {
    /// Every kind.
    pub const ALL: [Self; 2] = [Self::AlphaSet, Self::BetaPack];

    /// The name in the API and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AlphaSet => "alphaSet",
            Self::BetaPack => "betaPack",
        }
    }
}

/// The id of a set or a pack: a decimal number, never a URL (docs/formats/records.md, "Sources").
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct SourceRef(String);

impl SourceRef {
    /// The reference for a set or pack number. `None` for 0, which means "not published", and for numbers above
    /// `i32::MAX`, which no set or pack has.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        (1..=i32::MAX as u64).contains(&number).then(|| Self(number.to_string()))
    }

    /// The id at the start of a folder name such as `577617 Various Artists`: digits up to a space or the end
    /// of the name. `None` for a folder without one.
    #[must_use]
    pub fn from_folder_name(name: &str) -> Option<Self> {
        let digits = name.split(' ').next()?;
        let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
        if all_digits { digits.parse().ok().and_then(Self::from_number) } else { None }
    }

    /// The decimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SourceRef {
    type Error = MalformedSourceRef;

    fn try_from(digits: String) -> Result<Self, Self::Error> {
        let number = digits.parse().map_err(|_| MalformedSourceRef)?;
        // Equal, so that a set has one reference: no sign, no leading zeros.
        Self::from_number(number).filter(|reference| reference.0 == digits).ok_or(MalformedSourceRef)
    }
}

/// The text is not the id of a set or a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a source ref is a decimal number from 1 to 2147483647")]
pub struct MalformedSourceRef;

/// How certain it is that a source has a chart. `Exact` sorts before `Declared`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum Confidence {
    /// The chart was read from this set or pack.
    Exact,
    /// Only the metadata of the chart names this source.
    Declared,
}

/// The Source object (docs/formats/records.md, "Sources"): a set or pack that has a chart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// Whether `ref` is the id of a set or of a pack.
    pub kind: SourceKind,
    /// The set or pack id.
    #[serde(rename = "ref")]
    pub reference: SourceRef,
    /// Whether the chart was read from this source.
    pub confidence: Confidence,
    /// When the indexer last found the chart in this source, in Unix epoch milliseconds.
    pub checked_at_ms: i64,
    /// The URL of its page, in responses that include it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, extensions(("x-extension" = json!(true))))]
    pub url: Option<String>,
}

impl Source {
    /// Merges the sources of several chartsets and files: each source once, with its best confidence and the
    /// latest check at that confidence, ordered exact before declared, then by kind and ref.
    #[must_use]
    pub fn merge(mut found: Vec<Self>) -> Vec<Self> {
        found.sort_by(|a, b| (a.kind, &a.reference, a.confidence).cmp(&(b.kind, &b.reference, b.confidence)));
        found.dedup_by(|next, first| {
            let same = (next.kind, &next.reference) == (first.kind, &first.reference);
            if same && next.confidence == first.confidence {
                first.checked_at_ms = first.checked_at_ms.max(next.checked_at_ms);
            }
            same
        });
        found.sort_by(|a, b| (a.confidence, a.kind, &a.reference).cmp(&(b.confidence, b.kind, &b.reference)));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(kind: SourceKind, number: u64, confidence: Confidence, checked_at_ms: i64) -> Source {
        let reference = SourceRef::from_number(number).unwrap();
        Source { kind, reference, confidence, checked_at_ms, url: None }
    }

    #[test]
    fn folder_name_starts_with_the_id() {
        for (name, expected) in [
            ("577617 Various Artists - Piano 7K BMS Pack", Some("577617")),
            ("577617", Some("577617")),
            ("007 leading zeros", Some("7")),
            ("no id - megalovania", None),
            ("4K collection", None),
            ("0 zero", None),
            ("99999999999999999999 too long", None),
            (" 5 starts with a space", None),
            ("", None),
        ] {
            assert_eq!(
                SourceRef::from_folder_name(name).as_ref().map(SourceRef::as_str),
                expected,
                "{name:?}"
            );
        }
    }

    #[test]
    fn exact_sources_sort_before_declared_ones() {
        use Confidence::{Declared, Exact};
        use SourceKind::{AlphaSet, BetaPack};
        let merged = Source::merge(vec![
            source(AlphaSet, 9, Declared, 1),
            source(BetaPack, 3, Exact, 2),
            source(AlphaSet, 8, Exact, 3),
            source(AlphaSet, 8, Exact, 5),
            source(AlphaSet, 8, Declared, 9),
        ]);
        assert_eq!(
            merged,
            [source(AlphaSet, 8, Exact, 5), source(BetaPack, 3, Exact, 2), source(AlphaSet, 9, Declared, 1)]
        );
    }
}
