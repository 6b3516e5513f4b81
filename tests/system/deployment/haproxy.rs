//! `compose/haproxy/haproxy.cfg`, run by a real HAProxy. In place of the replicas are servers that return the
//! requests that they receive.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chart_index_system_tests::{Process, code_blocks, haproxy_program, read};
use chart_index_tests::{Client, fixed_address, within};
use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const TIMEOUT: Duration = Duration::from_secs(20);
/// `timeout server` of the tests.
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);
const REPLICAS: [&str; 2] = ["replica-1", "replica-2"];

/// What a client may send to be taken for a proxy that the replicas trust.
const FORGED: &[(&str, &str)] = &[
    ("x-forwarded-for", "192.0.2.1"),
    ("forwarded", "for=192.0.2.1"),
    ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ("tracestate", "a=b"),
    ("x-request-id", "forged"),
];

/// An HAProxy in front of servers of the test.
struct Site {
    _haproxy: Process,
    address: SocketAddr,
    public: Client,
    private: Client,
    /// How many further requests these servers leave without a response.
    unanswered: Arc<AtomicUsize>,
    _folder: tempfile::TempDir,
}

impl Site {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    async fn start_with(variables: &[(&str, &str)]) -> Self {
        let unanswered = Arc::new(AtomicUsize::new(0));
        let mut config = read("compose/haproxy/haproxy.cfg");
        assert_eq!(config.matches("timeout server 10s").count(), 1, "{config}");
        let server_timeout = format!("timeout server {}s", SERVER_TIMEOUT.as_secs());
        config = config.replace("timeout server 10s", &server_timeout);
        for name in REPLICAS {
            let address = start_replica(name, Arc::clone(&unanswered)).await;
            let (original, port) = (format!("    server {name} {name}.edge:8080\n"), address.port());
            assert!(config.contains(&original), "{name}");
            config = config.replace(&original, &format!("    server {name} {address} port {port}\n"));
        }
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("haproxy.cfg"), config).expect("a configuration");
        let (address, private) = (fixed_address(), fixed_address());
        let haproxy = Process::start(
            Command::new(haproxy_program())
                .args(["-db", "-f", "haproxy.cfg"])
                .current_dir(folder.path())
                .env("HAPROXY_LISTEN", address.to_string())
                .env("HAPROXY_PRIVATE_LISTEN", private.to_string())
                .envs(variables.iter().copied())
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        );
        let (public, private) = (Client::new(address), Client::new(private));
        let site = Self { _haproxy: haproxy, address, public, private, unanswered, _folder: folder };
        site.wait_until_healthy().await;
        site
    }

    async fn wait_until_healthy(&self) {
        within(TIMEOUT, async || {
            let response = self.private.try_request(Method::GET, "/healthz", &[]).await.ok()?;
            (response.status == 200).then_some(())
        })
        .await;
    }

    /// The line of the metrics of HAProxy that says whether a replica is in this state.
    async fn state(&self, replica: &str, state: &str) -> String {
        let metrics = String::from_utf8(self.private.get("/metrics").await.body).expect("UTF-8");
        // scripts/compose reads this.
        let start =
            format!("haproxy_server_status{{proxy=\"replicas\",server=\"{replica}\",state=\"{state}\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("{start} in {metrics}")).to_owned()
    }

    /// The request that a replica received, its name first.
    async fn received(&self, path: &str, headers: &[(&str, &str)]) -> String {
        let response = self.public.get_with(path, headers).await;
        assert_eq!(response.status, 200, "{path}");
        String::from_utf8(response.body).expect("UTF-8").to_lowercase()
    }
}

/// A server that responds with its name and the head of the request when it has received that, after the time
/// of the parameter `wait`.
async fn start_replica(name: &'static str, unanswered: Arc<AtomicUsize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(respond(stream, name, Arc::clone(&unanswered)));
        }
    });
    address
}

