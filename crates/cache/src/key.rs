//! Cache keys.

use chart_index_domain::search::Engine;
use chart_index_domain::{ChartsetId, Entity, NoteHash, hex};

/// The kind of a response. Kinds differ in what changes them, in their connections, and in the queue that their
/// fills wait in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A chart lookup.
    Lookup = b'l',
    /// A ROX file.
    Rox = b'r',
    /// A page of the chartset list.
    List = b's',
    /// A page of the list that PostgreSQL searches for.
    PostgresList = b't',
    /// The detail of a chartset.
    Detail = b'd',
    /// The redirect to the source of a chartset.
    Source = b'g',
    /// The redirect to the source of a chart.
    ChartSource = b'h',
    /// A page of the web site.
    Page = b'p',
    /// A page of the web site that PostgreSQL searches for.
    PostgresPage = b'q',
    /// The preview of a chart.
    Preview = b'v',
    /// A lookup with variants, which are other charts.
    Extended = b'x',
}

impl Kind {
    /// The name of each group of kinds in metrics and spans.
    pub(crate) const GROUPS: [&str; 8] =
        ["lookup", "rox", "list", "detail", "source", "page", "preview", "extended"];

    /// The index of its group in [`Self::GROUPS`].
    pub(crate) const fn group(self) -> usize {
        match self {
            Self::Lookup => 0,
            Self::Rox => 1,
            Self::List | Self::PostgresList => 2,
            Self::Detail => 3,
            Self::Source | Self::ChartSource => 4,
            Self::Page | Self::PostgresPage => 5,
            Self::Preview => 6,
            Self::Extended => 7,
        }
    }

    /// Whether any change of the catalogue may change it, such as a list.
    pub(crate) const fn depends_on_catalogue(self) -> bool {
        matches!(self, Self::List | Self::PostgresList | Self::Page | Self::PostgresPage | Self::Extended)
    }

    /// Whether it is a file, which is read from Redis over a connection of its own.
    pub(crate) const fn is_file(self) -> bool {
        matches!(self, Self::Rox | Self::Preview)
    }
}

/// The name of a response, equal on all replicas.
///
/// All keys have 38 bytes: that of a list is a hash of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey {
    kind: Kind,
    /// The set of extension fields in the response; 0 for none.
    fields: u8,
    /// A digest of the settings of the replica that the body depends on; 0 for none.
    settings: [u8; 4],
    name: [u8; 32],
}

