//! Whether a folder or an archive is as it was when it was last read.
//!
//! Two digests tell. The one of the metadata (name, size, times and inode of each file) needs no file to be opened, and
//! is what is compared first. Where it differs, as after a copy of the library, the one of the content needs the files
//! to be read, and still spares decoding them. Both include the program itself: another version may read the same file
//! otherwise.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::library::Place;
use crate::song_folder::{self, ChartFile};

/// A file that changed less than this before its metadata was read may change again without a new time: file systems
/// keep times in steps of up to two seconds. Its metadata is not relied on.
const UNSETTLED: Duration = Duration::from_secs(3);

/// How this program reads files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules([u8; 32]);

impl Rules {
    /// The rules of this very build: a digest of the program. Numbers that someone has to raise with each change of a
    /// decoder would be forgotten once, and the charts of that version would never be repaired.
    ///
    /// # Errors
    /// The file of the program cannot be read.
    pub(crate) fn of_this_program() -> io::Result<Self> {
        // On Linux this is the program that runs, also after its file was replaced.
        let program = File::open("/proc/self/exe").or_else(|_| File::open(std::env::current_exe()?))?;
        let mut hasher = blake3::Hasher::new_derive_key("chart-index 2026 ingest rules v1");
        hasher.update_reader(program)?;
        Ok(Self(*hasher.finalize().as_bytes()))
    }

    /// A digest of the metadata of a place's files as of `now`, `None` where it cannot be relied on later.
    pub(crate) fn metadata(self, place: &Place, now: SystemTime) -> Option<[u8; 32]> {
        let settled_before = now.checked_sub(UNSETTLED)?;
        let mut digest = self.digest("chart-index 2026 ingest metadata v1", place);
        if place.is_archive {
            digest.file("", &std::fs::metadata(&place.location).ok()?, settled_before)?;
        } else {
            for (name, path) in song_folder::list(place).ok()? {
                digest.file(&name, &std::fs::symlink_metadata(&path).ok()?, settled_before)?;
            }
        }
        Some(digest.finish())
    }

    /// A digest of the names and bytes of a place's files.
    pub(crate) fn content(self, place: &Place, files: &[ChartFile]) -> [u8; 32] {
        let mut digest = self.digest("chart-index 2026 ingest content v1", place);
        for file in files {
            digest.bytes(file.name.as_bytes());
            match &file.content {
                Ok(content) => digest.bytes(content),
                // The reason is all that is reported of such a file.
                Err(refusal) => digest.bytes(format!("refused: {refusal}").as_bytes()),
            }
            digest.number(file.content.is_ok().into());
        }
        digest.finish()
    }

    fn digest(self, context: &str, place: &Place) -> Digest {
        let mut digest = Digest(blake3::Hasher::new_derive_key(context));
        digest.bytes(&self.0);
        digest.number(place.layout as u64);
        digest.bytes(place.path.as_bytes());
        digest
    }
}

/// Names a place in the store: by its path below the library root, so that a library may move.
pub(crate) fn place_key(place: &Place) -> [u8; 32] {
    let mut digest = Digest(blake3::Hasher::new_derive_key("chart-index 2026 ingest place v1"));
    digest.number(place.is_archive.into());
    digest.bytes(place.full_path().as_bytes());
    digest.finish()
}

/// Every value goes in with its length, so that no two contents give the same input.
struct Digest(blake3::Hasher);

impl Digest {
    /// Adds a file; `None` where it changed too recently. The time of the last change of the inode is what counts: unlike
    /// the other one it cannot be set.
    fn file(&mut self, name: &str, metadata: &Metadata, settled_before: SystemTime) -> Option<()> {
        let changed_s = u64::try_from(metadata.ctime()).ok()?;
        if UNIX_EPOCH + Duration::from_secs(changed_s) >= settled_before {
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
    use crate::library::places;

    const RULES: Rules = Rules([1; 32]);

    /// A library with a folder and an archive, and its places in this order.
    fn library() -> (tempfile::TempDir, Vec<Place>) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("alpha/1 one")).unwrap();
        std::fs::write(root.path().join("alpha/1 one/a.osu"), "a").unwrap();
        std::fs::write(root.path().join("alpha/2 two.osz"), "b").unwrap();
        let places = places(root.path()).unwrap();
        assert_eq!(places.len(), 2);
        (root, places)
    }

    fn later() -> SystemTime {
        SystemTime::now() + Duration::from_hours(1)
    }

    #[test]
    fn metadata_of_a_recent_change_is_not_relied_on() {
        let (_root, places) = library();
        for place in &places {
            let file = if place.is_archive { place.location.clone() } else { place.location.join("a.osu") };
            let changed_s = u64::try_from(std::fs::metadata(file).unwrap().ctime()).unwrap();
            let after = |seconds| UNIX_EPOCH + Duration::from_secs(changed_s + seconds);
            assert_eq!(RULES.metadata(place, after(0)), None);
            assert_eq!(RULES.metadata(place, after(3)), None);
            assert!(RULES.metadata(place, after(4)).is_some());
        }
    }

    #[test]
    fn metadata_follows_names_and_files_and_rules() {
        let (root, places) = library();
        let digests = || places.iter().map(|place| RULES.metadata(place, later())).collect::<Vec<_>>();
        let before = digests();
        assert_eq!(digests(), before);
        std::fs::rename(root.path().join("alpha/1 one/a.osu"), root.path().join("alpha/1 one/b.osu"))
            .unwrap();
        std::fs::write(root.path().join("alpha/2 new"), "b").unwrap();
        std::fs::rename(root.path().join("alpha/2 new"), root.path().join("alpha/2 two.osz")).unwrap();
        let after = digests();
        assert!(after.iter().zip(&before).all(|(after, before)| after.is_some() && after != before));
        assert_ne!(Rules([2; 32]).metadata(&places[0], later()), after[0]);
    }

    #[test]
    fn content_follows_names_and_bytes_and_rules() {
        let (_root, places) = library();
        let file = |name: &str, content: &str| ChartFile { name: name.into(), content: Ok(content.into()) };
        let digest = |files: &[ChartFile]| RULES.content(&places[0], files);
        let before = digest(&[file("a", "bc")]);
        assert_eq!(digest(&[file("a", "bc")]), before);
        for other in
            [vec![file("ab", "c")], vec![file("a", "bd")], vec![file("a", "bc"), file("d", "")], vec![]]
        {
            assert_ne!(digest(&other), before);
        }
        assert_ne!(Rules([2; 32]).content(&places[0], &[file("a", "bc")]), before);
        assert_ne!(RULES.content(&places[1], &[file("a", "bc")]), before);
    }
}
