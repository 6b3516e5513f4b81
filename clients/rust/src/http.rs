//! Requests to an index, and their repetition.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT_ENCODING, ETAG, HeaderValue, IF_NONE_MATCH, LOCATION, USER_AGENT};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;

use crate::body::read_decoded;
use crate::retries::{Pause, REFUSALS, Retries};
use crate::{Cache, CachedResponse, Error, MemoryCache};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for the next bytes of a response: longer than the change feed waits.
const READ_TIMEOUT: Duration = Duration::from_secs(90);
const MAX_REDIRECTS: usize = 5;
/// The maximum number of charts in a batch lookup.
pub(crate) const MAX_CHARTS: usize = 1_000;

/// A chart index.
///
/// It repeats requests that were refused with 429, 502, 503 or 504, after the pause that `Retry-After` asks
/// for, or after one that doubles. Responses to `GET` are cached, and requested again with their `ETag`.
///
/// A clone is the same client: it has the same cache and the same connections.
#[derive(Debug, Clone)]
pub struct ChartIndex(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    client: Client,
    base: Url,
    user_agent: HeaderValue,
    retries: Retries,
    cache: Box<dyn Cache>,
    on_pause: Option<OnPause>,
    /// The number of charts in a batch lookup: fewer than the maximum on a slow link.
    pub(crate) batch: AtomicUsize,
}

struct OnPause(Box<dyn Fn(Pause) + Send + Sync>);

impl fmt::Debug for OnPause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnPause")
    }
}

/// Settings of a [`ChartIndex`]: see [`ChartIndex::builder`].
#[derive(Debug)]
pub struct Builder {
    base: String,
    user_agent: String,
    retries: Retries,
    cache: Box<dyn Cache>,
    on_pause: Option<OnPause>,
}

impl Builder {
    /// How often a refused request is repeated: 10 times by default.
    #[must_use]
    pub fn max_retries(mut self, max_retries: u32) -> Self {
        self.retries.max = max_retries;
        self
    }

    /// How long a request may wait in total until it is accepted: 10 minutes by default. It fails at once if
    /// the index asks for a longer pause.
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.retries.max_wait = max_wait;
        self
    }

    /// Repeats a request only if its refusal has `Retry-After`: for programs that repeat their work themselves.
    #[must_use]
    pub fn only_when_asked(mut self) -> Self {
        self.retries.only_when_asked = true;
        self
    }

    /// Where responses are cached: by default in a [`MemoryCache`].
    #[must_use]
    pub fn cache(mut self, cache: impl Cache + 'static) -> Self {
        self.cache = Box::new(cache);
        self
    }

    /// Called before each pause.
    #[must_use]
    pub fn on_pause(mut self, on_pause: impl Fn(Pause) + Send + Sync + 'static) -> Self {
        self.on_pause = Some(OnPause(Box::new(on_pause)));
        self
    }

    /// The index with these settings.
    ///
    /// # Errors
    /// The base address is no `http` or `https` URL, or has a query or a fragment; or the `User-Agent` is empty
    /// or has characters that no header may have.
    pub fn build(self) -> Result<ChartIndex, Error> {
        let base = parse_base(&self.base).map_err(Error::Base)?;
        let user_agent = HeaderValue::from_str(self.user_agent.trim()).map_err(|_| Error::UserAgent)?;
        if user_agent.is_empty() {
            return Err(Error::UserAgent);
        }
        // An error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // A redirected POST would become a GET.
        let client = Client::builder().redirect(Policy::none()).http1_only();
        let client = client.connect_timeout(CONNECT_TIMEOUT).read_timeout(READ_TIMEOUT).build()?;
        let Self { retries, cache, on_pause, .. } = self;
        let batch = AtomicUsize::new(MAX_CHARTS);
        Ok(ChartIndex(Arc::new(Inner { client, base, user_agent, retries, cache, on_pause, batch })))
    }
}

