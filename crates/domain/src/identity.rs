//! How a chart and a chartset are named.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::SourceRef;

/// The version of the note hash that [`NoteHash`] holds, `noteHashVersion` on the wire.
pub const NOTE_HASH_VERSION: u32 = 1;

/// The identity of a chart: the BLAKE3 digest of its canonical notes.
///
/// Written as exactly 64 lower-case hexadecimal characters; nothing else parses (contract, "Chart identity").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NoteHash([u8; 32]);

impl NoteHash {
    /// Wraps a digest that was computed, or stored, elsewhere.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes of the digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for NoteHash {
    type Err = MalformedNoteHash;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_lower_hex(text).map(Self).ok_or(MalformedNoteHash)
    }
}

/// The text is not a note hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a chart hash is exactly 64 lower-case hexadecimal characters")]
pub struct MalformedNoteHash;

/// The identity of a chartset: 16 lower-case hexadecimal characters.
///
/// Derived from what identifies the set in its game, never from its content, so that ingesting again, from a
/// folder or from an archive, gives the same id (decisions, "Chartset").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChartsetId([u8; 8]);

impl ChartsetId {
    /// Wraps an id that was derived before.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }

    /// The 8 bytes of the id.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }

    /// The id of a set of the first game: its set id says it all.
    #[must_use]
    pub fn from_alpha_set(set: &SourceRef) -> Self {
        Self::derive("alpha set", &[set.as_str()])
    }

    /// The id of a song folder in a pack of the second game.
    #[must_use]
    pub fn from_beta_song(pack: &SourceRef, song_folder: &str) -> Self {
        Self::derive("beta song", &[pack.as_str(), song_folder])
    }

    /// The id of a folder without a source: its path below the library root, `/` between the parts.
    #[must_use]
    pub fn from_path(path_below_root: &str) -> Self {
        Self::derive("path", &[path_below_root])
    }

    /// The first 8 bytes of a BLAKE3 digest over the parts, each with its length before it, so that no two
    /// lists of parts give the same input.
    fn derive(scheme: &str, parts: &[&str]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("chart-index 2026 chartset id v1");
        for part in std::iter::once(&scheme).chain(parts) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let mut id = [0; 8];
        id.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        Self(id)
    }
}

impl FromStr for ChartsetId {
    type Err = MalformedChartsetId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_lower_hex(text).map(Self).ok_or(MalformedChartsetId)
    }
}

/// The text is not a chartset id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a chartset id is exactly 16 lower-case hexadecimal characters")]
pub struct MalformedChartsetId;

/// The number of keys of a chart: 4 to 7 (contract, "Limits").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct KeyCount(u8);

impl KeyCount {
    /// The fewest keys that the index holds.
    pub const MIN: u8 = 4;
    /// The most keys that the index holds.
    pub const MAX: u8 = 7;

    /// The key count as a number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for KeyCount {
    type Error = InvalidKeyCount;

    fn try_from(keys: u8) -> Result<Self, Self::Error> {
        if (Self::MIN..=Self::MAX).contains(&keys) { Ok(Self(keys)) } else { Err(InvalidKeyCount(keys)) }
    }
}

/// A key count outside 4 to 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} keys, where the index holds charts of 4 to 7")]
pub struct InvalidKeyCount(pub u8);

fn parse_lower_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(bytes)
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// The digits of the bytes, in a buffer of twice their length. A page of a list is full of ids, and a formatter that
/// is called for every byte of one takes longer than all else that is written of a chartset.
fn lower_hex<'a>(bytes: &[u8], buffer: &'a mut [u8]) -> &'a str {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in buffer.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xf)]]);
    }
    // Digits are always text.
    std::str::from_utf8(buffer).unwrap_or_default()
}

macro_rules! written_as_hex {
    ($name:ident, $digits:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(lower_hex(&self.0, &mut [0; $digits]))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(lower_hex(&self.0, &mut [0; $digits]))
            }
        }
    };
}

written_as_hex!(NoteHash, 64);
written_as_hex!(ChartsetId, 16);

impl<'de> Deserialize<'de> for ChartsetId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Digits;

        impl Visitor<'_> for Digits {
            type Value = ChartsetId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a chartset id")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ChartsetId, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_hash_is_64_lower_case_hexadecimal_characters_and_nothing_else() {
        let good = "0123456789abcdef".repeat(4);
        assert_eq!(good.parse::<NoteHash>().unwrap().to_string(), good);
        let upper = good.to_uppercase();
        let (short, long) = (&good[1..], format!("{good}0"));
        let (letter, wide) = (good.replace('a', "g"), "é".repeat(32));
        for bad in ["", short, &long, &upper, &letter, &wide, &format!("{} ", &good[1..])] {
            assert_eq!(bad.parse::<NoteHash>(), Err(MalformedNoteHash), "{bad:?}");
        }
    }

    #[test]
    fn a_chartset_id_is_16_lower_case_hexadecimal_characters_and_nothing_else() {
        assert_eq!("00ff00ff00ff00ff".parse::<ChartsetId>().unwrap().to_string(), "00ff00ff00ff00ff");
        for bad in ["", "00ff00ff00ff00f", "00ff00ff00ff00ff0", "00FF00FF00FF00FF", "00ff00ff00ff00fg"] {
            assert_eq!(bad.parse::<ChartsetId>(), Err(MalformedChartsetId), "{bad:?}");
        }
    }

    /// These ids are in databases and in links: a change here is a change of every address.
    #[test]
    fn chartset_ids_never_change() {
        let five = SourceRef::from_number(5).unwrap();
        let ids = [
            ChartsetId::from_alpha_set(&five),
            ChartsetId::from_beta_song(&five, "Goin' Under"),
            ChartsetId::from_path("alpha/no id"),
        ];
        assert_eq!(
            ids.map(|id| id.to_string()),
            ["6be52ff8bb930b9a", "28d0cdf5bf00c1d9", "3a96fb6c74905fbc"]
        );
    }

    #[test]
    fn the_parts_of_an_id_do_not_run_into_each_other() {
        let (one, eleven) = (SourceRef::from_number(1).unwrap(), SourceRef::from_number(11).unwrap());
        assert_ne!(ChartsetId::from_beta_song(&one, "1 a"), ChartsetId::from_beta_song(&eleven, " a"));
        assert_ne!(ChartsetId::from_alpha_set(&one), ChartsetId::from_path("1"));
    }

    #[test]
    fn key_counts_are_4_to_7() {
        let valid: Vec<u8> = (0..=u8::MAX).filter(|&keys| KeyCount::try_from(keys).is_ok()).collect();
        assert_eq!(valid, [4, 5, 6, 7]);
    }
}
