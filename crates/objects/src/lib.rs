//! Files outside of PostgreSQL, addressed by their content: in a folder or a bucket.
//!
//! The name of an object is the BLAKE3 digest of its bytes, so an object never changes, and each read is
//! checked by its name. Which objects are needed is not known here: the rows of the store name them. This is
//! the only crate that uses `object_store`.

mod arguments;
mod config;
mod error;
mod objects;

pub use arguments::ObjectStoreArguments;
pub use config::{
    InvalidObjectStoreUrl, InvalidPublicObjectsUrl, ObjectStoreConfig, ObjectStoreUrl, PublicObjectsUrl,
};
pub use error::ObjectError;
pub use objects::{ListedObject, Objects};

/// The BLAKE3 digest of the bytes of an object.
pub type ObjectDigest = blake3::Hash;
