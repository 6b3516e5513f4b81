//! The bucket with the files of the index, in every other history. No fault affects its server, which has its
//! data in memory: they affect the proxy in front of it.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use chart_index_system_tests::PrivateS3;

/// Maximum time until the server responds.
const START_TIMEOUT: Duration = Duration::from_mins(1);

const VERSIONS: &str = "<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Status>Enabled</Status></VersioningConfiguration>";

/// Selects the names of the objects that rows need.
pub(crate) const NAMED_OBJECTS: &str = "SELECT encode(object, 'hex') FROM rox_files WHERE object IS NOT NULL";

/// A public bucket. Deleted objects stay as versions (docs/operations/recovery.md, "Objects").
#[derive(Debug)]
pub(crate) struct Bucket {
    server: SocketAddr,
}

impl Bucket {
    /// The path of all objects.
    pub(crate) const PATH: &str = "/charts/files";
    /// The port of the server, and of the proxy.
    pub(crate) const PORT: u16 = 5000;

    /// Creates the bucket as soon as the server responds.
    pub(crate) fn create(server: SocketAddr) -> Self {
        let (bucket, start) = (Self { server }, Instant::now());
        while bucket.try_send("PUT", "/charts", "").is_none() {
            assert!(start.elapsed() < START_TIMEOUT, "scripts/s3 does not start: run scripts/s3 install");
            thread::sleep(Duration::from_millis(20));
        }
        bucket.send("PUT", "/charts?versioning", VERSIONS);
        bucket.send("PUT", "/charts?policy", &PrivateS3::policy());
        bucket
    }

    /// The names of all objects.
    pub(crate) fn objects(&self) -> BTreeSet<String> {
        let list = self.send("GET", "/charts?list-type=2&prefix=files/&max-keys=100000", "");
        texts(&list, "Key").filter_map(|key| key.rsplit('/').next()).map(str::to_owned).collect()
    }

    /// Deletes an object.
    pub(crate) fn lose(&self, name: &str) {
        let list = self.send("GET", "/charts?list-type=2&prefix=files/&max-keys=100000", "");
        if let Some(key) = texts(&list, "Key").find(|key| key.ends_with(name)) {
            self.send("DELETE", &format!("/charts/{key}"), "");
        }
    }

    /// Brings back the deleted objects whose names these are.
    pub(crate) fn undelete(&self, is_included: impl Fn(&str) -> bool) {
        let list = self.send("GET", "/charts?versions&max-keys=100000", "");
        for marker in list.split("<DeleteMarker>").skip(1) {
            let [key, version] = ["Key", "VersionId"].map(|name| texts(marker, name).next().expect("a text"));
            if key.rsplit('/').next().is_some_and(&is_included) {
                self.send("DELETE", &format!("/charts/{key}?versionId={version}"), "");
            }
        }
    }

    fn send(&self, method: &str, path: &str, body: &str) -> String {
        self.try_send(method, path, body).unwrap_or_else(|| panic!("{method} {path} fails"))
    }

    /// Sends a request. Returns the response, if it is one of success.
    fn try_send(&self, method: &str, path: &str, body: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.server).ok()?;
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nAuthorization: AWS test:test\r\n\
             Content-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n",
            self.server
        );
        stream.write_all((head + body).as_bytes()).ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).ok()?;
        response.split(' ').nth(1)?.starts_with('2').then_some(response)
    }
}

/// The texts of the elements with this name.
fn texts<'a>(xml: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    let parts: Vec<_> = xml.split(&*start).skip(1).collect();
    parts.into_iter().filter_map(move |part| Some(part.split_once(&*end)?.0))
}
