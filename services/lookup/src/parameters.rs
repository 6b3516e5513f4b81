//! The parameters of lookups.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use chart_index_domain::search::{ParameterError, parse_parameters};
use chart_index_domain::{NoteHash, Variant};
use chart_index_http::{ApiError, FieldGroup, HashParam, Include, PathParam};

/// Extracts the parameters of a chart lookup.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChartParams {
    pub(crate) hash: NoteHash,
    pub(crate) query: IncludeParams,
}

/// The parameters in a query string.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct IncludeParams {
    pub(crate) include: Include,
    /// The variant of a chart whose hash may be unknown.
    pub(crate) variant: Option<Variant>,
}

/// Extracts the parameters of the charts of a variant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VariantParams {
    pub(crate) variant: Variant,
    pub(crate) include: Include,
}

impl<S: Sync> FromRequestParts<S> for ChartParams {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let HashParam(hash) = HashParam::from_request_parts(parts, state).await?;
        Ok(Self { hash, query: IncludeParams::parse(parts.uri.query().unwrap_or_default())? })
    }
}

impl<S: Sync> FromRequestParts<S> for IncludeParams {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default())?)
    }
}

impl<S: Sync> FromRequestParts<S> for VariantParams {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let PathParam(text) = PathParam::from_request_parts(parts, state).await?;
        let variant = parse_variant(&text)?;
        let include = Include::of_query(parts.uri.query().unwrap_or_default(), FieldGroup::OF_VARIANTS)?;
        Ok(Self { variant, include })
    }
}

impl IncludeParams {
    /// Parses a query string, by the rules of lists.
    fn parse(query_string: &str) -> Result<Self, ParameterError> {
        if query_string.is_empty() {
            return Ok(Self::default());
        }
        let include = Include::of_query(query_string, FieldGroup::OF_LOOKUPS)?;
        let [variant] = parse_parameters(query_string, ["variant"])?;
        Ok(Self { include, variant: variant.map(|value| parse_variant(&value)).transpose()? })
    }
}

fn parse_variant(text: &str) -> Result<Variant, ParameterError> {
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
            let parsed = IncludeParams::parse(&query).unwrap();
            let has_variants = parsed.include.has(FieldGroup::Variants);
            assert_eq!((has_variants, parsed.variant), (include, expected), "{query}");
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
            assert_eq!(IncludeParams::parse(query).unwrap_err().parameter, parameter, "{query}");
        }
    }
}
