//! The setting `OBJECT_STORE_URL`.

use clap::Args;

use crate::ObjectStoreUrl;

/// The object store that a program uses.
#[derive(Debug, Clone, Args)]
pub struct ObjectStoreArguments {
    /// Where new ROX files are stored: `s3://bucket/prefix`, `gs://bucket/prefix`,
    /// `az://container/prefix`, or a folder as `file:///path`. Without it, in PostgreSQL
    #[arg(long, env = "OBJECT_STORE_URL", global = true)]
    object_store_url: Option<ObjectStoreUrl>,
}

impl ObjectStoreArguments {
    /// The address of the store, if one is configured.
    #[must_use]
    pub const fn url(&self) -> Option<&ObjectStoreUrl> {
        self.object_store_url.as_ref()
    }
}
