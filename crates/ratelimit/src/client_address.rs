//! Whom a request is counted for.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address that a request is counted for: an IPv4 address, or the /64 of an IPv6 one (docs/api.md, "Limits").
///
/// An IPv4-mapped IPv6 address is the IPv4 address. A /64 is what a provider hands to one customer, who could
/// otherwise choose from 2^64 addresses. The address is nowhere to be logged: `Debug` says its family only, and
/// there is no `Display`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientAddress(Family);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Family {
    V4(u32),
    /// The upper half of the address.
    V6(u64),
}

/// An IPv6 /48, what a provider hands to one site: it holds 65,536 addresses that are counted by themselves, and has
/// a limit as a whole (docs/api.md, "Limits").
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Network(u64);

/// Bits of a /64 that are not in the /48.
const SUBNET_BITS: u32 = 16;

impl ClientAddress {
    /// The network that is limited as a whole; an IPv4 address belongs to none.
    pub(crate) const fn network(self) -> Option<Network> {
        match self.0 {
            Family::V4(_) => None,
            Family::V6(bits) => Some(Network(bits >> SUBNET_BITS)),
        }
    }

    /// Appends the name of the address in a Redis key: 8 hexadecimal digits, or those of its network and 4 more.
    pub(crate) fn write_key(self, key: &mut Vec<u8>) {
        match self.0 {
            Family::V4(bits) => write_digits(key, &bits.to_be_bytes()),
            Family::V6(bits) => {
                Network(bits >> SUBNET_BITS).write_key(key);
                let [.., high, low] = bits.to_be_bytes();
                write_digits(key, &[high, low]);
            }
        }
    }
}

impl Network {
    /// Appends the name of the network in a Redis key: 12 hexadecimal digits in braces. Redis Cluster chooses the node
    /// of a key by what is in braces, so the key of a network is on one node with those of all its addresses.
    pub(crate) fn write_key(self, key: &mut Vec<u8>) {
        let [_, _, digits @ ..] = self.0.to_be_bytes();
        key.push(b'{');
        write_digits(key, &digits);
        key.push(b'}');
    }
}

fn write_digits(key: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        key.extend([byte >> 4, byte & 15].map(|nibble| DIGITS[usize::from(nibble)]));
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Network(IPv6 /48)")
    }
}

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::from(address),
            IpAddr::V6(address) => Self(Family::V6((address.to_bits() >> 64) as u64)),
        }
    }
}

impl From<Ipv4Addr> for ClientAddress {
    fn from(address: Ipv4Addr) -> Self {
        Self(Family::V4(address.to_bits()))
    }
}

impl From<Ipv6Addr> for ClientAddress {
    fn from(address: Ipv6Addr) -> Self {
        Self::from(IpAddr::V6(address))
    }
}

impl fmt::Debug for ClientAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            Family::V4(_) => "ClientAddress(IPv4)",
            Family::V6(_) => "ClientAddress(IPv6 /64)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> ClientAddress {
        ClientAddress::from(text.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn a_mapped_address_is_the_ipv4_address() {
        assert_eq!(address("::ffff:192.0.2.7"), address("192.0.2.7"));
        assert_ne!(address("::ffff:192.0.2.7"), address("::192.0.2.7"));
    }

    #[test]
    fn an_ipv6_address_counts_by_its_64() {
        assert_eq!(address("2001:db8:1:2::1"), address("2001:db8:1:2:ffff::9"));
        assert_ne!(address("2001:db8:1:2::1"), address("2001:db8:1:3::1"));
    }

    #[test]
    fn keys_of_different_addresses_differ() {
        for (text, expected) in [("192.0.2.7", "c0000207"), ("2001:db8:1:2::1", "{20010db80001}0002")] {
            let mut key = Vec::new();
            address(text).write_key(&mut key);
            assert_eq!(key, expected.as_bytes());
        }
    }

    #[test]
    fn an_ipv6_address_belongs_to_its_48_and_an_ipv4_address_to_no_network() {
        let network = |text| address(text).network();
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:ffff::1"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:2:2::1"));
        assert_eq!(network("192.0.2.7"), None);
        let mut key = Vec::new();
        network("2001:db8:1:2::1").unwrap().write_key(&mut key);
        assert_eq!(key, b"{20010db80001}");
    }

    #[test]
    fn debug_does_not_show_the_address() {
        assert_eq!(format!("{:?}", address("192.0.2.7")), "ClientAddress(IPv4)");
        assert_eq!(format!("{:?}", address("2001:db8::").network()), "Some(Network(IPv6 /48))");
    }
}
