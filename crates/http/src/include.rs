//! The query parameter `include` (docs/api.md, "Variants").

use chart_index_domain::search::ParameterError;

/// The groups of extension fields that a response has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Include {
    /// `variants`: the variant of each chart, and charts with the same one.
    pub variants: bool,
}

impl Include {
    /// The names that the parameter accepts.
    pub const NAMES: [&str; 1] = ["variants"];

    /// Parses a comma-separated list of names.
    ///
    /// # Errors
    ///
    /// A name is unknown.
    pub fn parse(value: &str) -> Result<Self, ParameterError> {
        let mut include = Self::default();
        for name in value.split(',').map(str::trim) {
            if name != "variants" {
                let reason = format!("accepts {}, separated by commas", Self::NAMES.join(", "));
                return Err(ParameterError { parameter: "include", reason: reason.into() });
            }
            include.variants = true;
        }
        Ok(include)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_errors() {
        assert_eq!(Include::parse("variants"), Ok(Include { variants: true }));
        assert_eq!(Include::parse("variants, variants"), Ok(Include { variants: true }));
        for malformed in ["variant", "Variants", "variants,", "variants;", ","] {
            let error = Include::parse(malformed).unwrap_err();
            assert_eq!(error.to_string(), "include: accepts variants, separated by commas", "{malformed}");
        }
    }
}
