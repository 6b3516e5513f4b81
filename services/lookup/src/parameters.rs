//! The parameters of lookups.

use chart_index_domain::Variant;
use chart_index_domain::search::{ParameterError, Parameters};
use chart_index_http::{FieldGroup, Include};

/// Parses the query string of a lookup, by the rules of lists: the groups of extension fields, and the variant
/// of a chart whose hash may be unknown.
pub(crate) fn parse_lookup(query_string: &str) -> Result<(Include, Option<Variant>), ParameterError> {
    let include = Include::of_query(query_string, FieldGroup::OF_LOOKUPS)?;
    let parameters = Parameters::parse(query_string, &["variant"])?;
    Ok((include, parameters.parsed("variant", parse_variant)?))
}

pub(crate) fn parse_variant(text: &str) -> Result<Variant, ParameterError> {
    const REASON: &str = "accepts exactly 64 lower-case hexadecimal characters";
    text.parse().map_err(|_| ParameterError { parameter: "variant", reason: REASON.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn include_and_variant_are_parsed() {
        let digits = "ab".repeat(32);
        let variant = Some(Variant::from_bytes([0xab; 32]));
        for (query, include, expected) in [
            (String::new(), false, None),
            ("include=&variant=&x=1".into(), false, None),
            ("include=variants".into(), true, None),
            ("include=rating&include=variants".into(), true, None),
            (format!("include=variants&variant={digits}"), true, variant),
            (format!("variant={digits}"), false, variant),
        ] {
            let (parsed, variant) = parse_lookup(&query).unwrap();
            assert_eq!((parsed.has(FieldGroup::Variants), variant), (include, expected), "{query}");
        }
    }

    #[test]
    fn malformed_parameters_are_named() {
        let upper = format!("variant={}", "AB".repeat(32));
        for (query, parameter) in [
            ("include=all", "include"),
            ("include=variants&include=all", "include"),
            ("variant=ab&variant=ab", "variant"),
            ("include=%FF", "include"),
            ("variant=ab", "variant"),
            (&upper, "variant"),
        ] {
            assert_eq!(parse_lookup(query).unwrap_err().parameter, parameter, "{query}");
        }
    }
}
