//! A fixed number of requests.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;

const CONNECTIONS: usize = 16;

/// Sends each request once, a path and the client that it comes from. An error if a response is one.
pub(crate) async fn send_each<C: Display + Send + 'static>(
    address: SocketAddr,
    requests: impl Iterator<Item = (String, C)> + Send + 'static,
) -> Result<()> {
    let http = chart_index_tests::http_client_builder().build()?;
    let requests = Arc::new(Mutex::new(requests));
    let connections: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (http, requests) = (http.clone(), Arc::clone(&requests));
            tokio::spawn(async move {
                loop {
                    let next = requests.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((path, client)) = next else { return Ok::<_, reqwest::Error>(()) };
                    let request = http.get(format!("http://{address}{path}"));
                    let request = request.header("x-forwarded-for", client.to_string());
                    request.send().await?.error_for_status()?.bytes().await?;
                }
            })
        })
        .collect();
    for connection in connections {
        connection.await??;
    }
    Ok(())
}