async fn respond(mut stream: TcpStream, name: &'static str, unanswered: Arc<AtomicUsize>) -> Option<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await.ok()?);
    }
    let is_check = request.starts_with(b"GET /readyz ");
    let decrement = |number: usize| number.checked_sub(1);
    if !is_check && unanswered.fetch_update(Ordering::SeqCst, Ordering::SeqCst, decrement).is_ok() {
        return None;
    }
    let text = String::from_utf8_lossy(&request);
    let wait = text.split_once("?wait=").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    if let Some(seconds) = wait {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
    let body = format!("{name}\n{text}");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).await.ok()?;
    // A close with unread bytes would reset the connection.
    stream.shutdown().await.ok()?;
    stream.read_to_end(&mut request).await.map(drop).ok()
}

#[tokio::test]
async fn clients_cannot_forge_headers_of_proxies() {
    let site = Site::start().await;
    let received = site.received("/api/chartsets", FORGED).await;
    let forwarded: Vec<_> = received.lines().filter(|line| line.contains("forwarded")).collect();
    assert_eq!(forwarded, ["x-forwarded-for: 127.0.0.1"], "{received}");
    assert!(!received.contains("trace") && !received.contains("x-request-id"), "{received}");
}

/// The client is 127.0.0.2, nginx sends from 127.0.0.1, and the second front proxy is in the header only.
#[tokio::test]
async fn front_proxies_name_the_client() {
    let site = Site::start_with(&[("FRONT_PROXIES", "127.0.0.1 198.51.100.0/24")]).await;
    let nginx = Nginx::start(site.address).await;
    let forwarded = async |header: &str| {
        let received = nginx.received(header).await;
        let lines: Vec<_> = received.lines().filter(|line| line.contains("forwarded")).collect();
        assert_eq!(lines.len(), 1, "{received}");
        lines[0].to_owned()
    };
    assert_eq!(forwarded("X-Other: 1").await, "x-forwarded-for: 127.0.0.2");
    assert_eq!(forwarded("X-Forwarded-For: 192.0.2.1").await, "x-forwarded-for: 127.0.0.2");
    // What a client sends to HAProxy itself does not count.
    let others = Site::start_with(&[("FRONT_PROXIES", "198.51.100.0/24")]).await;
    let received = others.received("/api/chartsets", FORGED).await;
    assert!(received.contains("\nx-forwarded-for: 127.0.0.1\r"), "{received}");
    // Two in a row: the address before that of the second one.
    for (header, expected) in [
        ("203.0.113.7, 198.51.100.1", "203.0.113.7"),
        ("192.0.2.1, 203.0.113.7", "203.0.113.7"),
        ("198.51.100.1", "198.51.100.1"),
        ("192.0.2.1, 203.0.113.7:443", "203.0.113.7"),
        ("192.0.2.1, 2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]", "2001:db8::7"),
        ("192.0.2.1, [2001:db8::7]:443", "2001:db8::7"),
        ("[2001:db8::7]:443, 198.51.100.1:443", "2001:db8::7"),
        ("no address", "127.0.0.1"),
        ("[2001:db8::7", "127.0.0.1"),
    ] {
        let received = site.received("/api/chartsets", &[("x-forwarded-for", header)]).await;
        assert!(received.contains(&format!("\nx-forwarded-for: {expected}\r")), "{header}: {received}");
    }
}

#[tokio::test]
async fn proxy_protocol_names_the_client() {
    let site = Site::start_with(&[("PROXY_PROTOCOL_FROM", "127.0.0.1 198.51.100.0/24")]).await;
    let of_proxy = "PROXY TCP4 203.0.113.7 192.0.2.1 5000 8080\r\n";
    let forged = "X-Forwarded-For: 192.0.2.1";
    let received = exchange(LOCALHOST, site.address, of_proxy, forged).await;
    assert!(received.contains("\nx-forwarded-for: 203.0.113.7\r"), "{received}");
    assert_eq!(exchange(LOCALHOST, site.address, "", forged).await, "", "without the protocol");
    // From another address it is not a request.
    let received = exchange(OTHER_CLIENT, site.address, of_proxy, forged).await;
    assert!(received.starts_with("http/1.1 400 "), "{received}");
    let received = exchange(OTHER_CLIENT, site.address, "", forged).await;
    assert!(received.contains("\nx-forwarded-for: 127.0.0.2\r"), "{received}");
}

