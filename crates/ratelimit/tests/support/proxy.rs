//! A proxy in front of a server, whose connections can go silent.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// Passes bytes on, until its connections are told to be silent: then they stay open, and nothing arrives.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    /// Connections that were accepted before so many others are silent.
    silent_below: Arc<AtomicU64>,
    accepted: Arc<AtomicU64>,
    _task: AbortOnDropHandle<()>,
}

impl Proxy {
    pub(crate) async fn to_port(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (silent_below, accepted) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let accepting = accept(listener, port, Arc::clone(&silent_below), Arc::clone(&accepted));
        Self { address, silent_below, accepted, _task: AbortOnDropHandle::new(tokio::spawn(accepting)) }
    }

    /// The connections that are open now are silent from now on.
    pub(crate) fn silence(&self) {
        self.silent_below.store(self.accepted.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

async fn accept(listener: TcpListener, port: u16, silent_below: Arc<AtomicU64>, accepted: Arc<AtomicU64>) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let number = accepted.fetch_add(1, Ordering::SeqCst);
        let (client, server) = (client.into_split(), server.into_split());
        for (mut from, mut to) in [(client.0, server.1), (server.0, client.1)] {
            let silent_below = Arc::clone(&silent_below);
            tokio::spawn(async move {
                let mut bytes = [0; 4096];
                while let Ok(read @ 1..) = from.read(&mut bytes).await {
                    if number < silent_below.load(Ordering::SeqCst) {
                        std::future::pending::<()>().await;
                    }
                    if to.write_all(&bytes[..read]).await.is_err() {
                        return;
                    }
                }
            });
        }
    }
}
