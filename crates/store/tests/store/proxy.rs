//! A network between the store and PostgreSQL that can be cut.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

pub(crate) struct Proxy {
    /// The database, through the proxy.
    pub(crate) url: String,
    address: SocketAddr,
    target: String,
    silenced: watch::Sender<u32>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Proxy {
    pub(crate) async fn start(database_url: &str) -> Self {
        let (credentials, rest) = database_url.rsplit_once('@').unwrap();
        let (target, name) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("{credentials}@{address}/{name}");
        let mut proxy =
            Self { url, address, target: target.into(), silenced: watch::Sender::new(0), running: None };
        proxy.serve(listener);
        proxy
    }

    /// Breaks every connection and refuses new ones.
    pub(crate) async fn cut(&mut self) {
        let (stop, task) = self.running.take().unwrap();
        stop.send(()).unwrap();
        task.await.unwrap();
    }

    /// Accepts connections again.
    pub(crate) async fn listen(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.serve(listener);
    }

    /// Passes nothing on any more over the connections of now, without closing them.
    pub(crate) fn silence_open_connections(&self) {
        self.silenced.send_modify(|times| *times += 1);
    }

    fn serve(&mut self, listener: TcpListener) {
        let (stop, mut stopped) = oneshot::channel();
        let (target, silenced) = (self.target.clone(), self.silenced.clone());
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        let (client, _) = accepted.unwrap();
                        connections.spawn(pass(client, target.clone(), silenced.subscribe()));
                    }
                    _ = &mut stopped => break,
                }
            }
            connections.shutdown().await;
        });
        self.running = Some((stop, task));
    }
}

async fn pass(mut client: TcpStream, target: String, mut silenced: watch::Receiver<u32>) {
    let mut server = TcpStream::connect(target).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => (),
        _ = silenced.changed() => std::future::pending().await,
    }
}
