//! The server, over real sockets.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll};

use axum::response::Response;
use axum::routing::get;
use chart_index_instrumentation::{Sampler, metrics};
use chart_index_ratelimit::{Group, Limiter, LimiterConfig};
use chart_index_redis::RedisConnection;
use chart_index_tests::series;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::*;
use crate::{HttpRateLimiter, PublicApi, RequestLimitConfig, Routes};

const CONFIG: ServerConfig = ServerConfig {
    max_connections: NonZeroU32::new(16).unwrap(),
    max_connections_per_peer: NonZeroU32::new(16).unwrap(),
    header_read_timeout: Duration::from_secs(10),
    write_timeout: Duration::from_secs(10),
    drain_delay: Duration::ZERO,
    shutdown_grace: Duration::from_secs(10),
};

const LAYERS: RequestLimitConfig = RequestLimitConfig {
    request_deadline: Duration::from_hours(1),
    max_requests_in_flight: NonZeroU32::new(16).unwrap(),
};

/// A server with a route that responds at once, and one that waits to be released.
struct TestServer {
    address: SocketAddr,
    entered: Arc<Notify>,
    release: Arc<Notify>,
    stop: oneshot::Sender<()>,
    stopped: JoinHandle<()>,
}

impl TestServer {
    async fn start(config: ServerConfig) -> Self {
        Self::start_metered("", config, metrics()).await
    }

    async fn start_metered(trusted_proxies: &str, config: ServerConfig, metrics: &'static Metrics) -> Self {
        let trusted_proxies: TrustedProxies = trusted_proxies.parse().unwrap();
        let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let wait = {
            let (entered, release) = (Arc::clone(&entered), Arc::clone(&release));
            async move || {
                entered.notify_one();
                release.notified().await;
                "released"
            }
        };
        let limiter = Limiter::new(LimiterConfig::default(), RedisConnection::disabled());
        let limiter = HttpRateLimiter::new(limiter, trusted_proxies.clone());
        let routes = Routes::new()
            .route(Group::Lookup, "/", get(async || "response"))
            .route(Group::Lookup, "/wait", get(wait))
            .route(Group::Lookup, "/large", get(async || vec![0_u8; 64 << 20]));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = oneshot::channel();
        let stopped = tokio::spawn(async move {
            let stopping = async { stopping.await.unwrap_or(()) };
            let service = PublicApi::new(routes, limiter, &LAYERS, Sampler::OFF).into_router();
            let workers = vec![Worker::on_current_runtime(service)];
            Server { listener, workers, config, trusted_proxies, metrics }.serve(stopping).await;
        });
        Self { address, entered, release, stop, stopped }
    }

    async fn connect(&self) -> TcpStream {
        connect(self.address).await
    }

    /// A connection with a request in flight, which waits to be released.
    async fn busy(&self) -> TcpStream {
        let mut stream = self.connect().await;
        send(&mut stream, WAIT).await;
        self.entered.notified().await;
        stream
    }

    /// Connects from this address of the loopback network.
    async fn connect_from(&self, source: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(source.parse().unwrap(), 0)).unwrap();
        socket.connect(self.address).await.unwrap()
    }
}

async fn send(stream: &mut TcpStream, request: &str) {
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// Reads until the response ends with this text.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut response = Vec::new();
    while !response.ends_with(end.as_bytes()) {
        let read = stream.read_buf(&mut response).await.unwrap();
        assert!(read > 0, "closed after {:?}", String::from_utf8_lossy(&response));
    }
    String::from_utf8(response).unwrap()
}

/// Reads until the server closes or resets the connection.
async fn read_to_close(stream: &mut TcpStream) -> String {
    let mut response = Vec::new();
    while stream.read_buf(&mut response).await.unwrap_or(0) > 0 {}
    String::from_utf8(response).unwrap()
}

const GET: &str = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";
const WAIT: &str = "GET /wait HTTP/1.1\r\nHost: test\r\n\r\n";

