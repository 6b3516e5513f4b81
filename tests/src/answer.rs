//! A small HTTP client that shows answers as they are: no redirects followed, nothing decoded.

use std::net::SocketAddr;

use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};

/// Talks to one service.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as it came over the wire.
    pub body: Vec<u8>,
}

impl Client {
    /// A client of the service at that address.
    pub fn new(address: SocketAddr) -> Self {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .expect("an HTTP client");
        Self { http, base: format!("http://{address}") }
    }

    /// `GET path`, with its query string.
    pub async fn get(&self, path: &str) -> Answer {
        self.request(Method::GET, path, &[]).await
    }

    /// `GET path` with headers.
    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.request(Method::GET, path, headers).await
    }

    /// Any request without a body.
    pub async fn request(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.try_request(method, path, headers).await.expect("the service answers")
    }

    /// Any request without a body; the error when there was no answer.
    pub async fn try_request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Answer, reqwest::Error> {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await?;
        Ok(Answer {
            status: answer.status(),
            headers: answer.headers().clone(),
            body: answer.bytes().await?.to_vec(),
        })
    }
}

impl Answer {
    /// The value of a header, or an empty string.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a readable header"))
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }
}
