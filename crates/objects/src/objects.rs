//! [`Objects`]: reads, writes and deletes objects.

use std::fmt;
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use chart_index_instrumentation::{DatabaseClient, Operation};
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, BackoffConfig, ClientConfigKey, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutOptions, RetryConfig,
};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::config::path_of;
use crate::{ObjectDigest, ObjectError, ObjectStoreConfig};

/// How long a browser and a CDN may keep an object that they read from the bucket. A removed one is not purged
/// there: the CDN revalidates it, so that the removal takes effect within 5 seconds.
const CACHE_CONTROL: &str = "public, max-age=300, s-maxage=5";
/// Pauses between the requests for an object.
const BACKOFF: BackoffConfig =
    BackoffConfig { init_backoff: Duration::from_millis(50), max_backoff: Duration::from_secs(1), base: 2.0 };
/// Maximum number of times that a request is repeated.
const MAX_RETRIES: usize = 3;

/// An object store. Clones are cheap and share the connections.
#[derive(Clone)]
pub struct Objects {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// Of new objects.
    attributes: Attributes,
    timeout: Duration,
    permits: Semaphore,
    get: Operation,
    put: Operation,
    delete: Operation,
}

/// An object in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedObject {
    /// Its name.
    pub digest: ObjectDigest,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was last written.
    pub modified_at: SystemTime,
}

