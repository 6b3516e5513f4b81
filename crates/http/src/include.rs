//! The query parameter `include` (docs/api.md, "Extension fields").

use chart_index_domain::Chart;
use chart_index_domain::search::ParameterError;

/// The groups of extension fields that a response has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Include {
    /// `variants`: the variant of each chart, and charts with the same one.
    pub variants: bool,
    /// `rating`: how hard each chart is to play.
    pub rating: bool,
    /// `patterns`: what the rows of each chart consist of.
    pub patterns: bool,
}

impl Include {
    /// The names that the parameter accepts.
    pub const NAMES: [&str; 3] = ["variants", "rating", "patterns"];

    /// Parses a comma-separated list of names.
    ///
    /// # Errors
    ///
    /// A name is unknown.
    pub fn parse(value: &str) -> Result<Self, ParameterError> {
        let mut include = Self::default();
        for name in value.split(',').map(str::trim) {
            match name {
                "variants" => include.variants = true,
                "rating" => include.rating = true,
                "patterns" => include.patterns = true,
                _ => {
                    let reason = format!("accepts {}, separated by commas", Self::NAMES.join(", "));
                    return Err(ParameterError { parameter: "include", reason: reason.into() });
                }
            }
        }
        Ok(include)
    }

    /// The number of this set of groups in [`CacheKey::with_fields`](chart_index_cache::CacheKey::with_fields);
    /// 0 for none.
    #[must_use]
    pub fn fields(self) -> u8 {
        u8::from(self.variants) | u8::from(self.rating) << 1 | u8::from(self.patterns) << 2
    }

    /// Removes the extension fields that are not requested.
    pub fn retain(self, chart: &mut Chart) {
        if !self.variants {
            (chart.variant, chart.variant_version) = (None, None);
        }
        if !self.rating {
            chart.rating = None;
        }
        if !self.patterns {
            chart.patterns = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn include(variants: bool, rating: bool, patterns: bool) -> Include {
        Include { variants, rating, patterns }
    }

    #[test]
    fn names_are_in_any_order() {
        for (value, expected, fields) in [
            ("variants", include(true, false, false), 1),
            ("variants, variants", include(true, false, false), 1),
            ("rating", include(false, true, false), 2),
            ("patterns,rating", include(false, true, true), 6),
            ("rating, patterns,variants", include(true, true, true), 7),
        ] {
            let parsed = Include::parse(value).unwrap();
            assert_eq!((parsed, parsed.fields()), (expected, fields), "{value}");
        }
        assert_eq!(Include::default().fields(), 0);
    }

    #[test]
    fn unknown_names_are_errors() {
        for malformed in ["variant", "Variants", "variants,", "variants;", ",", "rating,pattern"] {
            let error = Include::parse(malformed).unwrap_err();
            let expected = "include: accepts variants, rating, patterns, separated by commas";
            assert_eq!(error.to_string(), expected, "{malformed}");
        }
    }
}
