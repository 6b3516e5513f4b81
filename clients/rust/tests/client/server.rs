//! A server whose responses are given.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use chart_index_client::ChartIndex;

/// The `User-Agent` of the tests.
pub(crate) const USER_AGENT: &str = "tests/1.0 (me@example.org)";

/// A request that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// Method and path.
    pub(crate) line: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// Gives one response to each connection, and returns the requests.
pub(crate) fn serve(responses: Vec<Vec<u8>>) -> (String, JoinHandle<Vec<Request>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let exchange = |response: &Vec<u8>| {
            let (mut connection, _) = listener.accept().unwrap();
            let request = read_request(&connection);
            connection.write_all(response).unwrap();
            request
        };
        responses.iter().map(exchange).collect()
    });
    (base, thread)
}

fn read_request(connection: &TcpStream) -> Request {
    let mut reader = BufReader::new(connection);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let line = lines.remove(0).trim_end_matches(" HTTP/1.1").to_owned();
    let mut request = Request { line, headers: lines, body: String::new() };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    reader.take(length).read_to_string(&mut request.body).unwrap();
    request
}

/// A response with this status line and these headers, separated by `; `.
pub(crate) fn response(head: &str, body: &[u8]) -> Vec<u8> {
    let head = head.replace("; ", "\r\n");
    let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// The index at this address.
pub(crate) fn index(base: &str) -> ChartIndex {
    ChartIndex::new(base, USER_AGENT).unwrap()
}
