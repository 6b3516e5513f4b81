//! Conversions between column values and values of the domain, for all row types.

use chart_index_domain::{ChartsetId, Entity, KeyCount, NoteHash, PublicSource, Rating, SourceRef};

use crate::error::corrupt;

pub(crate) fn parse_chartset_id(id: &str) -> Result<ChartsetId, sqlx::Error> {
    id.parse().map_err(corrupt)
}

/// Parses an entity: the bytes of a note hash, or of a chartset id.
pub(crate) fn parse_entity(bytes: &[u8]) -> Result<Entity, sqlx::Error> {
    Ok(match bytes.try_into().map(ChartsetId::from_bytes) {
        Ok(id) => Entity::Chartset(id),
        Err(_) => Entity::Chart(bytes.try_into().map(NoteHash::from_bytes).map_err(corrupt)?),
    })
}

/// The bytes that [`parse_entity`] parses.
pub(crate) const fn entity_bytes(entity: &Entity) -> &[u8] {
    match entity {
        Entity::Chart(hash) => hash.as_bytes(),
        Entity::Chartset(id) => id.as_bytes(),
    }
}

/// Parses a rating in hundredths.
pub(crate) fn parse_rating(hundredths: i16) -> Result<Rating, sqlx::Error> {
    let rating = u16::try_from(hundredths).ok().and_then(Rating::from_hundredths);
    rating.ok_or_else(|| corrupt("the rating is out of range"))
}

pub(crate) fn parse_keys(keys: i16) -> Result<KeyCount, sqlx::Error> {
    let keys = u8::try_from(keys).map_err(corrupt)?;
    KeyCount::try_from(keys).map_err(corrupt)
}

/// Parses a source from its pair of columns; `None` if both are `NULL`.
pub(crate) fn parse_source(
    kind: Option<&str>,
    reference: Option<&str>,
) -> Result<Option<PublicSource>, sqlx::Error> {
    let (Some(kind), Some(reference)) = (kind, reference) else { return Ok(None) };
    let number: u64 = reference.parse().map_err(corrupt)?;
    let reference = SourceRef::from_number(number).ok_or_else(|| corrupt("a source ref out of range"))?;
    let kind = kind.parse().map_err(|_| corrupt("an unknown kind of source"))?;
    Ok(Some(PublicSource { kind, reference }))
}

/// The pair of columns that stores a source.
pub(crate) fn source_columns(source: Option<&PublicSource>) -> (Option<String>, Option<String>) {
    source.map(|source| (source.kind.as_str().to_owned(), source.reference.to_string())).unzip()
}
