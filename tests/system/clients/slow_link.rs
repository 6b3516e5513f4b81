//! A link with the bandwidth of a bad one, between a client and a service.

use std::net::SocketAddr;
use std::time::Duration;

use chart_index_tests::Service;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// What is sent at once.
const PART_BYTES: usize = 256;
const PART_BITS: u32 = 8 * 256;

/// A relay in front of a service. Dropping the value stops it.
#[derive(Debug)]
pub(crate) struct SlowLink {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl SlowLink {
    /// A link on which each connection has so many kbit/s in each direction.
    pub(crate) async fn start(service: &Service, kbit_per_s: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (address, target) = (listener.local_addr().expect("an address"), service.address());
        let part = Duration::from_secs(1) * PART_BITS / (1_000 * kbit_per_s);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(target).await.expect("the service listens");
                let [(from_client, to_client), (from_server, to_server)] =
                    [client, server].map(TcpStream::into_split);
                tokio::spawn(relay(from_client, to_server, part));
                tokio::spawn(relay(from_server, to_client, part));
            }
        });
        Self { address, task }
    }

    /// The base address of the service, over the link.
    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for SlowLink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Passes on what one side sends, each part in its time, until it or the other side closes the connection.
async fn relay(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, part: Duration) {
    let mut bytes = [0; PART_BYTES];
    let mut next = Instant::now();
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        next = next.max(Instant::now()) + part;
        sleep_until(next).await;
        if to.write_all(bytes.get(..length).expect("what was read")).await.is_err() {
            break;
        }
    }
}
