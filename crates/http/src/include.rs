//! The query parameter `include` (docs/api.md, "Extension fields").

use chart_index_cache::CacheKey;
use chart_index_domain::Chart;
use chart_index_domain::search::{ParameterError, Parameters};
use strum::IntoStaticStr;

use crate::SourcePages;

/// A group of extension fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[repr(u8)]
pub enum FieldGroup {
    /// The variant of each chart, and charts with the same one.
    Variants = 1,
    /// How hard each chart is to play.
    Rating = 1 << 1,
    /// What the rows of each chart consist of.
    Patterns = 1 << 2,
    /// The chartsets that contain each chart.
    Chartsets = 1 << 3,
    /// The URL of each source.
    Links = 1 << 4,
    /// When a chartset last changed.
    Updated = 1 << 5,
}

impl FieldGroup {
    /// Those of a chart lookup.
    pub const OF_LOOKUPS: &[Self] =
        &[Self::Variants, Self::Rating, Self::Patterns, Self::Chartsets, Self::Links];
    /// Those of the charts of a variant.
    pub const OF_VARIANTS: &[Self] = &[Self::Chartsets, Self::Links];
    /// Those of a chartset list.
    pub const OF_LISTS: &[Self] = &[Self::Rating, Self::Updated];
    /// Those of the detail of a chartset.
    pub const OF_DETAILS: &[Self] =
        &[Self::Variants, Self::Rating, Self::Patterns, Self::Chartsets, Self::Links, Self::Updated];

    /// The name in the parameter.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The groups of extension fields that a response has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Include(u8);

impl Include {
    /// Parses the parameter in a query string, by the rules of lists.
    ///
    /// # Errors
    ///
    /// As for [`Self::parse`], or it is not UTF-8.
    pub fn of_query(query_string: &str, accepted: &[FieldGroup]) -> Result<Self, ParameterError> {
        let parameters = Parameters::parse(query_string, &["include"])?;
        Ok(parameters.parsed("include", |value| Self::parse(value, accepted))?.unwrap_or_default())
    }

    /// Parses a comma-separated list of the names of these groups.
    ///
    /// # Errors
    ///
    /// A name is none of them.
    pub fn parse(value: &str, accepted: &[FieldGroup]) -> Result<Self, ParameterError> {
        let mut include = Self::default();
        for name in value.split(',').map(str::trim) {
            let Some(group) = accepted.iter().find(|group| group.as_str() == name) else {
                let names: Vec<_> = accepted.iter().map(|group| group.as_str()).collect();
                let reason = format!("accepts {}, separated by commas", names.join(", "));
                return Err(ParameterError { parameter: "include", reason: reason.into() });
            };
            include.0 |= *group as u8;
        }
        Ok(include)
    }

    /// Whether the response has this group.
    #[must_use]
    pub const fn has(self, group: FieldGroup) -> bool {
        self.0 & group as u8 != 0
    }

    /// The key of a response with these groups. Replicas may have other source pages, so those with links do
    /// not share what they cache.
    #[must_use]
    pub fn key(self, key: CacheKey, pages: &SourcePages) -> CacheKey {
        let key = key.with_fields(self.0);
        if self.has(FieldGroup::Links) { key.with_settings(&pages.to_string()) } else { key }
    }

    /// Removes the extension fields that are not requested.
    pub fn retain(self, chart: &mut Chart) {
        if !self.has(FieldGroup::Variants) {
            (chart.variant, chart.variant_version) = (None, None);
        }
        if !self.has(FieldGroup::Rating) {
            chart.rating = None;
        }
        if !self.has(FieldGroup::Patterns) {
            chart.patterns = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_any_order() {
        use FieldGroup::{Patterns, Rating, Updated, Variants};
        for (value, expected) in [
            ("variants", &[Variants][..]),
            ("variants, variants", &[Variants]),
            ("rating", &[Rating]),
            ("patterns,rating", &[Rating, Patterns]),
            ("updated, patterns,variants", &[Variants, Patterns, Updated]),
        ] {
            let parsed = Include::parse(value, FieldGroup::OF_DETAILS).unwrap();
            let groups = FieldGroup::OF_DETAILS.iter().filter(|group| parsed.has(**group));
            assert!(groups.eq(expected), "{value}");
        }
    }

    #[test]
    fn unknown_names_are_errors() {
        for malformed in ["variant", "Links", "links,", "links;", ",", "links,chartset", "rating"] {
            let error = Include::parse(malformed, FieldGroup::OF_VARIANTS).unwrap_err();
            let expected = "include: accepts chartsets, links, separated by commas";
            assert_eq!(error.to_string(), expected, "{malformed}");
        }
    }

    #[test]
    fn links_are_cached_for_the_source_pages_of_the_replica() {
        let pages = |alpha: &str| SourcePages {
            alpha_source_page: alpha.parse().unwrap(),
            beta_source_page: "https://beta.example/packs".parse().unwrap(),
        };
        let [one, other] = ["https://alpha.example/sets", "https://alpha.example/s"].map(pages);
        let key = CacheKey::page(b"name");
        for (value, is_shared) in [("links,rating", false), ("rating", true)] {
            let include = Include::parse(value, FieldGroup::OF_LOOKUPS).unwrap();
            assert_eq!(include.key(key, &one) == include.key(key, &other), is_shared, "{value}");
        }
    }
}