#[tokio::test]
async fn connections_of_front_proxies_are_not_limited() {
    let limits = [("HAPROXY_CONNECTIONS_PER_CLIENT", "1"), ("HAPROXY_CONNECTIONS_PER_NETWORK", "1")];
    for (variable, beginning) in
        [("FRONT_PROXIES", ""), ("PROXY_PROTOCOL_FROM", "PROXY TCP4 203.0.113.7 192.0.2.1 5000 8080\r\n")]
    {
        let site = Site::start_with(&[limits[0], limits[1], (variable, "127.0.0.0/8")]).await;
        let mut open = Vec::new();
        for _ in 0..3 {
            open.push(first_byte(site.address, beginning).await.expect("a response"));
        }
    }
}

const LOCALHOST: [u8; 4] = [127, 0, 0, 1];
/// Another address of this machine.
const OTHER_CLIENT: [u8; 4] = [127, 0, 0, 2];

/// Connects from an address of this machine, and sends this and a request with a header. Returns what it
/// receives until the other side closes the connection, in lower case.
async fn exchange(from: [u8; 4], to: SocketAddr, beginning: &str, header: &str) -> String {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind((from, 0).into()).expect("an address of this machine");
    let mut stream = socket.connect(to).await.expect("a server listens");
    let request = format!(
        "{beginning}GET /api/chartsets HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{header}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("a request is sent");
    let mut response = Vec::new();
    // The connection may be reset after what was received.
    let _ = stream.read_to_end(&mut response).await;
    String::from_utf8(response).expect("UTF-8").to_lowercase()
}

/// An nginx in front of an HAProxy, with the example of docs/operations/compose.md. Killed when dropped.
struct Nginx {
    address: SocketAddr,
    child: Child,
    _folder: tempfile::TempDir,
}

impl Nginx {
    async fn start(haproxy: SocketAddr) -> Self {
        let page = read("docs/operations/compose.md");
        let example = code_blocks(&page, "nginx")[0];
        let address = fixed_address();
        let location = example.replace("127.0.0.1:8080", &haproxy.to_string());
        assert!(location.contains(&haproxy.to_string()), "{location}");
        let folder = tempfile::tempdir().expect("a folder");
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let paths: String = paths.map(|name| format!("{name}_temp_path {name};")).concat();
        let configuration = format!(
            "daemon off; pid pid; error_log error.log; events {{}}\n\
             http {{ access_log off; {paths}\nserver {{ listen {address};\n{location}}} }}"
        );
        std::fs::write(folder.path().join("nginx.conf"), configuration).expect("a configuration");
        let mut child = Command::new("nginx")
            .args(["-e", "error.log", "-c", "nginx.conf", "-p"])
            .arg(folder.path())
            .spawn()
            .expect("nginx is installed: `scripts/servers install nginx`");
        within(TIMEOUT, async || {
            assert!(child.try_wait().expect("a process").is_none(), "nginx ended");
            TcpStream::connect(address).await.ok().map(drop)
        })
        .await;
        Self { address, child, _folder: folder }
    }

    /// The request that a replica received from a client at 127.0.0.2 with this header.
    async fn received(&self, header: &str) -> String {
        let response = exchange(OTHER_CLIENT, self.address, "", header).await;
        assert!(response.starts_with("http/1.1 200 "), "{response}");
        response
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

/// The only client is an IPv4 address, which is its own network.
#[tokio::test]
async fn connections_of_clients_and_of_networks_are_limited() {
    for variable in ["HAPROXY_CONNECTIONS_PER_CLIENT", "HAPROXY_CONNECTIONS_PER_NETWORK"] {
        let site = Site::start_with(&[(variable, "3")]).await;
        let mut open = Vec::new();
        for expected in [true, true, true, false] {
            let served = first_byte(site.address, "").await;
            assert_eq!(served.is_ok(), expected, "{variable}: connection {}", open.len() + 1);
            open.push(served);
        }
    }
}

/// Opens a connection that stays open, sends this and a request, and waits for a response.
async fn first_byte(address: SocketAddr, beginning: &str) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("{beginning}GET /api/chartsets HTTP/1.1\r\nHost: test\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.read_u8().await?;
    Ok(stream)
}

#[tokio::test]
async fn response_may_wait_for_a_change() {
    let site = Site::start().await;
    let wait = SERVER_TIMEOUT + Duration::from_secs(1);
    let path = |path: &str| format!("{path}?wait={}", wait.as_secs());
    let (change, other) = (path("/api/changes"), path("/api/charts/0"));
    let (change, other) = tokio::join!(site.public.get(&change), site.public.get(&other));
    assert_eq!((change.status.as_u16(), other.status.as_u16()), (200, 504));
}

#[tokio::test]
async fn request_without_response_is_sent_again() {
    let site = Site::start().await;
    // A replica that is killed leaves its connections without a response.
    for (method, path) in [(Method::GET, "/api/charts/0"), (Method::POST, "/api/charts/lookup")] {
        // The second one on this connection, at which HAProxy would close it without a response.
        site.received("/api/charts/0", &[]).await;
        site.unanswered.store(1, Ordering::SeqCst);
        let response = site.public.try_request(method.clone(), path, &[]).await;
        assert_eq!(response.expect("a response").status, 200, "{method}");
        assert_eq!(site.unanswered.load(Ordering::SeqCst), 0, "{method}");
    }
}

#[tokio::test]
async fn request_is_forwarded_with_its_body() {
    let site = Site::start().await;
    let mut stream = TcpStream::connect(site.address).await.expect("a connection");
    let head = "POST /api/charts/lookup HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n";
    let expect = "Expect: 100-continue\r\n\r\n";
    stream.write_all((head.to_owned() + expect).as_bytes()).await.expect("a head is sent");
    let mut line = [0; 25];
    stream.read_exact(&mut line).await.expect("a status");
    assert_eq!(&line, b"HTTP/1.1 100 Continue\r\n\r\n", "HAProxy waits for the body");
    stream.write_all(b"[").await.expect("half of the body is sent");
    // Requests that HAProxy receives later.
    for _ in 0..20 {
        site.received("/api/charts/0", &[]).await;
    }
    let early = stream.try_read(&mut line).map_err(|error| error.kind());
    assert_eq!(early, Err(ErrorKind::WouldBlock), "a replica responds to the head");
    stream.write_all(b"]").await.expect("the other half is sent");
    stream.read_exact(&mut line).await.expect("a response");
    assert!(line.starts_with(b"HTTP/1.1 200 OK"), "{line:?}");
}

#[tokio::test]
async fn errors_of_haproxy_are_problem_details() {
    let site = Site::start().await;
    site.unanswered.store(usize::MAX, Ordering::SeqCst);
    let response = site.public.get("/api/charts/0").await;
    assert_eq!(response.status, 502);
    assert_eq!(response.header("content-type"), "application/problem+json");
    assert_eq!(response.header("retry-after"), "1");
    assert_eq!(response.header("access-control-expose-headers"), "Retry-After");
    let problem = response.json();
    assert_eq!((&problem["type"], &problem["status"]), (&"/problems/unavailable".into(), &502.into()));
    assert_has_all_fields(&problem);
    // The others.
    let config = read("compose/haproxy/haproxy.cfg");
    let bodies = config.lines().filter_map(|line| {
        let error = line.trim().strip_prefix("http-error status ")?;
        Some(error.split('\'').nth(1).expect("a body"))
    });
    let problems: Vec<_> = bodies.map(|body| serde_json::from_str(body).expect("JSON")).collect();
    assert_eq!(problems.len(), 4);
    problems.iter().for_each(assert_has_all_fields);
}

fn assert_has_all_fields(problem: &serde_json::Value) {
    for field in ["type", "title", "detail"] {
        assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {problem}");
    }
    assert!(problem["status"].is_u64(), "{problem}");
}

#[tokio::test]
async fn private_listener_has_health_and_metrics() {
    let site = Site::start().await;
    for name in REPLICAS {
        assert_eq!(site.state(name, "UP").await, "1", "{name}");
    }
    assert_eq!(site.private.get("/api/charts").await.status, 404);
    assert_eq!(site.public.get("/metrics").await.status, 200, "the response of a replica");
}
