//! What else than its note hash a chart is known by.

use crate::Variant;
use crate::identity::impl_hex_bytes;

/// The MD5 digest of an `.osu` or `.qua` file, by which its game identifies the chart.
///
/// Its text form is exactly 32 lower-case hexadecimal digits; nothing else parses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileMd5([u8; 16]);

impl_hex_bytes!(FileMd5, MalformedMd5, 16, "an MD5 digest");

/// What the files of a chart in a chartset have in addition to its note hash. A chart keeps those of earlier
/// versions of its files. Both lists are sorted, and have each value once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileAliases {
    /// The digests of its `.osu` and `.qua` files.
    pub md5s: Vec<FileMd5>,
    /// The variants of the chart with the heads of its rolls, which are not in the note hash: converters turn
    /// rolls into long notes.
    pub roll_variants: Vec<Variant>,
}

impl FileAliases {
    /// The greatest number of values of a list in a record of a chartset.
    pub const MAX_VALUES: usize = 64;

    /// The aliases with these values, in any order.
    #[must_use]
    pub fn new(md5s: Vec<FileMd5>, roll_variants: Vec<Variant>) -> Self {
        let mut aliases = Self::default();
        aliases.extend(Self { md5s, roll_variants });
        aliases
    }

    /// Adds the values of another file with the same chart.
    pub fn extend(&mut self, other: Self) {
        self.md5s.extend(other.md5s);
        self.roll_variants.extend(other.roll_variants);
        self.md5s.sort_unstable();
        self.md5s.dedup();
        self.roll_variants.sort_unstable();
        self.roll_variants.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn md5_digests_are_32_lower_case_hex_digits() {
        let good = "0123456789abcdef".repeat(2);
        assert_eq!(good.parse::<FileMd5>().unwrap().to_string(), good);
        for bad in ["", &good[1..], &format!("{good}0"), &good.to_uppercase(), &good.replace('a', "g")] {
            assert_eq!(bad.parse::<FileMd5>(), Err(MalformedMd5), "{bad:?}");
        }
    }

    #[test]
    fn aliases_of_several_files_are_a_set() {
        let aliases = |md5s: &[u8]| {
            FileAliases::new(md5s.iter().map(|&byte| FileMd5::from_bytes([byte; 16])).collect(), Vec::new())
        };
        let mut first = aliases(&[2]);
        first.extend(aliases(&[1]));
        first.extend(aliases(&[2]));
        assert_eq!(first, aliases(&[1, 2]));
    }
}
