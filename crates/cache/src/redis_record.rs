//! The format of a response in Redis.
//!
//! | Bytes | Meaning |
//! |---|---|
//! | 1 | version of the format: 5; a record of another version is a miss |
//! | 1 | 0: not found, 1: found |
//! | 1 | kind: the letter in the key |
//! | 8 | start of the read from the store: Unix milliseconds, little-endian |
//! | 8 | lineage of the position up to which the read sees all changes |
//! | 8 | origin of this position, little-endian; 0 if unknown |
//! | 8 | sequence of this position, likewise |
//! | 1 | length of the tag |
//! | | tag, then body |
//! | 8 | checksum: the first bytes of the BLAKE3 hash of the Redis key, a zero byte, and all of the above |
//!
//! The checksum covers the key, so a record under another key is a miss as well. It detects corruption, not
//! forgery by a client that may write to Redis.

use bytes::Bytes;
use chart_index_domain::{Lineage, Origin, Position};

use crate::{CacheKey, CachedResponse};

/// A response in Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) response: CachedResponse,
    /// When the read from the store started, in Unix milliseconds by the clock of the replica that read.
    pub(crate) read_unix_ms: u64,
    /// The read sees every change of the lineage up to this position.
    pub(crate) position: Option<(Lineage, Position)>,
}

const VERSION: u8 = 5;
const HEADER: usize = 36;
const CHECKSUM: usize = 8;

impl Record {
    /// The value to write; `None` for a tag above 255 bytes, which no caller has.
    pub(crate) fn encode(&self, key: &CacheKey, redis_key: &str) -> Option<Vec<u8>> {
        let (found, tag, body) = match &self.response {
            CachedResponse::Found(body) => (1, body.plain().tag.as_bytes(), &body.plain().bytes[..]),
            CachedResponse::NotFound => (0, &[][..], &[][..]),
        };
        let mut value = Vec::with_capacity(HEADER + tag.len() + body.len() + CHECKSUM);
        value.extend([VERSION, found, key.kind() as u8]);
        value.extend(self.read_unix_ms.to_le_bytes());
        value.extend(self.position.map_or([0; 8], |(lineage, _)| *lineage.as_bytes()));
        value.extend(self.position.map_or(0, |(_, position)| position.origin.0).to_le_bytes());
        value.extend(self.position.map_or(0, |(_, position)| position.sequence).to_le_bytes());
        value.push(u8::try_from(tag.len()).ok()?);
        value.extend_from_slice(tag);
        value.extend_from_slice(body);
        let checksum = checksum(redis_key, &value);
        value.extend(checksum);
        Some(value)
    }

    /// The record in a value; `None` unless it is an intact record of this key and version.
    pub(crate) fn decode(key: &CacheKey, redis_key: &str, value: &[u8]) -> Option<Self> {
        let (content, expected) = value.split_at_checked(value.len().checked_sub(CHECKSUM)?)?;
        let (header, rest) = content.split_first_chunk::<HEADER>()?;
        let [VERSION, found, kind, numbers @ .., tag_bytes] = *header else { return None };
        let (numbers, _) = numbers.as_chunks();
        let [time, lineage, origin, sequence] = *numbers else { return None };
        let (origin, sequence) = (Origin(u64::from_le_bytes(origin)), u64::from_le_bytes(sequence));
        if kind != key.kind() as u8 || checksum(redis_key, content) != expected {
            return None;
        }
        let (tag, body) = rest.split_at_checked(usize::from(tag_bytes))?;
        let response = match found {
            // Copied, because the read buffer of the Redis client may be larger.
            1 => CachedResponse::found(Bytes::copy_from_slice(body), std::str::from_utf8(tag).ok()?),
            0 if rest.is_empty() => CachedResponse::NotFound,
            _ => return None,
        };
        Some(Self {
            response,
            read_unix_ms: u64::from_le_bytes(time),
            position: (origin.0 != 0).then(|| (Lineage::from_bytes(lineage), Position { origin, sequence })),
        })
    }
}

fn checksum(redis_key: &str, content: &[u8]) -> [u8; CHECKSUM] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(redis_key.as_bytes()).update(&[0]).update(content);
    let mut sum = [0; CHECKSUM];
    sum.copy_from_slice(&hasher.finalize().as_bytes()[..CHECKSUM]);
    sum
}

#[cfg(test)]
mod tests {
    use chart_index_domain::NoteHash;

    use super::*;

    const KEY: CacheKey = CacheKey::lookup(NoteHash::from_bytes([3; 32]));

    fn records() -> [Record; 3] {
        let record = |response, position: Option<(u64, u64)>| Record {
            response,
            read_unix_ms: 1_790_000_000_000,
            position: position.map(|(origin, sequence)| {
                (Lineage::from_bytes([9; 8]), Position { origin: Origin(origin), sequence })
            }),
        };
        [
            record(CachedResponse::NotFound, None),
            record(CachedResponse::found("", ""), Some((1, 0))),
            record(CachedResponse::found(vec![7; 300], "0123456789abcdef"), Some((u64::MAX, 2))),
        ]
    }

    #[test]
    fn record_round_trips() {
        for record in records() {
            let value = record.encode(&KEY, "k").unwrap();
            assert_eq!(Record::decode(&KEY, "k", &value), Some(record));
        }
    }

    #[test]
    fn record_of_another_version_is_a_miss() {
        for record in records() {
            let mut value = record.encode(&KEY, "k").unwrap();
            let content = value.len() - CHECKSUM;
            value[0] = 4;
            let sum = checksum("k", &value[..content]);
            value[content..].copy_from_slice(&sum);
            assert_eq!(Record::decode(&KEY, "k", &value), None);
        }
    }

    #[test]
    fn corrupt_or_foreign_record_is_a_miss() {
        for record in records() {
            let value = record.encode(&KEY, "k").unwrap();
            for length in 0..value.len() {
                assert_eq!(Record::decode(&KEY, "k", &value[..length]), None, "cut to {length}");
            }
            for bit in 0..value.len() * 8 {
                let mut corrupt = value.clone();
                corrupt[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Record::decode(&KEY, "k", &corrupt), None, "bit {bit}");
            }
            assert_eq!(Record::decode(&KEY, "other", &value), None);
            assert_eq!(Record::decode(&CacheKey::rox(NoteHash::from_bytes([3; 32])), "k", &value), None);
            assert_eq!(Record::decode(&KEY, "k", &[value, vec![0]].concat()), None);
        }
    }
}
