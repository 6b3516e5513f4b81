//! A proxy between a service and Meilisearch that records the searches.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use chart_index_tests::Service;
use reqwest::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Where the service sends searches.
pub(super) const SEARCH_PATH: &str = "/multi-search";

/// The bodies of recorded searches.
type Recorded = Arc<Mutex<Vec<String>>>;

/// A proxy between a service and Meilisearch that records the searches.
#[derive(Debug)]
pub(super) struct RecordingProxy {
    url: String,
    recorded: Recorded,
}

impl RecordingProxy {
    /// Starts the proxy in its own thread, as starting a service blocks this one.
    pub(super) fn start(node: &str) -> Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let recorded = Recorded::default();
        let serving = accept_all(
            listener,
            node.trim_start_matches("http://").trim_end_matches('/').to_owned(),
            Arc::clone(&recorded),
        );
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        std::thread::spawn(move || runtime.block_on(serving));
        Ok(Self { url, recorded })
    }

    /// The URL, for `MEILISEARCH_URL`.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The searches that a service behind this proxy sends to Meilisearch for these queries, one for each, in
    /// order.
    pub(super) async fn searches_of(
        &self,
        service: &Service,
        http: &Client,
        paths: &[String],
    ) -> Result<Vec<String>> {
        let mut searches = Vec::new();
        // The service has cached the response if an earlier path is the same query in other words.
        let mut by_tag = HashMap::new();
        for path in paths {
            let response = http.get(format!("http://{}{path}", service.address())).send().await?;
            let engine = response.headers().get("x-search-engine").and_then(|engine| engine.to_str().ok());
            ensure!(engine == Some("meilisearch"), "{path}: {} by {engine:?}", response.status());
            let tag = response.headers().get("etag").cloned().with_context(|| format!("{path}: no tag"))?;
            response.bytes().await?;
            let recorded = std::mem::take(&mut *self.recorded.lock().unwrap_or_else(PoisonError::into_inner));
            let search = recorded.into_iter().last().or_else(|| by_tag.get(&tag).cloned());
            let search = search.with_context(|| format!("{path}: neither searched nor cached"))?;
            by_tag.insert(tag, search.clone());
            searches.push(search);
        }
        Ok(searches)
    }
}

async fn accept_all(listener: std::net::TcpListener, target: String, recorded: Recorded) -> Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (client, _) = listener.accept().await?;
        let (target, recorded) = (target.clone(), Arc::clone(&recorded));
        tokio::spawn(async move { forward(client, &target, &recorded).await });
    }
}

/// Forwards a connection and records the bodies of searches.
async fn forward(client: TcpStream, target: &str, recorded: &Recorded) -> Result<()> {
    let server = TcpStream::connect(target).await?;
    server.set_nodelay(true)?;
    client.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
    let mut buffer = Vec::new();
    loop {
        let read = from_client.read_buf(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        to_server.write_all(&buffer[buffer.len() - read..]).await?;
        while let Some((head, body)) = first_request(&buffer) {
            buffer.drain(..head.len() + 4 + body.len());
            if head.starts_with(&format!("POST {SEARCH_PATH} ")) {
                recorded.lock().unwrap_or_else(PoisonError::into_inner).push(body);
            }
        }
    }
}

/// The head and the body of the first request, if it is complete.
fn first_request(bytes: &[u8]) -> Option<(String, String)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let body = bytes.get(end + 4..end + 4 + length.unwrap_or(0))?;
    Some((head, String::from_utf8_lossy(body).into_owned()))
}
