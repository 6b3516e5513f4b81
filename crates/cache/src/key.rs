//! Cache keys.

use chart_index_domain::search::Generation;
use chart_index_domain::{ChartsetId, NoteHash, hex};

/// The kind of a response. Kinds differ in their lifetimes and connections.
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

impl CacheKey {
    pub(crate) const MESSAGE_BYTES: usize = 33;

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

    /// All keys of a chart, to invalidate when it changes or is removed.
    #[must_use]
    pub const fn all_of_chart(hash: NoteHash) -> [Self; 3] {
        [Self::lookup(hash), Self::rox(hash), Self::preview(hash)]
    }

    /// The key of a page of the chartset list, for a normalised query and a generation of the engine's data.
    /// Anything else that the body depends on, such as the search engine, must be part of `normalised_query`.
    #[must_use]
    pub fn list(normalised_query: &[u8], generation: Generation) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("chart-index 2026 list cache key v1");
        hasher.update(&generation.0.to_le_bytes()).update(normalised_query);
        Self { kind: Kind::List, name: *hasher.finalize().as_bytes() }
    }

    /// The key of a chartset detail, in a generation of the catalogue.
    #[must_use]
    pub fn detail(id: ChartsetId, generation: Generation) -> Self {
        Self { kind: Kind::Detail, name: chartset_name(id, generation) }
    }

    /// The key of a source redirect, in a generation of the catalogue.
    #[must_use]
    pub fn source(id: ChartsetId, generation: Generation) -> Self {
        Self { kind: Kind::Source, name: chartset_name(id, generation) }
    }

    /// The key of a page of the web site, for a name and a generation of the data that it shows. Anything else
    /// that the body depends on must be part of the name.
    #[must_use]
    pub fn page(name: &[u8], generation: Generation) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("chart-index 2026 page cache key v1");
        hasher.update(&generation.0.to_le_bytes()).update(name);
        Self { kind: Kind::Page, name: *hasher.finalize().as_bytes() }
    }

    /// What the response is, which determines its lifetimes and its connection to Redis.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// A byte that spreads the keys evenly.
    pub(crate) const fn spread(&self) -> u8 {
        self.name[7] ^ self.name[31]
    }

    /// The key in Redis, e.g. `ci:1:l:<64 hexadecimal digits>`.
    pub(crate) fn redis_key(&self, prefix: &str) -> String {
        let name = match self.kind {
            Kind::Detail | Kind::Source => &self.name[..16],
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

    /// Appends the key to a message.
    pub(crate) fn write_to_message(&self, message: &mut Vec<u8>) {
        message.push(self.kind as u8);
        message.extend_from_slice(&self.name);
    }

    /// Reads the key from a message.
    pub(crate) fn from_message(bytes: &[u8; Self::MESSAGE_BYTES]) -> Option<Self> {
        let [kind, name @ ..] = bytes;
        let kind = Kind::ALL.into_iter().find(|known| *known as u8 == *kind)?;
        Some(Self { kind, name: *name })
    }
}

fn chartset_name(id: ChartsetId, generation: Generation) -> [u8; 32] {
    let mut name = [0; 32];
    name[..8].copy_from_slice(id.as_bytes());
    name[8..16].copy_from_slice(&generation.0.to_be_bytes());
    name
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
            (CacheKey::detail(id, Generation(258)), format!("ci:1:d:{}0000000000000102", "12".repeat(8))),
        ] {
            assert_eq!(key.redis_key("ci:1:"), expected);
        }
        assert_eq!(CacheKey::list(b"q=a", Generation(1)).redis_key("ci:1:").len(), "ci:1:s:".len() + 64);
    }

    #[test]
    fn kinds_are_indexed_by_their_position() {
        assert_eq!(Kind::ALL.map(Kind::index), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn keys_differ_by_query_and_generation() {
        let key = CacheKey::list(b"q=a", Generation(1));
        assert_eq!(key, CacheKey::list(b"q=a", Generation(1)));
        assert_ne!(key, CacheKey::list(b"q=a", Generation(2)));
        assert_ne!(key, CacheKey::list(b"q=b", Generation(1)));
    }

    #[test]
    fn key_round_trips_through_a_message() {
        let id = ChartsetId::from_bytes([9; 8]);
        for key in [
            CacheKey::list(b"", Generation(0)),
            CacheKey::rox(NoteHash::from_bytes([7; 32])),
            CacheKey::detail(id, Generation(3)),
        ] {
            let mut message = Vec::new();
            key.write_to_message(&mut message);
            assert_eq!(CacheKey::from_message(message.as_slice().try_into().unwrap()), Some(key));
        }
        assert_eq!(CacheKey::from_message(&[b'x'; 33]), None);
    }
}
