//! The server over real sockets.

use std::net::SocketAddr;
use std::num::NonZeroU32;

use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::*;
use crate::{LayerConfig, public};

const CONFIG: ServerConfig = ServerConfig {
    max_connections: NonZeroU32::new(16).unwrap(),
    header_read_timeout: Duration::from_secs(10),
    write_timeout: Duration::from_secs(10),
    shutdown_grace: Duration::from_secs(10),
};

/// A server with a route that answers at once, and one that waits to be let go.
struct Server {
    address: SocketAddr,
    entered: Arc<Notify>,
    release: Arc<Notify>,
    stop: oneshot::Sender<()>,
    stopped: JoinHandle<()>,
}

impl Server {
    async fn start(config: ServerConfig) -> Self {
        let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let wait = {
            let (entered, release) = (Arc::clone(&entered), Arc::clone(&release));
            async move || {
                entered.notify_one();
                release.notified().await;
                "released"
            }
        };
        let routes = Router::new().route("/", get(async || "answer")).route("/wait", get(wait));
        let routes = routes.route("/large", get(async || vec![0_u8; 64 << 20]));
        let layers = LayerConfig {
            request_deadline: Duration::from_hours(1),
            max_requests_in_flight: NonZeroU32::new(16).unwrap(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = oneshot::channel();
        let stopped = tokio::spawn(async move {
            let stopping = async { stopping.await.unwrap_or(()) };
            serve(listener, public(routes, &layers), &config, stopping).await;
        });
        Self { address, entered, release, stop, stopped }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

async fn send(stream: &mut TcpStream, request: &str) {
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// Reads until the answer ends with that text.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(end.as_bytes()) {
        let read = stream.read_buf(&mut answer).await.unwrap();
        assert!(read > 0, "closed after {:?}", String::from_utf8_lossy(&answer));
    }
    String::from_utf8(answer).unwrap()
}

/// Reads until the server closes. A reset closes as well.
async fn read_to_close(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    while stream.read_buf(&mut answer).await.unwrap_or(0) > 0 {}
    String::from_utf8(answer).unwrap()
}

/// `EMFILE`.
const TOO_MANY_OPEN_FILES: i32 = 24;

const GET: &str = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";
const WAIT: &str = "GET /wait HTTP/1.1\r\nHost: test\r\n\r\n";

#[tokio::test]
async fn a_connection_serves_one_request_after_another() {
    let server = Server::start(CONFIG).await;
    let mut stream = server.connect().await;
    for _ in 0..3 {
        send(&mut stream, GET).await;
        let answer = read_until(&mut stream, "answer").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn shutdown_finishes_what_is_in_flight_and_closes_idle_connections_at_once() {
    let server = Server::start(CONFIG).await;
    let (mut fresh, mut idle, mut busy) =
        (server.connect().await, server.connect().await, server.connect().await);
    send(&mut idle, GET).await;
    read_until(&mut idle, "answer").await;
    send(&mut busy, WAIT).await;
    server.entered.notified().await;

    server.stop.send(()).unwrap();
    assert_eq!(read_to_close(&mut idle).await, "");
    assert_eq!(read_to_close(&mut fresh).await, "");
    assert!(TcpStream::connect(server.address).await.is_err(), "nothing more is accepted");
    assert!(!server.stopped.is_finished());

    server.release.notify_one();
    let answer = read_to_close(&mut busy).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("released"), "{answer}");
    server.stopped.await.unwrap();
}

#[tokio::test]
async fn shutdown_does_not_wait_beyond_its_grace_period() {
    let shutdown_grace = Duration::from_millis(1);
    let server = Server::start(ServerConfig { shutdown_grace, ..CONFIG }).await;
    let mut busy = server.connect().await;
    send(&mut busy, WAIT).await;
    server.entered.notified().await;
    server.stop.send(()).unwrap();
    server.stopped.await.unwrap();
    assert_eq!(read_to_close(&mut busy).await, "");
}

#[tokio::test]
async fn a_client_that_is_slow_with_its_headers_is_cut() {
    let header_read_timeout = Duration::from_millis(50);
    let server = Server::start(ServerConfig { header_read_timeout, ..CONFIG }).await;
    for head in ["", "GET / HTTP/1.1\r\nHost: te"] {
        let mut slow = server.connect().await;
        send(&mut slow, head).await;
        assert_eq!(read_to_close(&mut slow).await, "", "{head:?}");
    }
    let mut next = server.connect().await;
    send(&mut next, GET).await;
    read_until(&mut next, "answer").await;
}

#[tokio::test]
async fn connections_above_the_bound_wait_for_a_place() {
    let max_connections = NonZeroU32::new(1).unwrap();
    let server = Server::start(ServerConfig { max_connections, ..CONFIG }).await;
    let mut first = server.connect().await;
    send(&mut first, WAIT).await;
    server.entered.notified().await;
    let mut second = server.connect().await;
    send(&mut second, WAIT).await;
    let entered_meanwhile = timeout(Duration::from_millis(50), server.entered.notified()).await;
    assert!(entered_meanwhile.is_err(), "the second connection is not served yet");

    server.release.notify_one();
    read_until(&mut first, "released").await;
    drop(first);
    server.entered.notified().await;
    server.release.notify_one();
    read_until(&mut second, "released").await;
}

#[tokio::test]
async fn overlong_heads_are_answered_with_an_error() {
    let server = Server::start(CONFIG).await;
    for (length, status) in [(7_000, "200"), (10_000, "414"), (40_000, "431"), (70_000, "431")] {
        let mut stream = server.connect().await;
        let request =
            format!("GET /?{} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", "q".repeat(length));
        // The server may close before it has read everything.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(str::from_utf8(&answer).unwrap(), format!("HTTP/1.1 {status}"), "{length}");
    }
}

#[test]
fn only_errors_of_one_connection_are_passed_over_without_a_pause() {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, OutOfMemory, PermissionDenied};
    for (kind, expected) in
        [(ConnectionAborted, true), (ConnectionReset, true), (OutOfMemory, false), (PermissionDenied, false)]
    {
        assert_eq!(is_of_the_connection(&kind.into()), expected, "{kind}");
    }
    assert!(!is_of_the_connection(&io::Error::from_raw_os_error(TOO_MANY_OPEN_FILES)));
}

#[tokio::test]
async fn a_client_that_never_reads_its_answer_is_cut() {
    let max_connections = NonZeroU32::new(1).unwrap();
    let write_timeout = Duration::from_millis(200);
    let server = Server::start(ServerConfig { max_connections, write_timeout, ..CONFIG }).await;
    let mut deaf = server.connect().await;
    send(&mut deaf, "GET /large HTTP/1.1\r\nHost: test\r\n\r\n").await;
    // There is one place, so this is answered only when the other client has lost it.
    let mut next = server.connect().await;
    send(&mut next, GET).await;
    read_until(&mut next, "answer").await;
    drop(deaf);
}
