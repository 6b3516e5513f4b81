//! The hash filter and its bytes (docs/formats/hash-filter.md).

use chart_index_domain::NoteHash;
use xorf::{BinaryFuse8, Descriptor, Filter};

const MAGIC: &[u8; 4] = b"CIHF";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 44;

/// A binary fuse filter of note hashes, with 8 bits for each fingerprint (<https://arxiv.org/abs/2201.01174>).
/// It has 9 bits for each chart, where a Bloom filter with as few false positives has 11.5.
///
/// It contains every key that it was built from, and one in 256 of all others.
#[derive(Debug)]
pub struct HashFilter {
    /// The sequence of the change feed at which it contains every known chart.
    pub sequence: u64,
    /// The number of charts.
    pub count: u64,
    fuse: BinaryFuse8,
}

/// The bytes are no hash filter of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHashFilter {
    /// They are another file.
    #[error("no hash filter")]
    OtherFile,
    /// They are of a later version.
    #[error("version {0} of the hash filter is not supported")]
    Version(u32),
    /// They are truncated or changed.
    #[error("damaged hash filter")]
    Damaged,
}

/// A filter cannot be built or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot build a hash filter of {count} charts: {reason}")]
pub struct HashFilterBuildError {
    count: u64,
    reason: &'static str,
}

impl HashFilter {
    /// The part of a note hash that is in the filter: its first 8 bytes, which are distributed uniformly.
    #[must_use]
    pub fn key(hash: NoteHash) -> u64 {
        let mut first = [0; 8];
        first.copy_from_slice(&hash.as_bytes()[..8]);
        u64::from_le_bytes(first)
    }

    /// Builds the filter of these keys, of which each may be given several times. The same keys give the same
    /// bytes. For programs that serve filters.
    ///
    /// # Errors
    /// The construction failed. Its library retries with a thousand seeds.
    pub fn build(sequence: u64, mut keys: Vec<u64>) -> Result<Self, HashFilterBuildError> {
        // The construction fails if keys are repeated.
        keys.sort_unstable();
        keys.dedup();
        let count = keys.len() as u64;
        let fuse = BinaryFuse8::try_from(&keys).map_err(|reason| HashFilterBuildError { count, reason })?;
        // A client would never find a chart that is missing. The check takes 30 ns per key.
        if keys.iter().all(|key| fuse.contains(key)) {
            Ok(Self { sequence, count, fuse })
        } else {
            Err(HashFilterBuildError { count, reason: "it lacks a key from which it was built" })
        }
    }

    /// Whether the index may know a chart. False is certain: the index did not know it at the sequence of the
    /// filter. True is wrong for one in 256 of the charts that it does not know.
    #[must_use]
    pub fn may_contain(&self, hash: NoteHash) -> bool {
        self.fuse.contains(&Self::key(hash))
    }

