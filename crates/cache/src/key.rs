//! Cache keys.

use chart_index_domain::{ChartsetId, Entity, NoteHash, hex};

/// The kind of a response. Kinds differ in what changes them, and in their connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A chart lookup.
    Lookup = b'l',
    /// A ROX file.
    Rox = b'r',
    /// A page of the chartset list.
    List = b's',
    /// The detail of a chartset.
    Detail = b'd',
    /// The redirect to the source of a chartset.
    Source = b'g',
    /// A page of the web site.
    Page = b'p',
    /// The preview of a chart.
    Preview = b'v',
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 7] =
        [Self::Lookup, Self::Rox, Self::List, Self::Detail, Self::Source, Self::Page, Self::Preview];

    /// The name of the kind in metrics and spans.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Lookup => "lookup",
            Self::Rox => "rox",
            Self::List => "list",
            Self::Detail => "detail",
            Self::Source => "source",
            Self::Page => "page",
            Self::Preview => "preview",
        }
    }

    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Lookup => 0,
            Self::Rox => 1,
            Self::List => 2,
            Self::Detail => 3,
            Self::Source => 4,
            Self::Page => 5,
            Self::Preview => 6,
        }
    }
}

/// The name of a response, equal on all replicas.
///
/// All keys have 33 bytes: that of a list is a hash of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey {
    kind: Kind,
    name: [u8; 32],
}

/// The hash of a chart, or the id of a chartset and zeros.
pub(crate) type EntityName = [u8; 32];

/// The name of an entity in keys.
pub(crate) fn name_of(entity: Entity) -> EntityName {
    match entity {
        Entity::Chart(hash) => *hash.as_bytes(),
        Entity::Chartset(id) => {
            let mut name = [0; 32];
            name[..8].copy_from_slice(id.as_bytes());
            name
        }
    }
}

impl CacheKey {
    /// The key of a chart lookup.
    #[must_use]
    pub const fn lookup(hash: NoteHash) -> Self {
        Self { kind: Kind::Lookup, name: *hash.as_bytes() }
    }

    /// The key of a ROX file.
    #[must_use]
    pub const fn rox(hash: NoteHash) -> Self {
        Self { kind: Kind::Rox, name: *hash.as_bytes() }
    }

    /// The key of a chart preview.
    #[must_use]
    pub const fn preview(hash: NoteHash) -> Self {
        Self { kind: Kind::Preview, name: *hash.as_bytes() }
    }

    /// The key of a page of the chartset list, for a normalised query. Anything else that the body depends on,
    /// such as the search engine, must be part of it.
    #[must_use]
    pub fn list(normalised_query: &[u8]) -> Self {
        Self {
            kind: Kind::List,
            name: blake3::derive_key("chart-index 2026 list cache key v1", normalised_query),
        }
    }

    /// The key of a chartset detail.
    #[must_use]
    pub fn detail(id: ChartsetId) -> Self {
        Self { kind: Kind::Detail, name: name_of(Entity::Chartset(id)) }
    }

    /// The key of a source redirect.
    #[must_use]
    pub fn source(id: ChartsetId) -> Self {
        Self { kind: Kind::Source, name: name_of(Entity::Chartset(id)) }
    }

    /// The key of a page of the web site. Anything that the body depends on must be part of the name.
    #[must_use]
    pub fn page(name: &[u8]) -> Self {
        Self { kind: Kind::Page, name: blake3::derive_key("chart-index 2026 page cache key v1", name) }
    }

    /// What the response is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The only entity whose changes change the response; `None` if any change may.
    pub(crate) const fn entity(&self) -> Option<&EntityName> {
        match self.kind {
            Kind::Lookup | Kind::Rox | Kind::Preview | Kind::Detail | Kind::Source => Some(&self.name),
            Kind::List | Kind::Page => None,
        }
    }

    /// A byte that spreads the keys evenly.
    pub(crate) const fn spread(&self) -> u8 {
        self.name[7] ^ self.name[31]
    }

    /// The key in Redis, e.g. `ci:1:l:<64 hexadecimal digits>`.
    pub(crate) fn redis_key(&self, prefix: &str) -> String {
        let name = match self.kind {
            Kind::Detail | Kind::Source => &self.name[..8],
            Kind::Lookup | Kind::Rox | Kind::List | Kind::Page | Kind::Preview => &self.name[..],
        };
        let mut digits = [0; 64];
        let digits = hex::encode(name, &mut digits[..2 * name.len()]);
        let mut key = String::with_capacity(prefix.len() + 2 + digits.len());
        key.push_str(prefix);
        key.push(char::from(self.kind as u8));
        key.push(':');
        key.push_str(digits);
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_keys_have_version_and_kind() {
        let hash = NoteHash::from_bytes([0xab; 32]);
        let id = ChartsetId::from_bytes([0x12; 8]);
        for (key, expected) in [
            (CacheKey::lookup(hash), format!("ci:1:l:{}", "ab".repeat(32))),
            (CacheKey::rox(hash), format!("ci:1:r:{}", "ab".repeat(32))),
            (CacheKey::preview(hash), format!("ci:1:v:{}", "ab".repeat(32))),
            (CacheKey::detail(id), format!("ci:1:d:{}", "12".repeat(8))),
        ] {
            assert_eq!(key.redis_key("ci:1:"), expected);
        }
        assert_eq!(CacheKey::list(b"q=a").redis_key("ci:1:").len(), "ci:1:s:".len() + 64);
    }

    #[test]
    fn kinds_are_indexed_by_their_position() {
        assert_eq!(Kind::ALL.map(Kind::index), [0, 1, 2, 3, 4, 5, 6]);
    }
}
