//! What is known of the catalogue in the store: whether it changed since an answer was read.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chart_index_domain::search::Generation;

/// What the store said when it was last asked for the generation of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueStatus {
    /// A number that is another one after every change of the catalogue.
    pub generation: Generation,
    /// When the read that gave it began: the generation was in force then or later.
    pub read_at: Instant,
}

/// Gives the status of the catalogue as it was last read; `None` before the first read. It is to return at once.
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

/// The generations that this process has seen, each with a number of its own: that fits into an entry of the memory
/// where the generation itself is longer.
#[derive(Debug)]
pub(crate) struct Catalogue {
    source: Option<CatalogueStatusSource>,
    newest: Mutex<(GenerationNumber, Option<Generation>)>,
}

/// Names a generation within this process, in 24 bits. Equal numbers stand for one generation; the number of a
/// generation that came back is another one. They wrap after 194 days of a change in every second, when no entry is
/// that old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GenerationNumber(u32);

impl GenerationNumber {
    /// Not known: equal to no generation.
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

/// The catalogue as it was last read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) generation: Generation,
    pub(crate) number: GenerationNumber,
    read_at: Instant,
}

impl Catalogue {
    pub(crate) const fn new(source: Option<CatalogueStatusSource>) -> Self {
        Self { source, newest: Mutex::new((GenerationNumber::UNKNOWN, None)) }
    }

    /// The catalogue as it was last read.
    pub(crate) fn seen(&self) -> Option<Seen> {
        let CatalogueStatus { generation, read_at } = (self.source.as_ref()?.0)()?;
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.1 != Some(generation) {
            *newest = (newest.0.next(), Some(generation));
        }
        Some(Seen { generation, number: newest.0, read_at })
    }

    /// How long ago the catalogue was last known to be in this generation; `None` if it is in another one now, or
    /// nothing is known.
    pub(crate) fn unchanged_ago(&self, number: GenerationNumber) -> Option<Duration> {
        if number == GenerationNumber::UNKNOWN {
            return None;
        }
        self.seen().filter(|seen| seen.number == number).map(|seen| seen.read_at.elapsed())
    }

    /// The number of this generation, if it is the one that was read last.
    pub(crate) fn number_of(&self, generation: Option<Generation>) -> GenerationNumber {
        let seen = self.seen().filter(|seen| Some(seen.generation) == generation);
        seen.map_or(GenerationNumber::UNKNOWN, |seen| seen.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A catalogue, and where its generation is set.
    fn catalogue() -> (Catalogue, Arc<Mutex<Option<CatalogueStatus>>>) {
        let status = Arc::new(Mutex::new(None));
        let source = {
            let status = Arc::clone(&status);
            CatalogueStatusSource::new(move || *status.lock().unwrap())
        };
        (Catalogue::new(Some(source)), status)
    }

    fn status(generation: u64) -> CatalogueStatus {
        CatalogueStatus { generation: Generation(generation), read_at: Instant::now() }
    }

    #[test]
    fn nothing_is_known_without_a_source_or_before_the_first_read() {
        let nothing = Catalogue::new(None);
        assert_eq!(nothing.unchanged_ago(nothing.number_of(Some(Generation(1)))), None);
        let (catalogue, _) = catalogue();
        assert!(catalogue.seen().is_none());
        assert_eq!(catalogue.number_of(None), GenerationNumber::UNKNOWN);
        assert_eq!(catalogue.unchanged_ago(GenerationNumber::UNKNOWN), None);
    }

    #[test]
    fn a_generation_is_unchanged_until_another_is_read() {
        let (catalogue, now) = catalogue();
        *now.lock().unwrap() = Some(status(7));
        let number = catalogue.number_of(Some(Generation(7)));
        assert!(catalogue.unchanged_ago(number).is_some());
        assert_eq!(catalogue.number_of(Some(Generation(6))), GenerationNumber::UNKNOWN);
        *now.lock().unwrap() = Some(status(8));
        assert_eq!(catalogue.unchanged_ago(number), None);
        *now.lock().unwrap() = Some(status(7));
        assert_eq!(catalogue.unchanged_ago(number), None, "what it came back from is not known");
    }

    #[test]
    fn numbers_of_generations_wrap_and_skip_the_unknown() {
        let last = GenerationNumber(0xff_ffff);
        assert_eq!(GenerationNumber::from_bytes(last.to_bytes()), last);
        assert_eq!(last.next(), GenerationNumber(1));
    }
}
