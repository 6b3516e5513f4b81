// Tells which note hashes an index may know: `hash_filter filter.bin < hashes.txt`
//
// curl -L -o filter.bin "$BASE/api/charts/filter"

use std::error::Error;
use std::io::Write;

const HEADER_BYTES: usize = 44;

struct HashFilter {
    seed: u64,
    segment_length: u32,
    segment_count_length: u32,
    fingerprints: Vec<u8>,
}

impl HashFilter {
    /// The filter; `None` if the bytes are no filter of version 1.
    fn new(bytes: &[u8]) -> Option<Self> {
        let u32_at = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let fingerprints = bytes.get(HEADER_BYTES..)?.to_vec();
        let complete = u32_at(40)? as usize == fingerprints.len();
        (bytes.starts_with(b"CIHF\x01\0\0\0") && complete).then_some(Self {
            // At 8 is the sequence of the change feed, at 16 the number of hashes.
            seed: u64_at(24)?,
            segment_length: u32_at(32)?,
            segment_count_length: u32_at(36)?,
            fingerprints,
        })
    }

    /// False if the index did not know the hash at the sequence of the filter. `None` if the hash is malformed.
    fn may_contain(&self, note_hash: &str) -> Option<bool> {
        // The first 8 bytes, of which the first is the lowest.
        let key = u64::from_str_radix(note_hash.get(..16)?, 16).ok()?.swap_bytes();
        let mut mixed = key.wrapping_add(self.seed);
        mixed = (mixed ^ mixed >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        mixed ^= mixed >> 33;
        let mask = self.segment_length - 1;
        let first = ((u128::from(mixed) * u128::from(self.segment_count_length)) >> 64) as u32;
        let second = (first + self.segment_length) ^ ((mixed >> 18) as u32 & mask);
        let third = (first + 2 * self.segment_length) ^ (mixed as u32 & mask);
        let fingerprint = |position: u32| self.fingerprints[position as usize];
        let found = fingerprint(first) ^ fingerprint(second) ^ fingerprint(third);
        Some(found == (mixed ^ mixed >> 32) as u8)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("the file with the filter")?;
    let filter = HashFilter::new(&std::fs::read(file)?).ok_or("no hash filter of version 1")?;
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    for hash in std::io::stdin().lines() {
        let hash = hash?;
        let maybe = filter.may_contain(&hash).ok_or("a note hash has 64 characters")?;
        writeln!(output, "{hash} {}", if maybe { "maybe" } else { "unknown" })?;
    }
    Ok(output.flush()?)
}
