//! Cached responses, and what a lookup in memory returns.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use chart_index_domain::Position;

/// The cacheable part of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CachedResponse {
    /// The body: JSON text, or the bytes of a ROX file.
    Found(CachedBody),
    /// The index does not hold the key. The body follows from the key and is not cached, so hundreds of
    /// thousands of unknown hashes fit in a few megabytes.
    NotFound,
}

impl CachedResponse {
    /// A response with this body. The tag has no quotes.
    #[must_use]
    pub fn found(body: impl Into<Bytes>, tag: &str) -> Self {
        Self::Found(CachedBody::new(Representation { bytes: body.into(), tag: tag.into() }))
    }

    pub(crate) fn body_bytes(&self) -> usize {
        match self {
            Self::Found(body) => body.plain().bytes.len(),
            Self::NotFound => 0,
        }
    }
}

/// What a fill has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    /// The response.
    pub response: CachedResponse,
    /// The position of the data that was read, if they may lag behind the catalogue; `None` if they were read
    /// from the catalogue itself.
    pub position: Option<Position>,
}

impl From<CachedResponse> for Filled {
    fn from(response: CachedResponse) -> Self {
        Self { response, position: None }
    }
}

/// What memory has for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryLookup {
    /// To be served as it is.
    Fresh(CachedResponse),
    /// To be served, and refreshed in the background.
    Stale(CachedResponse),
    /// No response that may be served without asking Redis or the store.
    Miss,
}

/// A representation of a response (RFC 9110, section 3.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Representation {
    /// The bytes, with the content encoding applied.
    pub bytes: Bytes,
    /// The entity tag of these bytes without quotes, up to 255 bytes.
    pub tag: Box<str>,
}

/// A body, and its gzip representation once a request has accepted that. Clones share both.
///
/// Bodies are equal if their plain representations are.
#[derive(Clone)]
pub struct CachedBody(Arc<Representations>);

struct Representations {
    plain: Representation,
    /// Unset until the first request that accepts gzip; `None` if gzip does not make the body smaller.
    gzip: OnceLock<Option<Box<Representation>>>,
}

impl CachedBody {
    /// A body without a gzip representation.
    #[must_use]
    pub fn new(plain: Representation) -> Self {
        Self(Arc::new(Representations { plain, gzip: OnceLock::new() }))
    }

    /// The representation without a content encoding.
    #[must_use]
    pub fn plain(&self) -> &Representation {
        &self.0.plain
    }

    /// The gzip representation, if there is one already.
    #[must_use]
    pub fn gzip(&self) -> Option<&Representation> {
        self.0.gzip.get()?.as_deref()
    }

    /// The gzip representation. `compress` is called once for all clones; it returns `None` if gzip does not
    /// make the body smaller. For a body from a cache use [`Cache::gzip`](crate::Cache::gzip), which accounts
    /// for the bytes.
    pub fn gzip_or_compress(
        &self,
        compress: impl FnOnce(&Bytes) -> Option<Representation>,
    ) -> Option<&Representation> {
        self.0.gzip.get_or_init(|| compress(&self.0.plain.bytes).map(Box::new)).as_deref()
    }

    /// Whether both are clones of one body.
    pub(crate) fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The bytes of memory of all representations.
    pub(crate) fn size(&self) -> u64 {
        let size = |one: &Representation| (one.bytes.len() + one.tag.len()) as u64;
        size(&self.0.plain) + self.gzip().map_or(0, |gzip| size(gzip) + size_of::<Representation>() as u64)
    }
}

impl PartialEq for CachedBody {
    fn eq(&self, other: &Self) -> bool {
        self.is_clone_of(other) || self.0.plain == other.0.plain
    }
}

impl Eq for CachedBody {}

impl fmt::Debug for CachedBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compressed = self.gzip().map(|gzip| gzip.bytes.len());
        formatter
            .debug_struct("CachedBody")
            .field("plain", &self.0.plain)
            .field("gzip_bytes", &compressed)
            .finish()
    }
}
