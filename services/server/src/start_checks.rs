//! Reads once at the start what settings name, so that a mistake is in the log before a request needs it.

use std::fmt::Display;
use std::path::PathBuf;

use chart_index_objects::Objects;

/// Checks the folder of the exports and the object store in the background. None is needed to start, and both
/// may take long to respond.
pub(crate) fn spawn(exports: Option<PathBuf>, objects: Option<Objects>) {
    if let Some(exports) = exports {
        tokio::spawn(async move { warn("EXPORTS_DIR", tokio::fs::read_dir(exports).await) });
    }
    if let Some(objects) = objects {
        tokio::spawn(async move { warn("OBJECT_STORE_URL", objects.check().await) });
    }
}

fn warn<T>(setting: &str, read: Result<T, impl Display>) {
    if let Err(error) = read {
        tracing::warn!(setting, %error, "what a setting names cannot be read");
    }
}
