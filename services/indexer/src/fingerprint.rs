//! Detects whether an input changed since it was last ingested.
//!
//! Each input has two digests. The file metadata digest (name, size, times and inode of each file) is compared
//! first and needs no file to be opened. If it differs, for example in a copy of the library, the content
//! digest is compared, which needs the files to be read but not decoded. Both include a digest of the program:
//! another version may decode the same file differently.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::archive_folders::ChartFile;
use crate::input_files;
use crate::library::Input;

/// The metadata of a file that changed less than this before is not used: the file may change again without a
/// new timestamp, since file systems have a resolution of up to 2 s.
const MIN_AGE: Duration = Duration::from_secs(3);

/// Computes the digests of inputs for this build of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fingerprinter {
    program: [u8; 32],
}

impl Fingerprinter {
    /// Reads the running program. Its digest replaces a version number of the decoders, which would have to be
    /// increased with each change.
    ///
    /// # Errors
    /// The executable cannot be read.
    pub(crate) fn for_this_program() -> io::Result<Self> {
        // On Linux this is the running program even if its file was replaced.
        let program = File::open("/proc/self/exe").or_else(|_| File::open(std::env::current_exe()?))?;
        let mut hasher = blake3::Hasher::new_derive_key("chart-index 2026 ingest rules v1");
        hasher.update_reader(program)?;
        Ok(Self { program: *hasher.finalize().as_bytes() })
    }

    /// The file metadata digest of an input. `None` if a file changed too recently before `now`, or cannot be
    /// read.
    pub(crate) fn file_metadata_digest(self, input: &Input, now: SystemTime) -> Option<[u8; 32]> {
        let changed_before = now.checked_sub(MIN_AGE)?;
        let mut digest = self.digest("chart-index 2026 ingest metadata v1", input);
        if input.is_archive {
            digest.file("", &std::fs::metadata(&input.location).ok()?, changed_before)?;
        } else {
            for (name, path) in input_files::list(input).ok()? {
                digest.file(&name, &std::fs::symlink_metadata(&path).ok()?, changed_before)?;
            }
        }
        Some(digest.finish())
    }

    /// The content digest of an input: names and bytes of its files.
    pub(crate) fn content_digest(self, input: &Input, files: &[ChartFile]) -> [u8; 32] {
        let mut digest = self.digest("chart-index 2026 ingest content v1", input);
        for file in files {
            digest.bytes(file.folder.archive.as_deref().unwrap_or_default().as_bytes());
            digest.bytes(file.folder.path.as_bytes());
            digest.bytes(file.name.as_bytes());
            match &file.content {
                Ok(content) => digest.bytes(content),
                // Nothing but the reason is reported of such a file.
                Err(refusal) => digest.bytes(format!("refused: {refusal}").as_bytes()),
            }
            digest.number(file.content.is_ok().into());
        }
        digest.finish()
    }

    fn digest(self, context: &str, input: &Input) -> Digest {
        let mut digest = Digest(blake3::Hasher::new_derive_key(context));
        digest.bytes(&self.program);
        digest.number(input.layout as u64);
        digest.bytes(input.path.as_bytes());
        digest
    }
}

/// The key of an input in the store
/// ([`InputFingerprint::input_key`](chart_index_store::InputFingerprint::input_key)). It depends only on the
/// path below the library root, so that a library can be moved.
pub(crate) fn input_key(input: &Input) -> [u8; 32] {
    let mut digest = Digest(blake3::Hasher::new_derive_key("chart-index 2026 ingest input v1"));
    digest.number(input.is_archive.into());
    digest.bytes(input.full_path().as_bytes());
    digest.finish()
}

/// A digest over values with their lengths, so that different lists of values never have the same input.
struct Digest(blake3::Hasher);

