//! Client addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use chart_index_domain::hex;

/// The address that a request is counted for: an IPv4 address, or the /64 of an IPv6 address (docs/api.md,
/// "Rate limits").
///
/// An IPv4-mapped IPv6 address is the IPv4 address. Providers assign a /64 to one customer, who could otherwise
/// use any of 2^64 addresses. Addresses must not be logged: `Debug` shows the family only, and there is no
/// `Display`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientAddress(Family);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Family {
    V4(u32),
    /// The upper 64 bits.
    V6(u64),
}

/// An IPv6 /48, which providers assign to one site. It contains 65,536 client addresses, and has a limit of its
/// own (docs/api.md, "Rate limits").
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network(u64);

const SUBNET_BITS: u32 = 16;

/// The hash tags of the buckets. Redis Cluster chooses the node of a key by its hash tag, and the keys of a
/// call of the script must have the same.
///
/// Their slots are evenly spaced, so that nodes with equally many slots have equally many buckets, give or take
/// one (decision 0067).
const HASH_TAGS: [&str; 24] = [
    "sg", "bq", "ps", "ei", "wk", "ye", "md", "ss", "aq", "tk", "fi", "hg", "mg", "ci", "qk", "dq", "vs",
    "hd", "sd", "rk", "oh", "us", "gq", "yf",
];

/// The bucket of clients whose checks may be sent in one call: by IPv4 address or by IPv6 /48.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bucket(usize);

impl Bucket {
    fn of(client: u64) -> Self {
        // The upper bits of a product with 2^64 divided by the golden ratio: neighbours are in different ones.
        let hash = client.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        Self(((hash * HASH_TAGS.len() as u64) >> 32) as usize)
    }

    /// Appends the hash tag of the bucket to a Redis key.
    fn write_key(self, key: &mut String) {
        key.push('{');
        key.push_str(HASH_TAGS[self.0]);
        key.push('}');
    }
}

impl ClientAddress {
    /// The network of the address; `None` for IPv4.
    #[must_use]
    pub const fn network(self) -> Option<Network> {
        match self.0 {
            Family::V4(_) => None,
            Family::V6(bits) => Some(Network(bits >> SUBNET_BITS)),
        }
    }

    /// The bucket of the address, which is that of its network.
    pub(crate) fn bucket(self) -> Bucket {
        match self.0 {
            Family::V4(bits) => Bucket::of(bits.into()),
            Family::V6(bits) => Bucket::of(bits >> SUBNET_BITS),
        }
    }

    /// Appends the address to a Redis key: the hash tag of its bucket and 8 hexadecimal digits, or its network
    /// and 4 more digits.
    pub(crate) fn write_key(self, key: &mut String) {
        match self.0 {
            Family::V4(bits) => {
                self.bucket().write_key(key);
                hex::push(key, &bits.to_be_bytes());
            }
            Family::V6(bits) => {
                Network(bits >> SUBNET_BITS).write_key(key);
                let [.., high, low] = bits.to_be_bytes();
                hex::push(key, &[high, low]);
            }
        }
    }
}

impl Network {
    /// Appends the network to a Redis key: the hash tag of its bucket and 12 hexadecimal digits.
    pub(crate) fn write_key(self, key: &mut String) {
        Bucket::of(self.0).write_key(key);
        let [_, _, digits @ ..] = self.0.to_be_bytes();
        hex::push(key, &digits);
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
    fn mapped_address_is_the_ipv4_address() {
        assert_eq!(address("::ffff:192.0.2.7"), address("192.0.2.7"));
        assert_ne!(address("::ffff:192.0.2.7"), address("::192.0.2.7"));
    }

    #[test]
    fn ipv6_addresses_of_a_64_are_equal() {
        assert_eq!(address("2001:db8:1:2::1"), address("2001:db8:1:2:ffff::9"));
        assert_ne!(address("2001:db8:1:2::1"), address("2001:db8:1:3::1"));
    }

    #[test]
    fn keys_of_different_addresses_differ() {
        for (text, expected) in [("192.0.2.7", "{us}c0000207"), ("2001:db8:1:2::1", "{aq}20010db800010002")] {
            let mut key = String::new();
            address(text).write_key(&mut key);
            assert_eq!(key, expected);
        }
    }

    #[test]
    fn only_ipv6_addresses_have_a_network() {
        let network = |text| address(text).network();
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:ffff::1"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:2:2::1"));
        assert_eq!(network("192.0.2.7"), None);
        let mut key = String::new();
        network("2001:db8:1:2::1").unwrap().write_key(&mut key);
        assert_eq!(key, "{aq}20010db80001");
    }

    #[test]
    fn addresses_are_spread_over_the_buckets() {
        let mut addresses = [0; HASH_TAGS.len()];
        for number in 0..2_400 {
            addresses[ClientAddress(Family::V4(0x0a00_0000 + number)).bucket().0] += 1;
        }
        assert!(addresses.iter().all(|number| (90..=110).contains(number)), "{addresses:?}");
    }

    #[test]
    fn debug_does_not_show_the_address() {
        assert_eq!(format!("{:?}", address("192.0.2.7")), "ClientAddress(IPv4)");
        assert_eq!(format!("{:?}", address("2001:db8::").network()), "Some(Network(IPv6 /48))");
    }
}
