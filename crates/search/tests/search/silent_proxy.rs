//! A proxy between an engine and a node that can go silent: connections stay open but transfer nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// The proxy and its connections end when the value is dropped.
pub(crate) struct Proxy {
    /// The URL of the node through the proxy.
    pub(crate) url: String,
    silenced: watch::Sender<Silenced>,
    accepted: Arc<AtomicUsize>,
    _task: AbortOnDropHandle<()>,
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
    pub(crate) async fn start(upstream: &str) -> Self {
        let upstream: SocketAddr = upstream.strip_prefix("http://").unwrap().parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (silenced, accepted) = (watch::Sender::new(Silenced::default()), Arc::new(AtomicUsize::new(0)));
        let task = tokio::spawn(serve(listener, upstream, silenced.clone(), Arc::clone(&accepted)));
        Self { url, silenced, accepted, _task: AbortOnDropHandle::new(task) }
    }

    /// The number of connections that were opened.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Silences all open connections. New ones work.
    pub(crate) fn silence_open_connections(&self) {
        self.silenced.send_modify(|silenced| silenced.below = self.accepted());
    }

    /// Silences all connections, also new ones.
    pub(crate) fn silence_all(&self) {
        self.silenced.send_modify(|silenced| silenced.new = true);
    }

    /// Lets new connections work again. Silenced ones stay silent.
    pub(crate) fn accept_new_connections(&self) {
        self.silenced.send_modify(|silenced| *silenced = Silenced { below: self.accepted(), new: false });
    }
}

async fn serve(
    listener: TcpListener,
    upstream: SocketAddr,
    silenced: watch::Sender<Silenced>,
    accepted: Arc<AtomicUsize>,
) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let number = accepted.fetch_add(1, Ordering::SeqCst);
        connections.spawn(pass(client, upstream, number, silenced.subscribe()));
    }
}

async fn pass(
    mut client: TcpStream,
    upstream: SocketAddr,
    number: usize,
    mut silenced: watch::Receiver<Silenced>,
) {
    let is_silent = |silenced: &Silenced| silenced.new || number < silenced.below;
    let mut node = TcpStream::connect(upstream).await.unwrap();
    tokio::select! {
        biased;
        () = async { drop(silenced.wait_for(is_silent).await) } => std::future::pending().await,
        _ = copy_bidirectional(&mut client, &mut node) => (),
    }
}