#[tokio::test]
async fn worker_with_the_fewest_connections_gets_the_next_one() {
    let limiter = Limiter::new(LimiterConfig::default(), RedisConnection::disabled());
    let limiter = HttpRateLimiter::new(limiter, "".parse().unwrap());
    let service = PublicApi::new(Routes::new(), limiter, &LAYERS, Sampler::OFF).into_router();
    let workers = [(); 2].map(|()| (Worker::on_current_runtime(service.clone()), Arc::new(())));
    let of_first = |open: &Arc<()>| Arc::ptr_eq(open, &workers[0].1);
    let connect = || Arc::clone(&with_fewest_connections(&workers).unwrap().1);
    let mut open: Vec<_> = (0..6).map(|_| connect()).collect();
    assert_eq!(open.iter().filter(|open| of_first(open)).count(), 3);
    open.retain(of_first);
    let next: Vec<_> = (0..3).map(|_| connect()).collect();
    assert!(!next.iter().any(of_first));
}

#[tokio::test]
async fn shutdown_finishes_requests_and_closes_idle_connections() {
    let server = TestServer::start(CONFIG).await;
    let (mut fresh, mut idle) = (server.connect().await, server.connect().await);
    first_response(&mut idle).await;
    let mut busy = server.busy().await;

    server.stop.send(()).unwrap();
    assert_eq!(read_to_close(&mut idle).await, "");
    assert_eq!(read_to_close(&mut fresh).await, "");
    assert!(TcpStream::connect(server.address).await.is_err(), "no more connections are accepted");
    assert!(!server.stopped.is_finished());

    server.release.notify_one();
    let response = read_to_close(&mut busy).await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("released"), "{response}");
    server.stopped.await.unwrap();
}

