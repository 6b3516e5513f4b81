//! The folder of an export while it is written.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use chart_index_domain::ExportName;

use crate::folder_lock::lock_folder;

/// The name of the folder until the export is complete. No name of an export begins with a dot.
const PARTIAL: &str = ".partial";

/// A folder that is not visible as an export yet. It is deleted when it is dropped.
#[derive(Debug)]
pub(super) struct ExportFolder {
    exports: PathBuf,
    partial: PathBuf,
    _lock: File,
}

impl ExportFolder {
    /// Creates a folder among the exports, and deletes that of an export that was killed.
    ///
    /// # Errors
    /// Another export is running, or the folder cannot be created.
    pub(super) fn create(exports: &Path) -> Result<Self> {
        // Otherwise another one could take the folder for that of an export that was killed.
        let lock = lock_folder(exports, &format!("another export to {} is running", exports.display()))?;
        let partial = exports.join(PARTIAL);
        if partial.exists() {
            fs::remove_dir_all(&partial).with_context(|| format!("cannot delete {}", partial.display()))?;
        }
        fs::create_dir(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
        Ok(Self { exports: exports.to_owned(), partial, _lock: lock })
    }

    /// Where to write the files.
    pub(super) fn path(&self) -> &Path {
        &self.partial
    }

    /// Makes the export visible under its name, and returns its path.
    ///
    /// # Errors
    /// There is an export with this name, or the folder cannot be renamed.
    pub(super) fn publish(&self, name: &ExportName) -> Result<PathBuf> {
        let path = self.exports.join(name.to_string());
        if path.exists() {
            bail!("{} exists", path.display());
        }
        sync_folder(&self.partial)?;
        fs::rename(&self.partial, &path).with_context(|| format!("cannot create {}", path.display()))?;
        sync_folder(&self.exports)?;
        Ok(path)
    }

    /// Deletes all exports but the newest ones and this one, with which there are `count`.
    ///
    /// # Errors
    /// An export cannot be deleted.
    pub(super) fn keep(&self, this: &ExportName, count: NonZeroUsize) -> Result<()> {
        // Others may be newer by their names, of a clock that was ahead.
        let others = exports_in(&self.exports)?.into_iter().filter(|name| name != this);
        for name in others.rev().skip(count.get() - 1) {
            delete(&self.exports.join(name.to_string()))?;
        }
        Ok(())
    }
}

/// Deletes an export, which may be deleted already.
///
/// # Errors
/// It cannot be deleted.
pub(super) fn delete(export: &Path) -> Result<()> {
    match fs::remove_dir_all(export) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        deleted => deleted.with_context(|| format!("cannot delete {}", export.display())),
    }
}

/// The exports in a folder, the newest one last. All else in it is left out, also files with such a name.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn exports_in(folder: &Path) -> Result<Vec<ExportName>> {
    let unreadable = || format!("cannot read {}", folder.display());
    let mut exports = Vec::new();
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let name = entry.file_name().to_str().and_then(|name| name.parse::<ExportName>().ok());
        exports.extend(name.filter(|_| entry.path().is_dir()));
    }
    exports.sort();
    Ok(exports)
}

impl Drop for ExportFolder {
    fn drop(&mut self) {
        // After the rename there is nothing to delete.
        let _ = fs::remove_dir_all(&self.partial);
    }
}

/// Syncs the entries of a folder to disk, so that a rename in it survives a crash.
fn sync_folder(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder_lock::LOCK;

    fn names(exports: &Path) -> Vec<String> {
        let entries = fs::read_dir(exports).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn name() -> ExportName {
        "20261122T182049Z-1".parse().unwrap()
    }

    #[test]
    fn export_is_visible_when_it_is_complete() {
        let exports = tempfile::tempdir().unwrap();
        let folder = ExportFolder::create(exports.path()).unwrap();
        fs::write(folder.path().join("manifest.json"), "{}").unwrap();
        assert_eq!(names(exports.path()), [LOCK, PARTIAL]);
        let path = folder.publish(&name()).unwrap();
        assert_eq!(names(exports.path()), [LOCK, "20261122T182049Z-1"]);
        assert!(path.join("manifest.json").exists());
    }

    #[test]
    fn exports_are_never_replaced() {
        let exports = tempfile::tempdir().unwrap();
        ExportFolder::create(exports.path()).unwrap().publish(&name()).unwrap();
        let again = ExportFolder::create(exports.path()).unwrap().publish(&name());
        assert!(again.unwrap_err().to_string().ends_with("exists"));
        assert_eq!(names(exports.path()), [LOCK, "20261122T182049Z-1"]);
    }

    #[test]
    fn newest_exports_are_kept() {
        let exports = tempfile::tempdir().unwrap();
        let folder = ExportFolder::create(exports.path()).unwrap();
        let kept = ["20251122T182049Z-1", "20261122T182049Z-10", "20991122T182049Z-5", "notes"];
        for name in kept.iter().chain(&["20261122T182049Z-9", "20251122T182049Z-99"]) {
            fs::create_dir(exports.path().join(name)).unwrap();
        }
        fs::write(exports.path().join("20251122T182049Z-2"), "no export").unwrap();
        folder.keep(&kept[0].parse().unwrap(), NonZeroUsize::new(3).unwrap()).unwrap();
        drop(folder);
        delete(&exports.path().join("20261122T182049Z-9")).unwrap();
        let file = "20251122T182049Z-2";
        assert_eq!(names(exports.path()), [LOCK, kept[0], file, kept[1], kept[2], "notes"]);
    }

    #[test]
    fn what_a_killed_export_left_is_deleted() {
        let exports = tempfile::tempdir().unwrap();
        fs::create_dir(exports.path().join(PARTIAL)).unwrap();
        fs::write(exports.path().join(PARTIAL).join("rox.tar"), "partial").unwrap();
        let folder = ExportFolder::create(exports.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let other = ExportFolder::create(exports.path());
        assert!(other.unwrap_err().to_string().contains("is running"));
        drop(folder);
        assert_eq!(names(exports.path()), [LOCK]);
    }
}