/// Parses the base address of an index, with or without a slash at its end.
///
/// # Errors
/// It is no `http` or `https` URL, or it has a user name, a password, a query or a fragment.
pub fn parse_base(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    if !is_http(&url) {
        return Err("it must begin with http:// or https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must have no user name and no password".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it must have no query and no fragment".to_owned());
    }
    Ok(url)
}

fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

impl ChartIndex {
    /// The index at a base address such as `https://charts.example`. The `User-Agent` has a way to reach you,
    /// so that the operator can ask before blocking: `my-client/1.0 (me@example.org)`.
    ///
    /// # Errors
    /// As those of [`Builder::build`].
    pub fn new(base: &str, user_agent: &str) -> Result<Self, Error> {
        Self::builder(base, user_agent).build()
    }

    /// The same with further settings.
    #[must_use]
    pub fn builder(base: &str, user_agent: &str) -> Builder {
        let retries = Retries { max: 10, max_wait: Duration::from_mins(10), only_when_asked: false };
        let cache = Box::new(MemoryCache::default());
        let (base, user_agent) = (base.to_owned(), user_agent.to_owned());
        Builder { base, user_agent, retries, cache, on_pause: None }
    }

    /// Its host, for messages.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.base.host_str().unwrap_or_default()
    }

    /// The address of a path such as `/api/changes`, which may have a query.
    #[must_use]
    pub fn url(&self, path: &str) -> Url {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let mut url = self.0.base.clone();
        url.set_query(query);
        url.set_path(&format!("{}{path}", self.0.base.path().trim_end_matches('/')));
        url
    }

    /// The JSON at a path, for endpoints that have no method of their own. `T` may be one of the
    /// [`types`](crate::types) or [`serde_json::Value`].
    ///
    /// # Errors
    /// As those of [`get_bytes`](Self::get_bytes), or the response is no such JSON.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let body = self.get_bytes(path).await?;
        Ok(serde_json::from_slice(&body)?)
    }

    /// The body at a path, from the cache if the index confirms that it is current. Follows redirects.
    ///
    /// # Errors
    /// The index is unreachable or refuses the request.
    pub async fn get_bytes(&self, path: &str) -> Result<Bytes, Error> {
        self.get_url(self.url(path)).await
    }

    /// The same for a URL of the index.
    pub(crate) async fn get_url(&self, mut url: Url) -> Result<Bytes, Error> {
        let mut redirects = 0;
        loop {
            let response = match self.get_conditionally(&url).await? {
                Ok(body) => return Ok(body),
                Err(response) => response,
            };
            match target(&url, &response) {
                Some(target) if redirects < MAX_REDIRECTS => url = target,
                _ => return Err(Error::from_response(response).await),
            }
            redirects += 1;
        }
    }

    /// The body of a URL, or another response.
    async fn get_conditionally(&self, url: &Url) -> Result<Result<Bytes, Response>, Error> {
        let cached = self.0.cache.get(url.as_str());
        let mut request = self.request_url(Method::GET, url.clone()).header(ACCEPT_ENCODING, "gzip");
        if let Some(CachedResponse { etag, .. }) = &cached {
            request = request.header(IF_NONE_MATCH, etag);
        }
        let response = self.send(request).await?;
        match (response.status(), cached) {
            (StatusCode::NOT_MODIFIED, Some(cached)) => Ok(Ok(cached.body)),
            (StatusCode::OK, _) => {
                let etag = response.headers().get(ETAG).and_then(|etag| etag.to_str().ok());
                let etag = etag.map(str::to_owned);
                let body = read_decoded(response).await?;
                if let Some(etag) = etag {
                    self.0.cache.set(url.as_str(), CachedResponse { etag, body: body.clone() });
                }
                Ok(Ok(body))
            }
            _ => Ok(Err(response)),
        }
    }

    /// A request for a path, for [`send`](Self::send).
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.request_url(method, self.url(path))
    }

    /// A request for a URL that the index redirects to.
    pub fn request_url(&self, method: Method, url: Url) -> RequestBuilder {
        self.0.client.request(method, url).header(USER_AGENT, &self.0.user_agent)
    }

    /// Sends a request, again and again while it is refused, and returns the response or the last refusal. No
    /// redirect is followed.
    ///
    /// # Errors
    /// The index is unreachable, or asks for a longer pause than the request may wait.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        self.send_while(request, REFUSALS).await
    }

    /// The same, for these statuses only.
    ///
    /// # Errors
    /// As those of [`send`](Self::send).
    pub async fn send_while(
        &self,
        request: RequestBuilder,
        refusals: &[StatusCode],
    ) -> Result<Response, Error> {
        let mut request = request.build()?;
        let (mut retries, mut waited) = (0, Duration::ZERO);
        loop {
            // A request with a stream cannot be repeated.
            let next = request.try_clone();
            let response = self.0.client.execute(request).await?;
            let status = response.status();
            let pause = self.0.retries.pause(response.headers(), retries, fastrand::f64());
            let (next, duration) = match (next, pause) {
                (Some(next), Some(duration)) if refusals.contains(&status) => (next, duration),
                _ => return Ok(response),
            };
            waited = duration.saturating_add(waited);
            if waited > self.0.retries.max_wait {
                return Err(Error::from_response(response).await);
            }
            if let Some(OnPause(on_pause)) = &self.0.on_pause {
                on_pause(Pause { status, duration });
            }
            tokio::time::sleep(duration).await;
            (request, retries) = (next, retries + 1);
        }
    }
}

/// Where a response redirects to, unless that is less secure.
fn target(url: &Url, response: &Response) -> Option<Url> {
    let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
    let target = url.join(location.to_str().ok()?).ok()?;
    (is_http(&target) && (url.scheme() == "http" || target.scheme() == "https")).then_some(target)
}
