//! A TCP proxy in front of a server that can refuse connections, drop traffic and delay it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::io::InspectReader;

use crate::programs::{close_listener, fixed_address};

/// A TCP proxy on the loopback address. Dropping the value stops it.
#[derive(Debug)]
pub struct Proxy {
    url: String,
    address: SocketAddr,
    /// Connections reach them in turn.
    targets: Arc<[String]>,
    connections: Arc<AtomicUsize>,
    delay: Duration,
    silenced: watch::Sender<Silenced>,
    messages: Arc<AtomicU64>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// The connections that transfer nothing.
#[derive(Debug, Clone, Copy, Default)]
struct Silenced {
    /// All connections with a lower number.
    below: usize,
    /// All connections that are opened from now on.
    new: bool,
}

impl Proxy {
    /// Starts a proxy in front of the server of this URL, which has a port.
    pub async fn start(url: &str) -> Self {
        Self::start_with(&[url], Duration::ZERO).await
    }

    /// Starts a proxy whose connections reach the servers of these URLs in turn.
    pub async fn start_alternating(urls: &[&str]) -> Self {
        Self::start_with(urls, Duration::ZERO).await
    }

    /// Starts a proxy that passes on what a client sends after this time only.
    pub async fn start_with_delay(url: &str, delay: Duration) -> Self {
        Self::start_with(&[url], delay).await
    }

    async fn start_with(urls: &[&str], delay: Duration) -> Self {
        let address = fixed_address();
        let listener = TcpListener::bind(address).await.expect("a free port");
        let [before, _, after] = split_at_server(urls[0]);
        let url = format!("{before}{address}{after}");
        let targets = urls.iter().map(|url| split_at_server(url)[1].to_owned()).collect();
        let silenced = watch::Sender::new(Silenced::default());
        let mut proxy = Self {
            url,
            address,
            targets,
            connections: Arc::default(),
            delay,
            silenced,
            messages: Arc::default(),
            running: None,
        };
        proxy.serve(listener);
        proxy
    }

    /// The URL of the server, or of the first one, through the proxy.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How often data arrived from clients. A client that waits for each response sends one message per
    /// request.
    pub fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    /// The number of connections that were opened.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Closes every connection and refuses new ones.
    pub async fn cut(&mut self) {
        let (stop, task) = self.running.take().expect("a proxy that listens");
        stop.send(()).expect("a running proxy");
        task.await.expect("a proxy that did not panic");
    }

    /// Accepts connections again after [`cut`](Self::cut).
    pub async fn listen(&mut self) {
        let listener = TcpListener::bind(self.address).await.expect("the same port");
        self.serve(listener);
    }

    /// Drops all further traffic of the open connections without closing them, like a firewall that lost its
    /// state. New connections work.
    pub fn silence_open_connections(&self) {
        self.silenced.send_modify(|silenced| silenced.below = self.connections());
    }

    /// Silences all connections, also new ones.
    pub fn silence_all(&self) {
        self.silenced.send_modify(|silenced| silenced.new = true);
    }

    /// Lets new connections work again. Silenced ones stay silent.
    pub fn accept_new_connections(&self) {
        self.silenced.send_modify(|silenced| *silenced = Silenced { below: self.connections(), new: false });
    }

    fn serve(&mut self, listener: TcpListener) {
        let (stop, mut stopped) = oneshot::channel();
        let (targets, delay) = (Arc::clone(&self.targets), self.delay);
        let accepted_before = Arc::clone(&self.connections);
        let (silenced, messages) = (self.silenced.clone(), Arc::clone(&self.messages));
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        let (client, _) = accepted.expect("a connection");
                        let messages = Arc::clone(&messages);
                        let client = InspectReader::new(client, move |bytes: &[u8]| {
                            messages.fetch_add(u64::from(!bytes.is_empty()), Ordering::Relaxed);
                        });
                        let number = accepted_before.fetch_add(1, Ordering::Relaxed);
                        let target = targets[number % targets.len()].clone();
                        let mut silenced = silenced.subscribe();
                        connections.spawn(async move {
                            let is_silent = |silenced: &Silenced| silenced.new || number < silenced.below;
                            let silence = async { drop(silenced.wait_for(is_silent).await) };
                            forward(client, target, delay, silence).await;
                        });
                    }
                    _ = &mut stopped => break,
                }
            }
            close_listener(listener);
            connections.shutdown().await;
        });
        self.running = Some((stop, task));
    }
}

/// The parts of a URL before, of and after its host and port.
fn split_at_server(url: &str) -> [&str; 3] {
    let start = url.rfind('@').map(|at| at + 1).or(url.find("://").map(|at| at + 3)).expect("a URL");
    let end = url[start..].find('/').map_or(url.len(), |length| start + length);
    [&url[..start], &url[start..end], &url[end..]]
}

async fn forward(
    client: impl AsyncRead + AsyncWrite + Unpin,
    target: String,
    delay: Duration,
    silence: impl Future<Output = ()>,
) {
    // If the server refuses the connection, the client's is closed.
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    let (mut from_client, mut to_client) = split(client);
    let (mut from_server, mut to_server) = server.split();
    tokio::select! {
        biased;
        () = silence => std::future::pending().await,
        _ = copy_delayed(&mut from_client, &mut to_server, delay) => (),
        _ = copy(&mut from_server, &mut to_client) => (),
    }
}

/// Copies what is read, each time after the delay.
async fn copy_delayed(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    delay: Duration,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        to.write_all(&buffer[..length]).await?;
    }
}
