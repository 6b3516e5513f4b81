//! Caches of responses with their tags, for conditional requests.

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// A response that the index may confirm with 304 (Not Modified).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedResponse {
    /// Its `ETag`.
    pub etag: String,
    /// Its body.
    pub body: Bytes,
}

/// A cache of responses. Implement it to keep responses on disk, so that the next run of a program uses them.
pub trait Cache: Debug + Send + Sync {
    /// The cached response of a URL.
    fn get(&self, url: &str) -> Option<CachedResponse>;
    /// Caches a response, in the place of an earlier one.
    fn set(&self, url: &str, response: CachedResponse);
}

/// A cache in memory, the default. Drops the oldest responses when the bodies are too large in total.
#[derive(Debug)]
pub struct MemoryCache {
    max_bytes: usize,
    responses: Mutex<Responses>,
}

#[derive(Debug, Default)]
struct Responses {
    by_url: HashMap<String, CachedResponse>,
    /// The oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

impl MemoryCache {
    /// A cache of bodies with this many bytes in total.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, responses: Mutex::default() }
    }
}

/// 32 MiB: some ten thousand lookups.
impl Default for MemoryCache {
    fn default() -> Self {
        Self::new(32 * 1024 * 1024)
    }
}

impl Cache for MemoryCache {
    fn get(&self, url: &str) -> Option<CachedResponse> {
        let responses = self.responses.lock().unwrap_or_else(PoisonError::into_inner);
        responses.by_url.get(url).cloned()
    }

    fn set(&self, url: &str, response: CachedResponse) {
        if response.body.len() > self.max_bytes {
            return;
        }
        let mut responses = self.responses.lock().unwrap_or_else(PoisonError::into_inner);
        let responses = &mut *responses;
        responses.bytes += response.body.len();
        match responses.by_url.insert(url.to_owned(), response) {
            Some(replaced) => responses.bytes -= replaced.body.len(),
            None => responses.order.push_back(url.to_owned()),
        }
        while responses.bytes > self.max_bytes {
            let Some(oldest) = responses.order.pop_front() else { break };
            let dropped = responses.by_url.remove(&oldest);
            responses.bytes -= dropped.map_or(0, |response| response.body.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(etag: &str, bytes: usize) -> CachedResponse {
        CachedResponse { etag: etag.to_owned(), body: vec![0; bytes].into() }
    }

    #[test]
    fn oldest_responses_are_dropped() {
        let cache = MemoryCache::new(10);
        for (url, etag, bytes) in [("/a", "1", 4), ("/b", "2", 4), ("/a", "3", 5), ("/c", "4", 11)] {
            cache.set(url, response(etag, bytes));
        }
        let tags = || ["/a", "/b", "/c"].map(|url| cache.get(url).map(|response| response.etag));
        assert_eq!(tags(), [Some("3".into()), Some("2".into()), None]);
        cache.set("/c", response("5", 6));
        assert_eq!(tags(), [None, Some("2".into()), Some("5".into())]);
    }
}
