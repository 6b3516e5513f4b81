//! What is kept of an answer.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

/// What is kept of an answer, so that it can be given again without asking the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CachedResponse {
    /// The finished body: the JSON text, or the bytes of a ROX file.
    Found(CachedBody),
    /// The index does not hold it. No body is kept: what there is to say follows from the key, and so hundreds of
    /// thousands of unknown hashes fit in a few megabytes.
    NotFound,
}

impl CachedResponse {
    /// A finished body with its tag.
    #[must_use]
    pub fn found(body: impl Into<Bytes>, tag: &str) -> Self {
        Self::Found(CachedBody::new(Representation { bytes: body.into(), tag: tag.into() }))
    }

    /// Whether the index holds it.
    #[must_use]
    pub const fn is_found(&self) -> bool {
        matches!(self, Self::Found(_))
    }
}

/// One form of a body, as it is sent (RFC 9110, section 3.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Representation {
    /// The bytes, after any content encoding.
    pub bytes: Bytes,
    /// Their entity tag, without the quotes: at most 255 bytes.
    pub tag: Box<str>,
}

/// A finished body, and the same body in gzip once a request asked for it. Clones share both.
///
/// Two bodies are equal if their plain representations are.
#[derive(Clone)]
pub struct CachedBody(Arc<Representations>);

struct Representations {
    plain: Representation,
    /// Unset until the first request that accepts gzip; then `None` where gzip is of no use.
    gzip: OnceLock<Option<Box<Representation>>>,
}

impl CachedBody {
    /// A body that is not compressed yet.
    #[must_use]
    pub fn new(plain: Representation) -> Self {
        Self(Arc::new(Representations { plain, gzip: OnceLock::new() }))
    }

    /// The body as it was before any content encoding.
    #[must_use]
    pub fn plain(&self) -> &Representation {
        &self.0.plain
    }

    /// The body in gzip, if it was compressed before.
    #[must_use]
    pub fn gzip(&self) -> Option<&Representation> {
        self.0.gzip.get()?.as_deref()
    }

    /// The body in gzip. `compress` runs once for all clones, and gives `None` where gzip is of no use. Use
    /// [`Cache::gzip`](crate::Cache::gzip) for a body from a cache, which then accounts for its bytes.
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

    /// The memory that all representations take.
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

/// Why there is no answer. All that wait for one fill share its error.
pub enum FillError<E> {
    /// The fill failed, and nothing was kept that could stand in.
    Failed(Arc<E>),
    /// The fill took longer than [`CacheConfig::fill_timeout`](crate::CacheConfig::fill_timeout) and was stopped.
    TimedOut,
    /// As many fills are in flight, or requests wait for them, as there may be.
    Overloaded,
    /// The fill panicked, or the runtime is shutting down.
    Abandoned,
}

impl<E> Clone for FillError<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Failed(error) => Self::Failed(Arc::clone(error)),
            Self::TimedOut => Self::TimedOut,
            Self::Overloaded => Self::Overloaded,
            Self::Abandoned => Self::Abandoned,
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for FillError<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => formatter.debug_tuple("Failed").field(error).finish(),
            Self::TimedOut => formatter.write_str("TimedOut"),
            Self::Overloaded => formatter.write_str("Overloaded"),
            Self::Abandoned => formatter.write_str("Abandoned"),
        }
    }
}

impl<E> fmt::Display for FillError<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Failed(_) => "fill the cache: the read failed",
            Self::TimedOut => "fill the cache: the read timed out",
            Self::Overloaded => "fill the cache: too many reads are in flight",
            Self::Abandoned => "fill the cache: the read was abandoned",
        })
    }
}

impl<E: Error + 'static> Error for FillError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => Some(&**error),
            Self::TimedOut | Self::Overloaded | Self::Abandoned => None,
        }
    }
}
