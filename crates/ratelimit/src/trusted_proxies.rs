//! Finds the client address of a request in `X-Forwarded-For`.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};

use crate::ClientAddress;

/// The proxies whose `X-Forwarded-For` is trusted: `TRUSTED_PROXIES`, networks or addresses separated by
/// commas.
///
/// An IPv4-mapped network (`::ffff:10.0.0.0/104`) is the IPv4 network. No other IPv6 network, not even `::/0`,
/// contains IPv4 addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// The address that a request is counted for.
    ///
    /// This is the address of the peer. If the peer is trusted, it is the right-most untrusted hop of
    /// `forwarded_for`, the values of all `X-Forwarded-For` headers in order. Each trusted proxy has appended
    /// the hop to its left; anything left of an untrusted hop may be made up by the client.
    ///
    /// A hop may have a port (`192.0.2.7:443`, `[2001:db8::1]:443`) or brackets. Empty hops are skipped
    /// (RFC 9110, section 5.6.1). At a hop that is not an address, the search ends with the trusted proxy that
    /// appended it. If every hop is trusted, the left-most is the client.
    pub fn client_address<Values>(&self, peer: IpAddr, forwarded_for: Values) -> ClientAddress
    where
        Values: IntoIterator<Item: AsRef<[u8]>, IntoIter: DoubleEndedIterator>,
    {
        let mut client = peer.to_canonical();
        if !self.contains(client) {
            return client.into();
        }
        for value in forwarded_for.into_iter().rev() {
            for hop in value.as_ref().rsplit(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                if hop.is_empty() {
                    continue;
                }
                let Some(address) = parse_hop(hop) else { return client.into() };
                client = address;
                if !self.contains(client) {
                    return client.into();
                }
            }
        }
        client.into()
    }

    /// Whether a peer is a trusted proxy. An IPv4-mapped IPv6 address is the IPv4 address.
    #[must_use]
    pub fn contains(&self, peer: IpAddr) -> bool {
        let canonical = peer.to_canonical();
        self.0.iter().any(|network| network.contains(&canonical))
    }
}

impl FromStr for TrustedProxies {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        entries.map(parse_network).collect::<Result<_, _>>().map(Self)
    }
}

impl FromIterator<IpNet> for TrustedProxies {
    fn from_iter<Networks: IntoIterator<Item = IpNet>>(networks: Networks) -> Self {
        Self(networks.into_iter().map(canonical_network).collect())
    }
}

/// An entry of `TRUSTED_PROXIES` is neither a network nor an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("TRUSTED_PROXIES: {0:?} is neither a network such as 10.0.0.0/8 nor an address")]
pub struct InvalidNetwork(pub String);

fn parse_network(entry: &str) -> Result<IpNet, InvalidNetwork> {
    let network = entry.parse().or_else(|_| entry.parse::<IpAddr>().map(IpNet::from));
    network.map(canonical_network).map_err(|_| InvalidNetwork(entry.to_owned()))
}

fn canonical_network(network: IpNet) -> IpNet {
    /// The bits of an IPv4-mapped address before the IPv4 address.
    const MAPPED: u8 = 96;
    let mapped = match network {
        IpNet::V6(v6) if v6.prefix_len() >= MAPPED => {
            v6.addr().to_ipv4_mapped().and_then(|v4| Ipv4Net::new(v4, v6.prefix_len() - MAPPED).ok())
        }
        _ => None,
    };
    mapped.map_or(network, IpNet::V4)
}

fn parse_hop(hop: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(hop).ok()?;
    let unbracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let address = match unbracketed {
        Some(inside) => IpAddr::V6(inside.parse().ok()?),
        None => text.parse().or_else(|_| text.parse::<SocketAddr>().map(|socket| socket.ip())).ok()?,
    };
    Some(address.to_canonical())
}
