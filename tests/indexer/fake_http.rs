//! HTTP servers that respond as a test says, to one request of each connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// A request as it was received, without its body.
pub(crate) struct FakeRequest {
    /// The lines of the head.
    pub(crate) head: Vec<String>,
}

impl FakeRequest {
    fn read(connection: &TcpStream) -> Self {
        let mut reader = BufReader::new(connection);
        let lines = reader.by_ref().lines().map(Result::unwrap_or_default);
        let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        let length = head
            .iter()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        std::io::copy(&mut reader.take(length.unwrap_or(0)), &mut std::io::sink()).unwrap();
        Self { head }
    }

    pub(crate) fn path(&self) -> &str {
        self.head[0].split(' ').nth(1).unwrap()
    }

    pub(crate) fn has_header(&self, line: &str) -> bool {
        self.head.iter().any(|header| header == line)
    }
}

/// Starts a server, and returns its base address.
pub(crate) fn serve(respond: impl Fn(&FakeRequest) -> Vec<u8> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let respond = Arc::new(respond);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let respond = Arc::clone(&respond);
            std::thread::spawn(move || {
                let mut connection = connection.unwrap();
                let response = respond(&FakeRequest::read(&connection));
                // The client may have closed the connection, such as to a body that is too long.
                let _ = connection.write_all(&response);
            });
        }
    });
    base
}

/// A response whose head begins with a status, which further headers may follow.
pub(crate) fn response(head: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}
