//! Note hashes, chartset ids and key counts.
//!
//! A chartset id is derived from what identifies the song folder, so that ingesting it again, as a folder or as
//! an archive, gives the same id. The library layout determines what that is:
//!
//! | Path below the library root | Identified by | Id | Source |
//! |---|---|---|---|
//! | `alpha/5 name/a.osu` | set id 5 | `from_alpha_set(5)` = `6be52ff8bb930b9a` | set 5 |
//! | `alpha/no id/a.osu` | its path | `from_path("alpha/no id")` = `3a96fb6c74905fbc` | none |
//! | `beta/5 name/Goin' Under/a.sm` | pack id 5 and folder name | `from_beta_song(5, "Goin' Under")` = `28d0cdf5bf00c1d9` | pack 5 |
//!
//! `services/indexer/src/library.rs` has the complete table, which is also its test.

use serde::{Deserialize, Serialize};

use crate::SourceRef;

/// The version of the note hash, `noteHashVersion` in the API.
pub const NOTE_HASH_VERSION: u32 = 1;

/// Identifies a chart: the BLAKE3 digest of its canonical notes (docs/formats/note-hash.md).
///
/// Its text form is exactly 64 lower-case hexadecimal digits; nothing else parses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NoteHash([u8; 32]);

/// Identifies a chartset: 16 lower-case hexadecimal digits (docs/formats/records.md, "Chartsets and ids").
///
/// Derived from what identifies the chartset in its game, not from its content, so that it does not change when
/// the chartset does. A set id that only the metadata of a file declares does not count: an edited copy has
/// that of its original, and neither may overwrite the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChartsetId([u8; 8]);

impl ChartsetId {
    /// The id of a set of the first game.
    #[must_use]
    pub fn from_alpha_set(set: &SourceRef) -> Self {
        Self::derive("alpha set", &[set.as_str()])
    }

    /// The id of a song folder in a pack of the second game.
    #[must_use]
    pub fn from_beta_song(pack: &SourceRef, song_folder: &str) -> Self {
        Self::derive("beta song", &[pack.as_str(), song_folder])
    }

    /// The id of a folder without a source, from its path below the library root with `/` between its
    /// components. If the folder is renamed, it is another chartset.
    #[must_use]
    pub fn from_path(path_below_root: &str) -> Self {
        Self::derive("path", &[path_below_root])
    }

    /// The first 8 bytes of a BLAKE3 digest over the parts. Each is preceded by its length, so that different
    /// lists of parts never give the same input.
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

/// The number of keys of an indexed chart: 4 to 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8")]
pub struct KeyCount(u8);

impl KeyCount {
    /// The lowest key count that is indexed.
    pub const MIN: u8 = 4;
    /// The highest key count that is indexed.
    pub const MAX: u8 = 7;

    /// The key count as a number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// The lowest.
impl Default for KeyCount {
    fn default() -> Self {
        Self(Self::MIN)
    }
}

impl TryFrom<u8> for KeyCount {
    type Error = InvalidKeyCount;

    fn try_from(keys: u8) -> Result<Self, Self::Error> {
        if (Self::MIN..=Self::MAX).contains(&keys) { Ok(Self(keys)) } else { Err(InvalidKeyCount(keys)) }
    }
}

/// The number is not from 4 to 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unsupported key count {0} (only 4 to 7 are indexed)")]
pub struct InvalidKeyCount(pub u8);

/// Implements the conversions of a type of `$length` bytes from and to bytes and lower-case hexadecimal, with
/// the error of another text, whose message begins with `$what`, and the JSON Schema.
macro_rules! impl_hex_bytes {
    ($name:ident, $malformed:ident, $length:literal, $what:literal) => {
        /// The text does not consist of that many lower-case hexadecimal digits.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
        #[error("{} is exactly {} lower-case hexadecimal characters", $what, 2 * $length)]
        pub struct $malformed;

        impl ::utoipa::PartialSchema for $name {
            fn schema() -> ::utoipa::openapi::RefOr<::utoipa::openapi::Schema> {
                $crate::hex::schema($length)
            }
        }

        impl ::utoipa::ToSchema for $name {}

        impl $name {
            /// Wraps the bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; $length]) -> Self {
                Self(bytes)
            }

            /// The bytes.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; $length] {
                &self.0
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $malformed;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::hex::decode(text).map(Self).ok_or($malformed)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str($crate::hex::encode(&self.0, &mut [0; 2 * $length]))
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($crate::hex::encode(&self.0, &mut [0; 2 * $length]))
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Digits;

                impl ::serde::de::Visitor<'_> for Digits {
                    type Value = $name;

                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        write!(f, "{} lower-case hexadecimal digits", 2 * $length)
                    }

                    fn visit_str<E: ::serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }

                deserializer.deserialize_str(Digits)
            }
        }
    };
}

pub(crate) use impl_hex_bytes;

impl_hex_bytes!(NoteHash, MalformedNoteHash, 32, "a chart hash");
impl_hex_bytes!(ChartsetId, MalformedChartsetId, 8, "a chartset id");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_hashes_are_64_lower_case_hex_digits() {
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
    fn chartset_ids_are_16_lower_case_hex_digits() {
        assert_eq!("00ff00ff00ff00ff".parse::<ChartsetId>().unwrap().to_string(), "00ff00ff00ff00ff");
        for bad in ["", "00ff00ff00ff00f", "00ff00ff00ff00ff0", "00FF00FF00FF00FF", "00ff00ff00ff00fg"] {
            assert_eq!(bad.parse::<ChartsetId>(), Err(MalformedChartsetId), "{bad:?}");
        }
    }

    /// Databases and links contain these ids.
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
    fn parts_of_an_id_are_delimited() {
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
