//! Versions: positions in the change feed in eight bytes, for entries and atomics.

/// A position that this process knew: the number of its origin here, above the sequence.
///
/// The number of an origin increases whenever polls reach another one. A new lineage has one more number before
/// that of its first origin: for positions of its earlier origins, which other replicas knew. The lower one of
/// two versions is of the earlier origin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(u64);

impl Version {
    /// No position is known.
    pub(crate) const UNKNOWN: Self = Self(0);
    const SEQUENCE_BITS: u32 = 53;
    const MAX_SEQUENCE: u64 = (1 << Self::SEQUENCE_BITS) - 1;
    /// Numbers begin again after this one. At a change of the origin every second, for half an hour, an entry
    /// of that age might be taken for a current one. It is stale by then.
    const MAX_ORIGIN: u64 = u64::MAX >> Self::SEQUENCE_BITS;

    /// The version at this sequence of the same origin.
    pub(crate) fn at(self, sequence: u64) -> Self {
        Self(self.0 & !Self::MAX_SEQUENCE | sequence.min(Self::MAX_SEQUENCE))
    }

    /// The version at this sequence of the next origin.
    pub(crate) fn at_next_origin(self, sequence: u64) -> Self {
        let number = (self.0 >> Self::SEQUENCE_BITS) % Self::MAX_ORIGIN + 1;
        Self(number << Self::SEQUENCE_BITS).at(sequence)
    }

    pub(crate) const fn sequence(self) -> u64 {
        self.0 & Self::MAX_SEQUENCE
    }

    /// Whether its origin is this one or a later one.
    pub(crate) const fn is_from(self, first: Self) -> bool {
        self.0 >> Self::SEQUENCE_BITS >= first.0 >> Self::SEQUENCE_BITS
    }

    /// Whether both are known, and of the same origin.
    pub(crate) const fn has_origin_of(self, other: Self) -> bool {
        self.0 != 0 && (self.0 ^ other.0) >> Self::SEQUENCE_BITS == 0
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_within_an_origin() {
        let first = Version::UNKNOWN.at_next_origin(7);
        assert_eq!((first.sequence(), first.at(9).sequence()), (7, 9));
        assert!(first.has_origin_of(first.at(9)) && first < first.at(9));
        let second = first.at_next_origin(3);
        assert!(!second.has_origin_of(first) && first < second && Version::UNKNOWN < first);
        assert!(!Version::UNKNOWN.has_origin_of(Version::UNKNOWN));
        let last = Version::MAX_SEQUENCE;
        assert_eq!(second.at(u64::MAX), second.at(last));
        assert!(second.at(last).has_origin_of(second));
    }

    #[test]
    fn numbers_of_origins_wrap_and_skip_unknown() {
        let last = (0..Version::MAX_ORIGIN).fold(Version::UNKNOWN, |version, _| version.at_next_origin(0));
        assert_eq!(last.bits() >> Version::SEQUENCE_BITS, 2_047);
        assert_eq!(last.at_next_origin(5), Version::UNKNOWN.at_next_origin(5));
    }
}