impl Digest {
    /// Adds the metadata of a file. `None` if it changed too recently by its inode's change time, which
    /// programs cannot set.
    fn file(&mut self, name: &str, metadata: &Metadata, changed_before: SystemTime) -> Option<()> {
        let changed_s = u64::try_from(metadata.ctime()).ok()?;
        if UNIX_EPOCH + Duration::from_secs(changed_s) >= changed_before {
            return None;
        }
        self.bytes(name.as_bytes());
        self.number(metadata.len());
        self.number(metadata.ino());
        for time in [metadata.ctime(), metadata.ctime_nsec(), metadata.mtime(), metadata.mtime_nsec()] {
            self.number(time.cast_unsigned());
        }
        Some(())
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn finish(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::{FolderInInput, find_inputs};

    const OTHER: Fingerprinter = Fingerprinter { program: [2; 32] };
    const FINGERPRINTER: Fingerprinter = Fingerprinter { program: [1; 32] };

    /// A library with a folder and an archive, and its inputs in this order.
    fn library() -> (tempfile::TempDir, Vec<Input>) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("alpha/1 one")).unwrap();
        std::fs::write(root.path().join("alpha/1 one/a.osu"), "a").unwrap();
        std::fs::write(root.path().join("alpha/2 two.osz"), "b").unwrap();
        let inputs = find_inputs(root.path()).unwrap();
        assert_eq!(inputs.len(), 2);
        (root, inputs)
    }

    fn later() -> SystemTime {
        SystemTime::now() + Duration::from_hours(1)
    }

    #[test]
    fn metadata_of_recent_changes_is_not_used() {
        let (_root, inputs) = library();
        for input in &inputs {
            let file = if input.is_archive { input.location.clone() } else { input.location.join("a.osu") };
            let changed_s = u64::try_from(std::fs::metadata(file).unwrap().ctime()).unwrap();
            let after = |seconds| UNIX_EPOCH + Duration::from_secs(changed_s + seconds);
            assert_eq!(FINGERPRINTER.file_metadata_digest(input, after(0)), None);
            assert_eq!(FINGERPRINTER.file_metadata_digest(input, after(3)), None);
            assert!(FINGERPRINTER.file_metadata_digest(input, after(4)).is_some());
        }
    }

    #[test]
    fn metadata_depends_on_names_files_and_program() {
        let (root, inputs) = library();
        let digests = || {
            inputs.iter().map(|input| FINGERPRINTER.file_metadata_digest(input, later())).collect::<Vec<_>>()
        };
        let before = digests();
        assert_eq!(digests(), before);
        std::fs::rename(root.path().join("alpha/1 one/a.osu"), root.path().join("alpha/1 one/b.osu"))
            .unwrap();
        std::fs::write(root.path().join("alpha/2 new"), "b").unwrap();
        std::fs::rename(root.path().join("alpha/2 new"), root.path().join("alpha/2 two.osz")).unwrap();
        let after = digests();
        assert!(after.iter().zip(&before).all(|(after, before)| after.is_some() && after != before));
        assert_ne!(OTHER.file_metadata_digest(&inputs[0], later()), after[0]);
    }

    #[test]
    fn content_depends_on_names_bytes_and_program() {
        let (_root, inputs) = library();
        let file = |name: &str, content: &str| ChartFile {
            folder: FolderInInput::default(),
            name: name.into(),
            content: Ok(content.into()),
        };
        let digest = |files: &[ChartFile]| FINGERPRINTER.content_digest(&inputs[0], files);
        let before = digest(&[file("a", "bc")]);
        assert_eq!(digest(&[file("a", "bc")]), before);
        for other in
            [vec![file("ab", "c")], vec![file("a", "bd")], vec![file("a", "bc"), file("d", "")], vec![]]
        {
            assert_ne!(digest(&other), before);
        }
        assert_ne!(OTHER.content_digest(&inputs[0], &[file("a", "bc")]), before);
        assert_ne!(FINGERPRINTER.content_digest(&inputs[1], &[file("a", "bc")]), before);
    }
}