impl Objects {
    /// Opens a store. A bucket is not contacted before it is used; a folder must exist.
    pub fn open(config: &ObjectStoreConfig) -> Result<Self, ObjectError> {
        let url = config.url.as_url();
        let mut attributes = Attributes::new();
        let (store, prefix): (Arc<dyn ObjectStore>, _) = if let Some(folder) = config.url.folder() {
            let folder = LocalFileSystem::new_with_prefix(folder).map_err(ObjectError::Invalid)?;
            // An object must not be lost after the commit that names it.
            (Arc::new(folder.with_fsync(true)), Path::default())
        } else {
            attributes.insert(Attribute::ContentType, "application/octet-stream".into());
            attributes.insert(Attribute::CacheControl, CACHE_CONTROL.into());
            let prefix =
                Path::from_url_path(url.path()).map_err(|error| ObjectError::Invalid(error.into()))?;
            (bucket(config).map_err(ObjectError::Invalid)?, prefix)
        };
        let client = DatabaseClient::new("object_store");
        let inner = Inner {
            store,
            prefix,
            attributes,
            timeout: config.timeout,
            permits: Semaphore::new(config.max_in_flight.min(Semaphore::MAX_PERMITS)),
            get: client.operation("get"),
            put: client.operation("put"),
            delete: client.operation("delete"),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the bytes of an object, which are those that it was stored with.
    pub async fn get(&self, digest: ObjectDigest) -> Result<Vec<u8>, ObjectError> {
        let inner = &*self.inner;
        let read = async {
            let object = inner.store.get(&inner.key(&digest)).await;
            let bytes = match object {
                Ok(object) => object.bytes().await,
                Err(error) => Err(error),
            };
            let bytes = bytes.map_err(|error| match error {
                object_store::Error::NotFound { .. } => ObjectError::Missing { digest },
                error => ObjectError::Unavailable(error),
            })?;
            if blake3::hash(&bytes) == digest {
                Ok(Vec::from(bytes))
            } else {
                Err(ObjectError::Damaged { digest })
            }
        };
        inner.get.observe(inner.limit(read), ObjectError::error_type).await
    }

    /// Checks that objects can be read, by reading one that is not there.
    pub async fn check(&self) -> Result<(), ObjectError> {
        match self.get(ObjectDigest::from_bytes([0; 32])).await {
            Ok(_) | Err(ObjectError::Missing { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Stores an object, also if it is there already: its time is then that of this call. Returns its name.
    pub async fn put(&self, bytes: &[u8]) -> Result<ObjectDigest, ObjectError> {
        let inner = &*self.inner;
        let digest = blake3::hash(bytes);
        let payload = Bytes::copy_from_slice(bytes);
        let write = async {
            let options = PutOptions { attributes: inner.attributes.clone(), ..PutOptions::default() };
            let written = inner.store.put_opts(&inner.key(&digest), payload.into(), options).await;
            written.map(|_| digest).map_err(ObjectError::Unavailable)
        };
        inner.put.observe(inner.limit(write), ObjectError::error_type).await
    }

    /// Deletes objects. Those that are not there are no error.
    pub async fn delete(&self, digests: &[ObjectDigest]) -> Result<(), ObjectError> {
        let inner = &*self.inner;
        let keys: Vec<_> = digests.iter().map(|digest| Ok(inner.key(digest))).collect();
        let delete = async {
            let mut deleted = inner.store.delete_stream(stream::iter(keys).boxed());
            while let Some(result) = deleted.next().await {
                match result {
                    Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => return Err(ObjectError::Unavailable(error)),
                }
            }
            Ok(())
        };
        inner.delete.observe(inner.limit(delete), ObjectError::error_type).await
    }

    /// Returns all objects, in no particular order. What has the name of no object is left out.
    #[must_use]
    pub fn list(&self) -> BoxStream<'static, Result<ListedObject, ObjectError>> {
        let listed = self.inner.store.list(Some(&self.inner.prefix)).map_err(ObjectError::Unavailable);
        listed.try_filter_map(|object| ready(Ok(listed_object(&object)))).boxed()
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("store", &self.inner.store).finish_non_exhaustive()
    }
}

impl Inner {
    fn key(&self, digest: &ObjectDigest) -> Path {
        let [folder, name] = path_of(digest);
        self.prefix.clone().join(folder).join(name)
    }

    /// Runs an operation within the limits.
    async fn limit<T>(&self, work: impl Future<Output = Result<T, ObjectError>>) -> Result<T, ObjectError> {
        let Ok(permit) = timeout(self.timeout / 10, self.permits.acquire()).await else {
            return Err(ObjectError::TimedOut);
        };
        let result = timeout(self.timeout, work).await.unwrap_or(Err(ObjectError::TimedOut));
        drop(permit);
        result
    }
}

/// A client of a bucket, whose builder type takes the other settings from its variables of the environment.
macro_rules! client {
    ($builder:ty, $key:path, $config:expr) => {{
        let config: &ObjectStoreConfig = $config;
        let request_timeout = format!("{}ms", config.request_timeout.as_millis());
        let client = <$builder>::from_env()
            .with_url(config.url.as_url().as_str())
            .with_config($key(ClientConfigKey::Timeout), &request_timeout)
            .with_config($key(ClientConfigKey::ConnectTimeout), &request_timeout)
            .with_retry(RetryConfig {
                backoff: BACKOFF,
                max_retries: MAX_RETRIES,
                retry_timeout: config.timeout,
            })
            .build()?;
        Arc::new(client)
    }};
}

fn bucket(config: &ObjectStoreConfig) -> Result<Arc<dyn ObjectStore>, object_store::Error> {
    // An error means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(match config.url.as_url().scheme() {
        "gs" => client!(GoogleCloudStorageBuilder, GoogleConfigKey::Client, config),
        "az" => client!(MicrosoftAzureBuilder, AzureConfigKey::Client, config),
        _ => client!(AmazonS3Builder, AmazonS3ConfigKey::Client, config),
    })
}

fn listed_object(object: &ObjectMeta) -> Option<ListedObject> {
    let digest = ObjectDigest::from_hex(object.location.filename()?).ok()?;
    Some(ListedObject { digest, bytes: object.size, modified_at: object.last_modified.into() })
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    fn folder() -> (tempfile::TempDir, Objects) {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file://{}", folder.path().display());
        let objects = Objects::open(&ObjectStoreConfig::new(url.parse().unwrap())).unwrap();
        (folder, objects)
    }

    #[tokio::test]
    async fn objects_have_the_name_of_their_content() {
        let (_folder, objects) = folder();
        let digest = objects.put(b"content").await.unwrap();
        assert_eq!(digest, blake3::hash(b"content"));
        assert_eq!(objects.put(b"content").await.unwrap(), digest);
        objects.check().await.unwrap();
        assert_eq!(objects.get(digest).await.unwrap(), b"content");
        let listed: Vec<_> = objects.list().try_collect().await.unwrap();
        assert_eq!(
            listed.iter().map(|object| (object.digest, object.bytes)).collect::<Vec<_>>(),
            [(digest, 7)]
        );
        for _ in 0..2 {
            objects.delete(&[digest]).await.unwrap();
            assert!(matches!(objects.get(digest).await, Err(ObjectError::Missing { .. })));
        }
    }

    #[tokio::test]
    async fn damaged_objects_are_not_returned() {
        let (folder, objects) = folder();
        let digest = objects.put(b"content").await.unwrap();
        let name = digest.to_hex();
        std::fs::write(folder.path().join(&name[..2]).join(name.as_str()), b"other").unwrap();
        assert!(matches!(objects.get(digest).await, Err(ObjectError::Damaged { .. })));
    }

    #[test]
    fn a_folder_must_exist() {
        let config = ObjectStoreConfig::new("file:///no/such/folder".parse().unwrap());
        let error = Objects::open(&config).unwrap_err();
        assert!(matches!(error, ObjectError::Invalid(_)));
        // Each cause once.
        assert!(error.source().is_none());
        let text = error.to_string();
        assert!(text.ends_with("/no/such/folder: No such file or directory (os error 2)"), "{text}");
        assert_eq!(text.matches("/no/such/folder").count(), 1, "{text}");
    }
}
