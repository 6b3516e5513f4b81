//! Clients that exceed their limit.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;

use super::{Clients, Request, TIMEOUT, Target, WITH_REDIS};
use crate::model::Moment;

/// A request of a client that exceeds its limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LimitedRequest {
    /// Each client has an address of its own.
    pub(crate) client: u32,
    pub(crate) target: Target,
    pub(crate) start: Moment,
    pub(crate) end: Moment,
    /// The status of the response.
    pub(crate) status: Option<u16>,
}

/// Time between two requests of the client that exceeds its limit: 6.7 a second, 400 in a window.
const INTERVAL: Duration = Duration::from_millis(150);
/// Time between two clients that exceed their limit as fast as they can. Few faults last for as short as that
/// takes.
const BURST_INTERVAL: Duration = Duration::from_secs(8);
/// Requests of such a client.
const BURST: usize = 260;

impl Clients {
    /// Sends more requests than the limit allows to these replicas in turn.
    pub(super) async fn exceed_limit(self: Arc<Self>, replicas: [usize; 2], client: u32) {
        for number in 0.. {
            if self.is_stopped() {
                return;
            }
            self.send_limited(client, replicas[number % 2]).await;
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Sends the requests of one client after the other to the replicas that share Redis.
    pub(super) async fn exceed_limit_in_bursts(self: Arc<Self>) {
        for client in 2.. {
            for number in 0..BURST {
                if self.is_stopped() {
                    return;
                }
                self.send_limited(client, WITH_REDIS[number % 2]).await;
            }
            tokio::time::sleep(BURST_INTERVAL).await;
        }
    }

    async fn send_limited(&self, client: u32, replica: usize) {
        let path = Request::Lookup(0).path(&self.names);
        // The other clients have addresses of 198.18.0.0/16.
        let address = Ipv4Addr::from_bits(Ipv4Addr::new(198, 19, 0, 1).to_bits() + client).to_string();
        let start = self.start.elapsed();
        let headers = [("x-forwarded-for", address.as_str())];
        let request = self.replicas[replica].try_request(Method::GET, &path, &headers);
        let response = tokio::time::timeout(TIMEOUT, request).await;
        let status = response.ok().and_then(Result::ok).map(|response| response.status.as_u16());
        let (target, end) = (Target::Replica(replica), self.start.elapsed());
        self.recorded().limited.push(LimitedRequest { client, target, start, end, status });
    }
}
