//! A lock on a folder that one process at a time may write to.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The file that is locked. No name of an export begins with a dot.
pub(crate) const LOCK: &str = ".lock";

/// Creates a folder and locks it until the file is dropped. The system releases the lock with the process,
/// however it ends.
///
/// # Errors
/// Another process has locked the folder, which the message `in_use` says, or it cannot be created.
pub(crate) fn lock_folder(folder: &Path, in_use: &str) -> Result<File> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join(LOCK);
    let lock = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => bail!("{in_use}"),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}
