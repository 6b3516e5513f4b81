//! ROX files, which are in PostgreSQL or in the object store (decision 0092).

use chart_index_domain::NoteHash;
use chart_index_objects::{ObjectDigest, ObjectError, Objects};
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::Store;
use crate::error::{corrupt, object_error};

/// Maximum number of objects that one call reads or writes at a time.
const CONCURRENT_OBJECTS: usize = 16;

/// A file as its row has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredFile {
    Bytes(Vec<u8>),
    Object(ObjectDigest),
}

/// A row of `rox_files`.
#[derive(sqlx::FromRow)]
pub(crate) struct RoxFileRow {
    hash: [u8; 32],
    bytes: Option<Vec<u8>>,
    object: Option<[u8; 32]>,
}

impl RoxFileRow {
    pub(crate) fn parse(self) -> Result<(NoteHash, StoredFile), sqlx::Error> {
        Ok((NoteHash::from_bytes(self.hash), StoredFile::parse(self.bytes, self.object)?))
    }
}

impl StoredFile {
    /// The values of the columns; `None` without any. The bytes are cheaper to read.
    pub(crate) fn new(bytes: Option<Vec<u8>>, object: Option<[u8; 32]>) -> Option<Self> {
        bytes.map(Self::Bytes).or_else(|| object.map(|digest| Self::Object(digest.into())))
    }

    /// The values of the columns of a row, which has at least one of them.
    pub(crate) fn parse(bytes: Option<Vec<u8>>, object: Option<[u8; 32]>) -> Result<Self, sqlx::Error> {
        Self::new(bytes, object).ok_or_else(|| corrupt("a file has neither bytes nor an object"))
    }
}

impl Store {
    /// Returns the content of a file.
    pub(crate) async fn content(&self, file: StoredFile) -> Result<Vec<u8>, ObjectError> {
        match file {
            StoredFile::Bytes(bytes) => Ok(bytes),
            StoredFile::Object(digest) => self.objects().ok_or(ObjectError::NotConfigured)?.get(digest).await,
        }
    }

    /// Returns the contents of files, in the same order.
    ///
    /// # Errors
    /// The object store is unavailable. A file that is missing or damaged is an error of its own.
    pub(crate) async fn contents(
        &self,
        files: Vec<StoredFile>,
    ) -> Result<Vec<Result<Vec<u8>, ObjectError>>, sqlx::Error> {
        let contents = stream::iter(files).map(|file| self.content(file)).buffered(CONCURRENT_OBJECTS);
        let contents = contents.map(|content| match content {
            Err(error) if !error.is_loss() => Err(object_error(error)),
            content => Ok(content),
        });
        contents.try_collect().await
    }
}

/// Files to write to rows: each has bytes, or is an object.
#[derive(Debug, Default)]
pub(crate) struct NewFiles<'a> {
    pub(crate) bytes: Vec<Option<&'a [u8]>>,
    pub(crate) objects: Vec<Option<[u8; 32]>>,
}

impl<'a> NewFiles<'a> {
    /// Stores files as objects, if there is an object store, except those that stay in PostgreSQL.
    ///
    /// The transaction that writes the rows holds the lock of
    /// [`removal_lock`](crate::connection::removal_lock), shared or not: until it ends, no object that no row
    /// names yet is deleted. An object that is there already is written again, since it may be damaged.
    pub(crate) async fn store(
        objects: Option<&Objects>,
        files: Vec<Option<&'a [u8]>>,
        stays: impl Fn(usize) -> bool,
    ) -> Result<Self, sqlx::Error> {
        let Some(objects) = objects else {
            return Ok(Self { objects: vec![None; files.len()], bytes: files });
        };
        let mut new = Self::default();
        let mut written = Vec::new();
        for (index, file) in files.into_iter().enumerate() {
            let is_object = !stays(index);
            new.bytes.push(file.filter(|_| !is_object));
            new.objects.push(None);
            if let Some(file) = file.filter(|_| is_object) {
                written.push(async move { objects.put(file).await.map(|digest| (index, digest)) });
            }
        }
        let mut written = stream::iter(written).buffer_unordered(CONCURRENT_OBJECTS);
        while let Some((index, digest)) = written.try_next().await.map_err(object_error)? {
            if let Some(object) = new.objects.get_mut(index) {
                *object = Some(*digest.as_bytes());
            }
        }
        Ok(new)
    }
}
