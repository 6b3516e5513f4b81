//! The generation of the catalogue, which shows whether anything has changed since an entry was read.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chart_index_domain::search::{DatabaseIdentity, Generation};

/// The generation of the catalogue when the store was last asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueStatus {
    /// A number that differs after every change of the catalogue.
    pub generation: Generation,
    /// The database of the catalogue. Another one may have an earlier state of it.
    pub database: DatabaseIdentity,
    /// When the read of the generation started: the catalogue was in this generation then or later.
    pub read_at: Instant,
}

/// A function that returns the last known status of the catalogue, without waiting; `None` before the first
/// read.
#[derive(Clone)]
pub struct CatalogueStatusSource(Arc<dyn Fn() -> Option<CatalogueStatus> + Send + Sync>);

impl CatalogueStatusSource {
    /// A source that calls this function.
    pub fn new(status: impl Fn() -> Option<CatalogueStatus> + Send + Sync + 'static) -> Self {
        Self(Arc::new(status))
    }
}

impl fmt::Debug for CatalogueStatusSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("CatalogueStatusSource").field(&(self.0)()).finish()
    }
}

/// Assigns a local id to each generation that this process sees. It fits into every entry in memory; a
/// generation, which has 8 bytes, does not.
#[derive(Debug)]
pub(crate) struct GenerationTracker {
    source: Option<CatalogueStatusSource>,
    newest: Mutex<(LocalGenerationId, Option<Generation>)>,
}

/// The id of a generation in this process, in 24 bits. Equal ids mean the same generation; a generation that
/// comes back has a new id. Ids wrap after 16.8 million changes, 194 days at one per second: no entry gets that
/// old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalGenerationId(u32);

impl LocalGenerationId {
    /// No generation is known.
    pub(crate) const UNKNOWN: Self = Self(0);

    fn next(self) -> Self {
        Self(((self.0 + 1) & 0xff_ffff).max(1))
    }

    pub(crate) const fn to_bytes(self) -> [u8; 3] {
        let [low, middle, high, _] = self.0.to_le_bytes();
        [low, middle, high]
    }

    pub(crate) const fn from_bytes([low, middle, high]: [u8; 3]) -> Self {
        Self(u32::from_le_bytes([low, middle, high, 0]))
    }
}

/// The last known generation of the catalogue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CurrentGeneration {
    pub(crate) generation: Generation,
    pub(crate) local_id: LocalGenerationId,
    pub(crate) database: DatabaseIdentity,
    read_at: Instant,
}

impl GenerationTracker {
    pub(crate) const fn new(source: Option<CatalogueStatusSource>) -> Self {
        Self { source, newest: Mutex::new((LocalGenerationId::UNKNOWN, None)) }
    }

    /// The last known generation.
    pub(crate) fn current(&self) -> Option<CurrentGeneration> {
        let CatalogueStatus { generation, database, read_at } = (self.source.as_ref()?.0)()?;
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.1 != Some(generation) {
            *newest = (newest.0.next(), Some(generation));
        }
        Some(CurrentGeneration { generation, local_id: newest.0, database, read_at })
    }

    /// The time since the catalogue was last confirmed to be in this generation; `None` if it is in another one
    /// now, or if nothing is known.
    pub(crate) fn time_since_confirmed(&self, local_id: LocalGenerationId) -> Option<Duration> {
        if local_id == LocalGenerationId::UNKNOWN {
            return None;
        }
        self.current().filter(|current| current.local_id == local_id).map(|current| current.read_at.elapsed())
    }

    /// The local id of this generation; [`LocalGenerationId::UNKNOWN`] if it is not the last known one.
    pub(crate) fn local_id_of(&self, generation: Option<Generation>) -> LocalGenerationId {
        let current = self.current().filter(|current| Some(current.generation) == generation);
        current.map_or(LocalGenerationId::UNKNOWN, |current| current.local_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracker() -> (GenerationTracker, Arc<Mutex<Option<CatalogueStatus>>>) {
        let status = Arc::new(Mutex::new(None));
        let source = {
            let status = Arc::clone(&status);
            CatalogueStatusSource::new(move || *status.lock().unwrap())
        };
        (GenerationTracker::new(Some(source)), status)
    }

    fn status(generation: u64) -> CatalogueStatus {
        let database = DatabaseIdentity(1);
        CatalogueStatus { generation: Generation(generation), database, read_at: Instant::now() }
    }

    #[test]
    fn generation_is_unknown_before_the_first_read() {
        let without_source = GenerationTracker::new(None);
        let local_id = without_source.local_id_of(Some(Generation(1)));
        assert_eq!(without_source.time_since_confirmed(local_id), None);
        let (tracker, _) = tracker();
        assert!(tracker.current().is_none());
        assert_eq!(tracker.local_id_of(None), LocalGenerationId::UNKNOWN);
        assert_eq!(tracker.time_since_confirmed(LocalGenerationId::UNKNOWN), None);
    }

    #[test]
    fn generation_is_current_until_another_is_read() {
        let (tracker, now) = tracker();
        *now.lock().unwrap() = Some(status(7));
        let local_id = tracker.local_id_of(Some(Generation(7)));
        assert!(tracker.time_since_confirmed(local_id).is_some());
        assert_eq!(tracker.local_id_of(Some(Generation(6))), LocalGenerationId::UNKNOWN);
        *now.lock().unwrap() = Some(status(8));
        assert_eq!(tracker.time_since_confirmed(local_id), None);
        *now.lock().unwrap() = Some(status(7));
        assert_eq!(tracker.time_since_confirmed(local_id), None, "it changed in between");
    }

    #[test]
    fn local_ids_wrap_and_skip_unknown() {
        let last = LocalGenerationId(0xff_ffff);
        assert_eq!(LocalGenerationId::from_bytes(last.to_bytes()), last);
        assert_eq!(last.next(), LocalGenerationId(1));
    }
}
