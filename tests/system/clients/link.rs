//! A slow link to an index that refuses and times out.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// 512 kbit/s.
const BYTES_PER_SECOND: u32 = 64_000;
/// The number of hashes of a batch that arrives in time.
const MAX_HASHES: usize = 300;
/// A `Retry-After` of 2 s as a date, and a pause that the client chooses.
const REFUSALS: [&str; 3] = [
    "429 Too Many Requests\r\nRetry-After: 1",
    "429 Too Many Requests\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
     Retry-After: Sun, 06 Nov 1994 08:49:39 GMT",
    "503 Service Unavailable",
];
/// The shortest pauses after them. The last one has doubled twice, less a random part of up to half.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(2)];
/// What a pause may last longer, on a busy machine: much less than the minutes of a client that reads the dates
/// with its own clock.
const TOLERANCE: Duration = Duration::from_secs(30);

/// A server in front of a service.
pub(crate) struct Link {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Received>>>,
}

/// A request that was received.
struct Received {
    /// When its head was received.
    begun: Instant,
    /// When its body was received.
    complete: Instant,
    user_agent: bool,
    hashes: usize,
}

impl Link {
    pub(crate) async fn start(service: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let link = Self { address: listener.local_addr().expect("an address"), requests: Arc::default() };
        let requests = Arc::clone(&link.requests);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(respond(client, service, Arc::clone(&requests)));
            }
        });
        link
    }

    /// The base address, with a slash.
    pub(crate) fn base(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The client has waited after each refusal, named itself, and halved its batches once.
    pub(crate) fn check(&self) {
        let requests = self.requests.lock().expect("no test panicked");
        for (number, pause) in PAUSES.iter().enumerate() {
            let waited = requests[number + 1].begun - requests[number].complete;
            assert!(waited >= *pause && waited < *pause + TOLERANCE, "{number}: {waited:?}");
        }
        assert!(requests.iter().all(|request| request.user_agent));
        let batches: Vec<usize> = requests.iter().map(|request| request.hashes).collect();
        let late = batches.iter().rposition(|hashes| *hashes > MAX_HASHES).expect("a batch is too large");
        let (refused, rest) = batches.split_at(late + 1);
        assert!(refused.is_sorted_by(|a, b| a >= b) && refused.len() <= REFUSALS.len() + 3, "{batches:?}");
        assert!(rest.len() < 12, "{batches:?}");
    }
}

/// Reads a request, and refuses it or passes it on.
async fn respond(mut client: TcpStream, service: SocketAddr, requests: Arc<Mutex<Vec<Received>>>) {
    let (head, begun, body) = read_request(&mut client).await;
    let user_agent = head.to_ascii_lowercase().contains("(me@example.org)");
    let hashes = body.windows(64).filter(|text| text.iter().all(u8::is_ascii_hexdigit)).count();
    let number = {
        let mut requests = requests.lock().expect("no test panicked");
        requests.push(Received { begun, complete: Instant::now(), user_agent, hashes });
        requests.len() - 1
    };
    let refusal = match REFUSALS.get(number) {
        None if hashes > MAX_HASHES => Some(&"408 Request Timeout"),
        refusal => refusal,
    };
    if let Some(status) = refusal {
        let response = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}");
        client.write_all(response.as_bytes()).await.expect("the client reads");
        return;
    }
    let mut server = TcpStream::connect(service).await.expect("the service listens");
    let head = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    server.write_all(&[head.as_bytes(), &body].concat()).await.expect("the service reads");
    copy_slowly(&mut server, &mut client).await;
}

/// The head of a request, when it was received, and the body, which arrives as on the link.
async fn read_request(client: &mut TcpStream) -> (String, Instant, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.expect("a request"));
    }
    let (head, begun) = (String::from_utf8(head).expect("ASCII"), Instant::now());
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then(|| value.parse().expect("a number"))
    });
    let mut body = Vec::new();
    copy_slowly(&mut client.take(length.unwrap_or(0)), &mut body).await;
    (head, begun, body)
}

async fn copy_slowly(from: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin)) {
    let mut chunk = [0; 1_600];
    loop {
        match from.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(bytes) => {
                let seconds = Duration::from_secs(bytes as u64);
                tokio::time::sleep(seconds / BYTES_PER_SECOND).await;
                if to.write_all(&chunk[..bytes]).await.is_err() {
                    break;
                }
            }
        }
    }
}
