//! HTTP servers that respond as a test says, to one request of each connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// A request as it was received.
#[derive(Debug)]
pub struct Request {
    /// The lines of the head.
    head: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    fn read(connection: &TcpStream) -> Self {
        let mut reader = BufReader::new(connection);
        let lines = reader.by_ref().lines().map(Result::unwrap_or_default);
        let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        let length = head
            .iter()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let mut body = Vec::new();
        reader.take(length.unwrap_or(0)).read_to_end(&mut body).expect("a body");
        Self { head, body }
    }

    /// The path with its query string.
    pub fn path(&self) -> &str {
        self.head[0].split(' ').nth(1).expect("a path")
    }

    /// Whether a line of the head is this one.
    pub fn has_header(&self, line: &str) -> bool {
        self.head.iter().any(|header| header == line)
    }

    /// The response of another server.
    pub fn forward(&self, server: SocketAddr) -> Vec<u8> {
        let lines = self.head.iter().filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
        let head: String = lines.map(|line| line.clone() + "\r\n").collect();
        let head = head + "connection: close\r\n\r\n";
        let mut connection = TcpStream::connect(server).expect("the server listens");
        connection.write_all(&[head.as_bytes(), &self.body].concat()).expect("the server reads");
        let mut response = Vec::new();
        connection.read_to_end(&mut response).expect("a response");
        response
    }
}

/// Starts a server, and returns its base address.
pub fn serve(respond: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let respond = Arc::new(respond);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let respond = Arc::clone(&respond);
            std::thread::spawn(move || {
                let mut connection = connection.expect("a connection");
                let response = respond(&Request::read(&connection));
                // The client may have closed the connection, such as to a body that is too long.
                let _ = connection.write_all(&response);
            });
        }
    });
    base
}

/// A response whose head begins with a status, which further headers may follow.
pub fn response(head: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}
