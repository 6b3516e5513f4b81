//! Configuration: the address of the store, and its limits.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use url::Url;

use crate::ObjectDigest;

/// The address of an object store: `file:///path`, or a bucket with an optional prefix, `s3://bucket`,
/// `gs://bucket` or `az://container`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectStoreUrl(Url);

/// The value is not the address of an object store.
#[derive(Debug, thiserror::Error)]
#[error("not s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///path")]
pub struct InvalidObjectStoreUrl;

impl ObjectStoreUrl {
    pub(crate) const fn as_url(&self) -> &Url {
        &self.0
    }

    /// The folder; `None` for a bucket.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        (self.0.scheme() == "file").then(|| self.0.to_file_path().unwrap_or_default())
    }
}

impl FromStr for ObjectStoreUrl {
    type Err = InvalidObjectStoreUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text).map_err(|_| InvalidObjectStoreUrl)?;
        let has_host = url.host_str().is_some_and(|host| !host.is_empty());
        let is_bucket = matches!(url.scheme(), "s3" | "gs" | "az") && has_host && url.username().is_empty();
        let is_folder = url.scheme() == "file" && !has_host;
        if (is_bucket || is_folder) && url.query().is_none() && url.fragment().is_none() {
            Ok(Self(url))
        } else {
            Err(InvalidObjectStoreUrl)
        }
    }
}

/// The address below which the objects are public: `http` or `https`, without query and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicObjectsUrl(Url);

/// The value is not an address below which objects are public.
#[derive(Debug, thiserror::Error)]
#[error("not an http or https URL without query and fragment")]
pub struct InvalidPublicObjectsUrl;

impl PublicObjectsUrl {
    /// The address of an object.
    #[must_use]
    pub fn address_of(&self, digest: &ObjectDigest) -> String {
        let [folder, name] = path_of(digest);
        format!("{}/{folder}/{name}", self.0.as_str().trim_end_matches('/'))
    }
}

impl FromStr for PublicObjectsUrl {
    type Err = InvalidPublicObjectsUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text).map_err(|_| InvalidPublicObjectsUrl)?;
        let is_base =
            matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none();
        if is_base { Ok(Self(url)) } else { Err(InvalidPublicObjectsUrl) }
    }
}

/// The folder and the name of an object. The folder is the first two digits of the name, so that none has
/// millions of files.
pub(crate) fn path_of(digest: &ObjectDigest) -> [String; 2] {
    let name = digest.to_hex();
    [name[..2].to_owned(), name.to_string()]
}

/// The configuration of [`Objects`](crate::Objects).
#[derive(Debug, Clone)]
pub struct ObjectStoreConfig {
    /// The address of the store. Access to a bucket is configured by the variables `AWS_…`, `GOOGLE_…` or
    /// `AZURE_…`.
    pub url: ObjectStoreUrl,
    /// Timeout of a request to a bucket. It is repeated within `timeout`.
    pub request_timeout: Duration,
    /// Timeout of a read or a write of an object, with its retries.
    pub timeout: Duration,
    /// Maximum concurrent reads and writes. Further ones wait for up to a tenth of `timeout`: where the store
    /// hangs, they fail while the others wait for it.
    pub max_in_flight: usize,
}

impl ObjectStoreConfig {
    /// The defaults for a server: a second for a request, three for a read, 32 at a time.
    #[must_use]
    pub const fn new(url: ObjectStoreUrl) -> Self {
        Self {
            url,
            request_timeout: Duration::from_secs(1),
            timeout: Duration::from_secs(3),
            max_in_flight: 32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_objects_have_addresses() {
        let digest = ObjectDigest::from_bytes([0xab; 32]);
        let expected = format!("https://files.example/objects/ab/{}", "ab".repeat(32));
        for text in ["https://files.example/objects", "https://files.example/objects/"] {
            assert_eq!(text.parse::<PublicObjectsUrl>().unwrap().address_of(&digest), expected);
        }
        assert!("s3://bucket".parse::<PublicObjectsUrl>().is_err());
    }

    #[test]
    fn only_buckets_and_folders_are_addresses() {
        for text in
            ["s3://bucket", "s3://bucket/some/prefix", "gs://bucket", "az://name/p", "file:///srv/objects"]
        {
            assert!(text.parse::<ObjectStoreUrl>().is_ok(), "{text}");
        }
        let invalid = [
            "",
            "/srv/objects",
            "s3:///prefix",
            "s3://key@bucket",
            "https://bucket",
            "file://host/path",
            "s3://b?a=b",
        ];
        for text in invalid {
            assert!(text.parse::<ObjectStoreUrl>().is_err(), "{text}");
        }
    }
}