    /// The bytes of the filter.
    ///
    /// # Errors
    /// It has more than 4 GiB.
    pub fn to_bytes(&self) -> Result<Vec<u8>, HashFilterBuildError> {
        let Descriptor { seed, segment_length, segment_count_length, .. } = self.fuse.descriptor;
        let fingerprints = &self.fuse.fingerprints;
        let length = u32::try_from(fingerprints.len())
            .map_err(|_| HashFilterBuildError { count: self.count, reason: "too large" })?;
        let mut bytes = Vec::with_capacity(HEADER_BYTES + fingerprints.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        bytes.extend_from_slice(&self.count.to_le_bytes());
        bytes.extend_from_slice(&seed.to_le_bytes());
        bytes.extend_from_slice(&segment_length.to_le_bytes());
        bytes.extend_from_slice(&segment_count_length.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(fingerprints);
        Ok(bytes)
    }

    /// Reads the bytes of a filter.
    ///
    /// # Errors
    /// The bytes are not a filter of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidHashFilter> {
        let mut header = Reader(bytes);
        if header.take().as_ref() != Ok(MAGIC) {
            return Err(InvalidHashFilter::OtherFile);
        }
        let version = u32::from_le_bytes(header.take()?);
        if version != VERSION {
            return Err(InvalidHashFilter::Version(version));
        }
        let [sequence, count, seed] =
            [header.take()?, header.take()?, header.take()?].map(u64::from_le_bytes);
        let [segment_length, segment_count_length, length] =
            [header.take()?, header.take()?, header.take()?].map(u32::from_le_bytes);
        let Reader(fingerprints) = header;
        // Then no key leads outside of the fingerprints.
        let segments = segment_length.is_power_of_two() && segment_count_length % segment_length == 0;
        let expected = u64::from(segment_count_length) + 2 * u64::from(segment_length);
        let complete = u64::from(length) == expected && fingerprints.len() as u64 == expected;
        if !(segments && segment_count_length > 0 && complete) {
            return Err(InvalidHashFilter::Damaged);
        }
        let segment_length_mask = segment_length - 1;
        let descriptor = Descriptor { seed, segment_length, segment_length_mask, segment_count_length };
        Ok(Self { sequence, count, fuse: BinaryFuse8 { descriptor, fingerprints: fingerprints.into() } })
    }
}

/// Reads values from the front of bytes.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], InvalidHashFilter> {
        let (value, rest) = self.0.split_first_chunk().ok_or(InvalidHashFilter::Damaged)?;
        self.0 = rest;
        Ok(*value)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Hashes that are uniform, as note hashes are.
    fn hashes(numbers: std::ops::Range<u32>) -> impl Iterator<Item = NoteHash> {
        numbers.map(|number| NoteHash::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes()))
    }

    fn filter(count: u32) -> HashFilter {
        HashFilter::build(7, hashes(0..count).map(HashFilter::key).collect()).unwrap()
    }

    #[test]
    fn filters_of_every_small_size_contain_their_keys() {
        for count in (0..300).chain((300..20_000).step_by(997)) {
            let filter = filter(count);
            assert_eq!((filter.sequence, filter.count), (7, count.into()));
            let read = HashFilter::from_bytes(&filter.to_bytes().unwrap()).unwrap();
            assert_eq!((read.sequence, read.count), (7, count.into()));
            assert!(hashes(0..count).all(|hash| read.may_contain(hash)), "{count}");
        }
    }

    #[test]
    fn false_positives_are_below_half_a_percent() {
        for count in [1_000, 100_000] {
            let filter = filter(count);
            let unknown = 200_000_u32;
            let found = hashes(count..count + unknown).filter(|hash| filter.may_contain(*hash)).count();
            assert!(found < unknown as usize / 200, "{found} of {unknown} with {count} keys");
        }
    }

    #[test]
    fn repeated_keys_and_their_order_do_not_matter() {
        let keys: Vec<_> = hashes(0..1_000).map(HashFilter::key).collect();
        let repeated = keys.iter().rev().chain(&keys).copied().collect();
        let [first, second] =
            [keys, repeated].map(|keys| HashFilter::build(7, keys).unwrap().to_bytes().unwrap());
        assert_eq!(first, second);
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let bytes = filter(1_000).to_bytes().unwrap();
        assert!(HashFilter::from_bytes(&bytes).is_ok());
        for length in [0, 3, 43, 44, bytes.len() - 1] {
            assert!(HashFilter::from_bytes(&bytes[..length]).is_err(), "{length}");
        }
        // Each field that decides where a reader looks: magic, version, segment length, segment count length,
        // length.
        for position in [0, 4, 32, 36, 40] {
            let mut damaged = bytes.clone();
            damaged[position] ^= 1;
            assert!(HashFilter::from_bytes(&damaged).is_err(), "{position}");
        }
        assert!(HashFilter::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    #[ignore = "long: a million hashes"]
    fn long_million_hashes_have_no_false_negative() {
        let keys: Vec<_> = hashes(0..1_000_000).map(HashFilter::key).collect();
        let started = Instant::now();
        let filter = HashFilter::build(7, keys).unwrap();
        let built = started.elapsed();
        let bytes = filter.to_bytes().unwrap();
        let read = HashFilter::from_bytes(&bytes).unwrap();
        assert!(hashes(0..1_000_000).all(|hash| read.may_contain(hash)));
        let found = hashes(1_000_000..2_000_000).filter(|hash| read.may_contain(*hash)).count();
        println!("1,000,000 hashes: {} bytes, built in {built:?}, {found} false positives", bytes.len());
        assert!(bytes.len() < 1_150_000 && found < 5_000, "{} bytes, {found} false positives", bytes.len());
    }
}
