//! Limits the connections of each peer address, and of each IPv6 network.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use chart_index_ratelimit::{ClientAddress, Network, TrustedProxies, network_limit};

/// Limits the connections per peer, an IPv4 address or an IPv6 /64, so that no single one can use up those of
/// the listener. An IPv6 /48 may have as many as 16 peers, as for the rate limits. Trusted proxies connect on
/// behalf of many clients and are not limited.
#[derive(Debug, Clone)]
pub(crate) struct PeerConnections(Arc<SharedPeers>);

#[derive(Debug)]
struct SharedPeers {
    max: NonZeroU32,
    trusted: TrustedProxies,
    /// Open connections of each peer and network that has any.
    open: Mutex<HashMap<Counted, u32>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Counted {
    Peer(ClientAddress),
    Network(Network),
}

/// The permit of one connection. Dropping it releases the permit.
#[derive(Debug)]
pub(crate) struct PeerPermit {
    shared: Arc<SharedPeers>,
    /// `None` for a trusted proxy.
    counted: Option<ClientAddress>,
}

impl PeerConnections {
    pub(crate) fn new(max: NonZeroU32, trusted: TrustedProxies) -> Self {
        Self(Arc::new(SharedPeers { max, trusted, open: Mutex::default() }))
    }

    /// Acquires a permit for a connection of this peer; `None` if it or its network is at its limit.
    pub(crate) fn acquire(&self, peer: IpAddr) -> Option<PeerPermit> {
        let shared = Arc::clone(&self.0);
        if shared.trusted.contains(peer) {
            return Some(PeerPermit { shared, counted: None });
        }
        let address = ClientAddress::from(peer);
        {
            let mut open = shared.open.lock().unwrap_or_else(PoisonError::into_inner);
            let is_full = |(counted, limit): (Counted, NonZeroU32)| {
                open.get(&counted).is_some_and(|&connections| connections >= limit.get())
            };
            if counted(address, shared.max).any(is_full) {
                return None;
            }
            for (counted, _) in counted(address, shared.max) {
                *open.entry(counted).or_insert(0) += 1;
            }
        }
        Some(PeerPermit { shared, counted: Some(address) })
    }
}

/// What a connection of this address counts for, with the limits where that of a peer is `max`.
fn counted(address: ClientAddress, max: NonZeroU32) -> impl Iterator<Item = (Counted, NonZeroU32)> {
    let network = address.network().map(|network| (Counted::Network(network), network_limit(max)));
    [Some((Counted::Peer(address), max)), network].into_iter().flatten()
}

impl Drop for PeerPermit {
    fn drop(&mut self) {
        let Some(address) = self.counted else { return };
        let mut open = self.shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        for (counted, _) in counted(address, self.shared.max) {
            if let Entry::Occupied(mut connections) = open.entry(counted) {
                *connections.get_mut() -= 1;
                if *connections.get() == 0 {
                    connections.remove();
                }
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
    fn peers_have_separate_limits_and_permits_are_released() {
        let peers = peers(2);
        let first = acquire(&peers, "192.0.2.1").unwrap();
        let _second = acquire(&peers, "::ffff:192.0.2.1").unwrap();
        assert!(acquire(&peers, "192.0.2.1").is_none());
        assert!(acquire(&peers, "192.0.2.2").is_some());
        drop(first);
        assert!(acquire(&peers, "192.0.2.1").is_some());
    }

    #[test]
    fn ipv6_peers_are_limited_per_64() {
        let peers = peers(1);
        let _held = acquire(&peers, "2001:db8:1:2::1").unwrap();
        assert!(acquire(&peers, "2001:db8:1:2:ffff::9").is_none());
        assert!(acquire(&peers, "2001:db8:1:3::1").is_some());
    }

    #[test]
    fn ipv6_networks_are_limited_per_48() {
        let peers = peers(2);
        let of_network = |subnet: u32| acquire(&peers, &format!("2001:db8:1:{subnet:x}::1"));
        let mut held: Vec<_> = (0..40).filter_map(of_network).collect();
        assert_eq!(held.len(), 32);
        assert!(acquire(&peers, "2001:db8:2::1").is_some());
        held.pop();
        assert!(of_network(100).is_some());
        drop(held);
        assert!(peers.0.open.lock().unwrap().is_empty());
    }

    #[test]
    fn trusted_proxies_are_not_limited() {
        let peers = peers(1);
        let held: Vec<_> = (0..100).filter_map(|_| acquire(&peers, "10.1.2.3")).collect();
        assert_eq!(held.len(), 100);
    }

    #[test]
    fn peers_without_connections_use_no_memory() {
        let peers = peers(1);
        for number in 0..1_000 {
            drop(peers.acquire(std::net::Ipv4Addr::from_bits(number).into()));
        }
        assert!(peers.0.open.lock().unwrap().is_empty());
    }
}