/// The prefix of the keys in Redis. The digit is the version of the format.
const PREFIX: &str = "ci:1:";

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
        Self::new(Kind::Lookup, *hash.as_bytes())
    }

    /// The key of a ROX file.
    #[must_use]
    pub const fn rox(hash: NoteHash) -> Self {
        Self::new(Kind::Rox, *hash.as_bytes())
    }

    /// The key of a chart preview.
    #[must_use]
    pub const fn preview(hash: NoteHash) -> Self {
        Self::new(Kind::Preview, *hash.as_bytes())
    }

    /// The key of a page of the chartset list, for a normalised query. Anything else that the body depends on,
    /// except the search engine, must be part of it.
    #[must_use]
    pub fn list(normalised_query: &[u8]) -> Self {
        Self::new(Kind::List, blake3::derive_key("chart-index 2026 list cache key v1", normalised_query))
    }

    /// The key of a chartset detail.
    #[must_use]
    pub fn detail(id: ChartsetId) -> Self {
        Self::new(Kind::Detail, name_of(Entity::Chartset(id)))
    }

    /// The key of a source redirect.
    #[must_use]
    pub fn source(id: ChartsetId) -> Self {
        Self::new(Kind::Source, name_of(Entity::Chartset(id)))
    }

    /// The key of a page of the web site. Anything that the body depends on must be part of the name.
    #[must_use]
    pub fn page(name: &[u8]) -> Self {
        Self::new(Kind::Page, blake3::derive_key("chart-index 2026 page cache key v1", name))
    }

    /// The key of a response that also depends on other charts. Anything that the body depends on must be part
    /// of the name.
    #[must_use]
    pub fn extended(name: &[u8]) -> Self {
        Self::new(Kind::Extended, blake3::derive_key("chart-index 2026 extended cache key v1", name))
    }

    /// The key of the redirect to the source of a chart.
    #[must_use]
    pub const fn chart_source(hash: NoteHash) -> Self {
        Self::new(Kind::ChartSource, *hash.as_bytes())
    }

    const fn new(kind: Kind, name: EntityName) -> Self {
        Self { kind, fields: 0, settings: [0; 4], name }
    }

    /// The key of the same response with extension fields, which change with the same entity. Each set of
    /// fields has a number of its own.
    #[must_use]
    pub const fn with_fields(self, fields: u8) -> Self {
        Self { fields, ..self }
    }

    /// The key of the same response of replicas with these settings.
    #[must_use]
    pub fn with_settings(self, settings: &str) -> Self {
        let [a, b, c, d, ..] = *blake3::hash(settings.as_bytes()).as_bytes();
        Self { settings: [a, b, c, d], ..self }
    }

    /// The key of the same list or page of this search engine. Engines never share an entry.
    #[must_use]
    pub const fn searched_by(self, engine: Engine) -> Self {
        let kind = match (self.kind, engine) {
            (Kind::List, Engine::Postgres) => Kind::PostgresList,
            (Kind::Page, Engine::Postgres) => Kind::PostgresPage,
            (kind, _) => kind,
        };
        Self { kind, ..self }
    }

    /// What the response is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The only entity whose changes change the response; `None` if any change may.
    pub(crate) const fn entity(&self) -> Option<&EntityName> {
        if self.kind.depends_on_catalogue() { None } else { Some(&self.name) }
    }

    /// The note hash or the chartset id of the only entity whose changes change the response.
    #[must_use]
    pub fn entity_text(&self) -> Option<String> {
        self.entity().map(|_| {
            let mut digits = [0; 64];
            let name = self.short_name();
            hex::encode(name, &mut digits[..2 * name.len()]).to_owned()
        })
    }

    /// The name without the zeros after the id of a chartset.
    const fn short_name(&self) -> &[u8] {
        match self.kind {
            Kind::Detail | Kind::Source => self.name.split_at(8).0,
            _ => &self.name,
        }
    }

    /// A byte that spreads the keys evenly.
    pub(crate) const fn shard_byte(&self) -> u8 {
        self.name[7] ^ self.name[31]
    }

    /// The key in Redis, e.g. `ci:1:l:<64 hexadecimal digits>`. Extension fields add two digits, settings
    /// eight.
    pub(crate) fn redis_key(&self) -> String {
        let name = self.short_name();
        let mut digits = [0; 64];
        let digits = hex::encode(name, &mut digits[..2 * name.len()]);
        let (mut fields, mut settings) = ([0; 2], [0; 8]);
        let fields = if self.fields == 0 { "" } else { hex::encode(&[self.fields], &mut fields) };
        let settings = if self.settings == [0; 4] { "" } else { hex::encode(&self.settings, &mut settings) };
        let mut key = String::with_capacity(PREFIX.len() + 2 + digits.len() + fields.len() + settings.len());
        key.push_str(PREFIX);
        key.push(char::from(self.kind as u8));
        key.push(':');
        key.push_str(digits);
        key.push_str(fields);
        key.push_str(settings);
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
            (CacheKey::lookup(hash).with_fields(3), format!("ci:1:l:{}03", "ab".repeat(32))),
            (
                CacheKey::lookup(hash).with_fields(16).with_settings("a"),
                format!("ci:1:l:{}1017762fdd", "ab".repeat(32)),
            ),
            (CacheKey::chart_source(hash), format!("ci:1:h:{}", "ab".repeat(32))),
        ] {
            assert_eq!(key.redis_key(), expected);
        }
        assert_eq!(CacheKey::list(b"q=a").redis_key().len(), "ci:1:s:".len() + 64);
    }

    #[test]
    fn responses_with_fields_follow_the_same_entity() {
        let plain = CacheKey::lookup(NoteHash::from_bytes([0xab; 32]));
        let extended = [1, 2, 3].map(|fields| plain.with_fields(fields));
        assert!(extended.iter().all(|key| *key != plain && key.entity() == plain.entity()));
        assert_eq!(plain.with_fields(0), plain);
    }

    #[test]
    fn engines_never_share_a_key() {
        for key in [CacheKey::list(b"q=a"), CacheKey::page(b"q=a")] {
            let [meilisearch, postgres] =
                [Engine::Meilisearch, Engine::Postgres].map(|engine| key.searched_by(engine));
            assert_ne!(meilisearch, postgres);
            assert_ne!(meilisearch.redis_key(), postgres.redis_key());
            assert_eq!(meilisearch.kind().group(), postgres.kind().group());
        }
    }
}