/// RFC 9112, section 9.6.
#[tokio::test]
async fn draining_server_serves_and_closes_after_each_response() {
    let server = TestServer::start(ServerConfig { drain_delay: Duration::from_hours(1), ..CONFIG }).await;
    let (mut fresh, mut idle) = (server.connect().await, server.connect().await);
    assert!(!first_response(&mut idle).await.contains("connection:"));
    let mut busy = server.busy().await;

    server.stop.send(()).unwrap();
    // The first response with the header shows that the server drains.
    while !first_response(&mut connect(server.address).await).await.contains("connection: close") {}
    for stream in [&mut fresh, &mut idle, &mut connect(server.address).await] {
        let response = first_response(stream).await;
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
        assert_eq!(read_to_close(stream).await, "");
    }
    server.release.notify_one();
    let response = read_to_close(&mut busy).await;
    assert!(response.contains("\r\nconnection: close\r\n") && response.ends_with("released"), "{response}");
    assert!(!server.stopped.is_finished());
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

async fn first_response(stream: &mut TcpStream) -> String {
    send(stream, GET).await;
    read_until(stream, "response").await
}

#[tokio::test]
async fn idle_connections_are_closed_after_the_drain_delay() {
    let drain_delay = Duration::from_secs(1);
    let server = TestServer::start(ServerConfig { drain_delay, ..CONFIG }).await;
    let mut idle = server.connect().await;
    first_response(&mut idle).await;
    let stopped_at = Instant::now();
    server.stop.send(()).unwrap();
    assert_eq!(read_to_close(&mut idle).await, "");
    assert!(stopped_at.elapsed() >= drain_delay);
    server.stopped.await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn connections_in_the_backlog_are_served_before_the_close() {
    let max_connections = NonZeroU32::new(1).unwrap();
    let server = TestServer::start(ServerConfig { max_connections, ..CONFIG }).await;
    let mut busy = server.busy().await;
    let mut waiting = [server.connect().await, server.connect().await];
    for stream in &mut waiting {
        send(stream, GET).await;
    }
    server.stop.send(()).unwrap();
    server.release.notify_one();
    read_to_close(&mut busy).await;
    for stream in &mut waiting {
        let response = read_to_close(stream).await;
        assert!(response.contains("connection: close") && response.ends_with("response"), "{response}");
    }
    server.stopped.await.unwrap();
}

#[tokio::test]
async fn shutdown_ends_after_its_grace_period() {
    let shutdown_grace = Duration::from_millis(1);
    let server = TestServer::start(ServerConfig { shutdown_grace, ..CONFIG }).await;
    let mut busy = server.busy().await;
    server.stop.send(()).unwrap();
    server.stopped.await.unwrap();
    assert_eq!(read_to_close(&mut busy).await, "");
}

#[tokio::test]
async fn client_that_sends_headers_slowly_is_disconnected() {
    let header_read_timeout = Duration::from_millis(50);
    let server = TestServer::start(ServerConfig { header_read_timeout, ..CONFIG }).await;
    for head in ["", "GET / HTTP/1.1\r\nHost: te"] {
        let mut slow = server.connect().await;
        send(&mut slow, head).await;
        assert_eq!(read_to_close(&mut slow).await, "", "{head:?}");
    }
    first_response(&mut server.connect().await).await;
}

#[tokio::test]
async fn connections_above_the_limit_wait_for_a_permit() {
    let max_connections = NonZeroU32::new(1).unwrap();
    let server = TestServer::start(ServerConfig { max_connections, ..CONFIG }).await;
    let mut first = server.busy().await;
    let mut second = server.connect().await;
    send(&mut second, WAIT).await;
    let second_entered = timeout(Duration::from_millis(50), server.entered.notified()).await;
    assert!(second_entered.is_err(), "the second connection is not served yet");

    server.release.notify_one();
    read_until(&mut first, "released").await;
    drop(first);
    server.entered.notified().await;
    server.release.notify_one();
    read_until(&mut second, "released").await;
}

#[tokio::test]
async fn overlong_heads_get_an_error_response() {
    let server = TestServer::start(CONFIG).await;
    for (length, status) in [(8_000, "200"), (8_200, "414"), (40_000, "431"), (70_000, "431")] {
        let mut stream = server.connect().await;
        let request =
            format!("GET /?{} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", "q".repeat(length));
        // The server may close before it has read everything.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut response = [0; 12];
        stream.read_exact(&mut response).await.unwrap();
        assert_eq!(str::from_utf8(&response).unwrap(), format!("HTTP/1.1 {status}"), "{length}");
    }
}

/// A half-closed connection looks like one whose client is gone, so the write timeout has to end it.
#[tokio::test]
async fn client_that_never_reads_is_disconnected() {
    let max_connections = NonZeroU32::new(1).unwrap();
    let write_timeout = Duration::from_millis(200);
    let server = TestServer::start(ServerConfig { max_connections, write_timeout, ..CONFIG }).await;
    for half_closed in [false, true] {
        let mut stalled = server.connect().await;
        send(&mut stalled, "GET /large HTTP/1.1\r\nHost: test\r\n\r\n").await;
        if half_closed {
            stalled.shutdown().await.unwrap();
        }
        // There is one permit, so the server responds once it has disconnected the other client.
        first_response(&mut server.connect().await).await;
        drop(stalled);
    }
}

/// Whether the server responds on this connection.
async fn is_served(stream: &mut TcpStream) -> bool {
    let _ = stream.write_all(GET.as_bytes()).await;
    let mut response = [0; 15];
    stream.read_exact(&mut response).await.is_ok_and(|_| &response == b"HTTP/1.1 200 OK")
}

#[tokio::test]
async fn one_peer_cannot_take_all_connections() {
    let max_connections_per_peer = NonZeroU32::new(3).unwrap();
    let config = ServerConfig { max_connections_per_peer, ..CONFIG };
    let server = TestServer::start_metered("127.0.0.3/32", config, metrics()).await;
    let hold = async |connections: usize, source: &str| {
        let mut streams = Vec::new();
        for _ in 0..connections {
            let mut stream = server.connect_from(source).await;
            assert!(is_served(&mut stream).await, "{source}");
            streams.push(stream);
        }
        streams
    };
    let mut first = hold(3, "127.0.0.1").await;
    let _held_by_the_trusted_proxy = hold(5, "127.0.0.3").await;
    assert!(!is_served(&mut server.connect_from("127.0.0.1").await).await, "one more is closed");
    assert!(is_served(&mut server.connect_from("127.0.0.2").await).await, "another peer is served");
    drop(first.pop());
    // The server notices the end of a connection later.
    let again = async { while !is_served(&mut server.connect_from("127.0.0.1").await).await {} };
    timeout(Duration::from_secs(10), again).await.expect("the permit is released");
}

#[tokio::test]
async fn client_that_half_closes_gets_its_response() {
    let server = TestServer::start(CONFIG).await;
    let mut stream = server.busy().await;
    stream.shutdown().await.unwrap();
    // After this response the server has seen the end of the stream, with the request in flight.
    first_response(&mut server.connect().await).await;
    server.release.notify_one();
    let response = read_to_close(&mut stream).await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("released"), "{response}");
}

#[tokio::test]
async fn half_closed_idle_connection_is_closed_at_once() {
    let server = TestServer::start(CONFIG).await;
    for first in ["", GET] {
        let mut stream = server.connect().await;
        send(&mut stream, first).await;
        stream.shutdown().await.unwrap();
        let closed = timeout(CONFIG.header_read_timeout / 2, read_to_close(&mut stream)).await;
        assert_eq!(closed.expect("closed before any timeout").is_empty(), first.is_empty());
    }
}

/// A client that sends requests as fast as they are read, and accepts all responses.
struct Endless {
    sent: usize,
    largest_read: Arc<AtomicUsize>,
}

impl AsyncRead for Endless {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        const REQUESTS: usize = 4 << 20;
        self.largest_read.fetch_max(buf.remaining(), Ordering::Relaxed);
        while buf.remaining() > 0 && self.sent < REQUESTS {
            buf.put_slice(&[GET.as_bytes()[self.sent % GET.len()]]);
            self.sent += 1;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Endless {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn read_buffer_is_bounded() {
    let largest_read = Arc::new(AtomicUsize::new(0));
    let client = Endless { sent: 0, largest_read: Arc::clone(&largest_read) };
    let service = service_fn(async |_| Ok::<_, Infallible>(Response::new("response".to_owned())));
    // The stream ends in the middle of a request, which is an error.
    let _ = protocol(&CONFIG).serve_connection(TokioIo::new(client), service).await;
    let largest = largest_read.load(Ordering::Relaxed);
    // The capacity of the buffer may be twice what was reserved.
    assert!((MAX_HEAD_BYTES..=2 * MAX_BUFFER_BYTES).contains(&largest), "{largest} bytes are read ahead");
}

#[tokio::test]
async fn connections_are_counted_with_the_reason_of_their_end() {
    let metrics: &'static Metrics = Box::leak(Box::default());
    let value = |name: &str, labels: &[(&str, &str)]| {
        series(metrics).into_iter().find(|series| series.is(name, labels)).map(|series| series.value)
    };
    let until_one_is_open = async || {
        while value("chart_index_http_connections", &[]) != Some(1.0) {
            tokio::task::yield_now().await;
        }
    };
    let config = ServerConfig {
        max_connections_per_peer: NonZeroU32::new(2).unwrap(),
        header_read_timeout: Duration::from_millis(300),
        ..CONFIG
    };
    let server = TestServer::start_metered("", config, metrics).await;
    let mut busy = server.connect_from("127.0.0.2").await;
    send(&mut busy, WAIT).await;
    server.entered.notified().await;
    for request in ["GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", "no HTTP\r\n\r\n"] {
        let mut stream = server.connect().await;
        send(&mut stream, request).await;
        read_to_close(&mut stream).await;
    }
    until_one_is_open().await;
    let (mut idle, mut other) = (server.connect().await, server.connect().await);
    assert!(!is_served(&mut server.connect().await).await, "one more is closed");
    read_to_close(&mut idle).await;
    read_to_close(&mut other).await;
    until_one_is_open().await;
    assert_eq!(value("chart_index_http_connections_limit", &[]), Some(16.0));

    server.stop.send(()).unwrap();
    server.release.notify_one();
    read_to_close(&mut busy).await;
    server.stopped.await.unwrap();
    let reasons =
        [("completed", 1.0), ("client_error", 1.0), ("timeout", 2.0), ("peer_limit", 1.0), ("shutdown", 1.0)];
    for (reason, count) in reasons {
        let closed = value("chart_index_http_connections_closed_total", &[("chart_index_reason", reason)]);
        assert_eq!(closed, Some(count), "{reason}");
    }
}
