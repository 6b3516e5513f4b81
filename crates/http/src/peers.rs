//! How many connections each peer holds.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use chart_index_ratelimit::{ClientAddress, TrustedProxies};

/// Bounds the connections of each peer, an IPv4 address or an IPv6 /64, so that no single one can hold all that a
/// listener has. A trusted proxy connects for many clients and is not bounded.
#[derive(Debug, Clone)]
pub(crate) struct PeerConnections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max: u32,
    trusted: TrustedProxies,
    /// Peers with at least one connection.
    held: Mutex<HashMap<ClientAddress, u32>>,
}

/// The permit of one connection, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct PeerPermit {
    shared: Arc<Shared>,
    /// `None` for a peer that is not bounded.
    counted: Option<ClientAddress>,
}

impl PeerConnections {
    pub(crate) fn new(max: NonZeroU32, trusted: TrustedProxies) -> Self {
        Self(Arc::new(Shared { max: max.get(), trusted, held: Mutex::default() }))
    }

    /// Counts a connection of this peer; `None` where it holds as many as it may.
    pub(crate) fn acquire(&self, peer: IpAddr) -> Option<PeerPermit> {
        let shared = Arc::clone(&self.0);
        if shared.trusted.contains(peer) {
            return Some(PeerPermit { shared, counted: None });
        }
        let address = ClientAddress::from(peer);
        {
            let mut held = shared.held.lock().unwrap_or_else(PoisonError::into_inner);
            let connections = held.entry(address).or_insert(0);
            if *connections >= shared.max {
                return None;
            }
            *connections += 1;
        }
        Some(PeerPermit { shared, counted: Some(address) })
    }
}

impl Drop for PeerPermit {
    fn drop(&mut self) {
        let Some(address) = self.counted else { return };
        let mut held = self.shared.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut connections) = held.entry(address) {
            *connections.get_mut() -= 1;
            if *connections.get() == 0 {
                connections.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(max: u32) -> PeerConnections {
        PeerConnections::new(NonZeroU32::new(max).unwrap(), "10.0.0.0/8".parse().unwrap())
    }

    fn acquire(peers: &PeerConnections, peer: &str) -> Option<PeerPermit> {
        peers.acquire(peer.parse().unwrap())
    }

    #[test]
    fn a_peer_has_a_bound_of_its_own_and_permits_come_back() {
        let peers = peers(2);
        let first = acquire(&peers, "192.0.2.1").unwrap();
        let _second = acquire(&peers, "::ffff:192.0.2.1").unwrap();
        assert!(acquire(&peers, "192.0.2.1").is_none());
        assert!(acquire(&peers, "192.0.2.2").is_some());
        drop(first);
        assert!(acquire(&peers, "192.0.2.1").is_some());
    }

    #[test]
    fn an_ipv6_peer_is_its_64() {
        let peers = peers(1);
        let _held = acquire(&peers, "2001:db8:1:2::1").unwrap();
        assert!(acquire(&peers, "2001:db8:1:2:ffff::9").is_none());
        assert!(acquire(&peers, "2001:db8:1:3::1").is_some());
    }

    #[test]
    fn a_trusted_proxy_is_not_bounded() {
        let peers = peers(1);
        let held: Vec<_> = (0..100).filter_map(|_| acquire(&peers, "10.1.2.3")).collect();
        assert_eq!(held.len(), 100);
    }

    #[test]
    fn peers_without_connections_take_no_memory() {
        let peers = peers(1);
        for number in 0..1_000 {
            drop(peers.acquire(std::net::Ipv4Addr::from_bits(number).into()));
        }
        assert!(peers.0.held.lock().unwrap().is_empty());
    }
}
