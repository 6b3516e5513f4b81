//! A writer that computes size and digest of what it writes.

use std::io::{Result, Write};

use chart_index_domain::FileDigest;

/// Passes bytes on, and computes their number and their BLAKE3 digest.
pub(super) struct DigestWriter<W> {
    inner: W,
    bytes: u64,
    hasher: blake3::Hasher,
}

impl<W: Write> DigestWriter<W> {
    pub(super) fn new(inner: W) -> Self {
        Self { inner, bytes: 0, hasher: blake3::Hasher::new() }
    }

    /// The writer, the number of bytes and their digest.
    pub(super) fn finish(self) -> (W, u64, FileDigest) {
        (self.inner, self.bytes, self.hasher.finalize().into())
    }
}

impl<W: Write> Write for DigestWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_is_that_of_all_bytes() {
        let mut writer = DigestWriter::new(Vec::new());
        writer.write_all(b"chart").unwrap();
        writer.write_all(b"set").unwrap();
        let (written, bytes, digest) = writer.finish();
        assert_eq!((written.as_slice(), bytes), (&b"chartset"[..], 8));
        assert_eq!(digest.to_string(), blake3::hash(b"chartset").to_hex().to_string());
    }
}
