//! A private S3 server.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use chart_index_tests::{Client, fixed_address, workspace_root};
use reqwest::Method;
use serde_json::json;

use crate::Process;

/// Maximum time until the server responds, including its installation.
const START_TIMEOUT: Duration = Duration::from_mins(5);

/// An S3 server with an empty, public bucket, whose data is in memory. Killed when dropped.
#[derive(Debug)]
pub struct PrivateS3 {
    address: SocketAddr,
    process: Process,
}

impl PrivateS3 {
    /// The name of the bucket.
    pub const BUCKET: &str = "charts";

    /// Starts a server on a free port of 127.0.0.1.
    pub async fn start() -> Self {
        Self::start_on(fixed_address()).await
    }

    /// Starts a server on this address. `scripts/s3 install` must have run on a machine without a network.
    pub async fn start_on(address: SocketAddr) -> Self {
        let process = Process::start(
            Command::new(workspace_root().join("scripts/s3"))
                .args(["serve", &address.ip().to_string(), &address.port().to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        );
        let mut server = Self { address, process };
        let started = Instant::now();
        let client = server.client();
        let bucket = format!("/{}", Self::BUCKET);
        while !client
            .try_request(Method::PUT, &bucket, &[])
            .await
            .is_ok_and(|response| response.status == 200)
        {
            let is_starting = !server.process.has_ended() && started.elapsed() < START_TIMEOUT;
            assert!(is_starting, "scripts/s3 does not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let policy = format!("{bucket}?policy");
        let response =
            client.send(Method::PUT, &policy, &[("content-type", "application/json")], Self::policy()).await;
        assert_eq!(response.status, 200);
        server
    }

    /// The address of the server.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The settings of programs that reach the bucket at this URL.
    pub fn variables(endpoint: &str) -> [(&'static str, String); 6] {
        [
            ("OBJECT_STORE_URL", format!("s3://{}/files", Self::BUCKET)),
            ("AWS_ENDPOINT", endpoint.to_owned()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
        ]
    }

    /// The policy with which everyone may read objects of the bucket.
    pub fn policy() -> String {
        let objects = format!("arn:aws:s3:::{}/*", Self::BUCKET);
        json!({
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": objects}],
        })
        .to_string()
    }

    /// A client without credentials, as of a public bucket.
    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// Sends a signal, such as `STOP`.
    pub fn signal(&self, signal: &str) {
        self.process.signal(signal);
    }
}
