//! The client address of a request, whatever the headers contain.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use chart_index_ratelimit::{ClientAddress, TrustedProxies};
use proptest::prelude::*;

const TRUSTED: &str = "10.0.0.0/8, 192.0.2.1, fd00::/8, ::ffff:172.16.0.0/108";

fn proxies() -> TrustedProxies {
    TRUSTED.parse().unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn counted(peer: &str, lines: &[&str]) -> ClientAddress {
    proxies().client_address(ip(peer), lines)
}

#[test]
fn right_most_untrusted_hop_is_the_client() {
    for (peer, lines, expected) in [
        ("203.0.113.9", &[][..], "203.0.113.9"),
        ("10.0.0.1", &[], "10.0.0.1"),
        ("10.0.0.1", &["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", &["1.1.1.1, 198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", &["1.1.1.1, 198.51.100.7, 10.2.3.4 ,192.0.2.1"], "198.51.100.7"),
        ("10.0.0.1", &["1.1.1.1", "198.51.100.7", "10.2.3.4"], "198.51.100.7"),
        ("10.0.0.1", &["1.1.1.1, 198.51.100.7, ", ",,"], "198.51.100.7"),
        ("10.0.0.1", &["10.9.9.9, 10.2.3.4"], "10.9.9.9"),
        ("fd00::1", &["2001:db8::7"], "2001:db8::7"),
        ("172.31.255.255", &["198.51.100.7"], "198.51.100.7"),
        ("172.32.0.0", &["198.51.100.7"], "172.32.0.0"),
    ] {
        assert_eq!(counted(peer, lines), ip(expected).into(), "{peer} {lines:?}");
    }
}

#[test]
fn hop_may_have_a_port_or_brackets_or_be_mapped() {
    for (hop, expected) in [
        ("198.51.100.7:443", "198.51.100.7"),
        ("[2001:db8::7]", "2001:db8::7"),
        ("[2001:db8::7]:8080", "2001:db8::7"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("[::ffff:198.51.100.7]:1", "198.51.100.7"),
        ("\t198.51.100.7 ", "198.51.100.7"),
    ] {
        assert_eq!(counted("10.0.0.1", &[hop]), ip(expected).into(), "{hop}");
        assert_eq!(counted("::ffff:10.0.0.1", &[hop]), ip(expected).into(), "{hop} by a mapped peer");
    }
}

#[test]
fn malformed_hop_ends_the_search() {
    for hop in [
        "unknown",
        "_hidden",
        "1.2.3",
        "1.2.3.4:",
        "1.2.3.4:99999",
        "[1.2.3.4]",
        "[::1",
        "\u{fc}",
        "1.2.3.4 5",
    ] {
        assert_eq!(counted("10.0.0.1", &["1.1.1.1", hop, "10.2.3.4"]), ip("10.2.3.4").into(), "{hop}");
    }
}

#[test]
fn proxies_are_networks_or_addresses() {
    assert_eq!("".parse(), Ok(TrustedProxies::default()));
    assert_eq!(" , ".parse(), Ok(TrustedProxies::default()));
    for malformed in ["10.0.0.0/33", "10.0.0", "proxy.example", "10.0.0.1 10.0.0.2"] {
        let error = malformed.parse::<TrustedProxies>().unwrap_err().to_string();
        assert!(error.contains("TRUSTED_PROXIES") && error.contains(malformed), "{error}");
    }
}

fn any_ip() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).into()),
        any::<u128>().prop_map(|bits| Ipv6Addr::from_bits(bits).into()),
        any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).to_ipv6_mapped().into()),
        trusted_ip(),
    ]
}

fn trusted_ip() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits & 0xff_ffff | 0x0a00_0000).into()),
        any::<u128>().prop_map(|bits| Ipv6Addr::from_bits(bits >> 8 | 0xfd << 120).into()),
    ]
}

fn untrusted_ip() -> impl Strategy<Value = IpAddr> {
    any_ip().prop_filter("untrusted", |ip| {
        // Only an untrusted peer is the client whatever it forwards.
        proxies().client_address(*ip, ["8.8.8.8"]) == (*ip).into() && *ip != Ipv4Addr::new(8, 8, 8, 8)
    })
}

/// An address as proxies write it.
fn written(ip: IpAddr, style: u8) -> String {
    match (ip, style % 3) {
        (IpAddr::V4(ip), 1) => format!("{ip}:4711"),
        (IpAddr::V6(ip), 1) => format!("[{ip}]:4711"),
        (IpAddr::V6(ip), 2) => format!("[{ip}]"),
        (ip, _) => ip.to_string(),
    }
}

proptest! {
    /// A client may send any header. Each trusted proxy appends the address of its peer: the first appends that
    /// of the client, the others those of the proxies.
    #[test]
    fn client_cannot_choose_its_address(
        sent in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..4),
        claimed in prop::collection::vec(any_ip(), 0..4),
        client in untrusted_ip(),
        chain in prop::collection::vec(trusted_ip(), 1..5),
        styles in prop::collection::vec(any::<u8>(), 8),
        split in any::<bool>(),
    ) {
        let mut lines = sent;
        lines.extend(claimed.iter().map(|ip| ip.to_string().into_bytes()));
        let appended = [client].into_iter().chain(chain[..chain.len() - 1].iter().copied());
        for (ip, style) in appended.zip(styles) {
            let hop = written(ip, style).into_bytes();
            match lines.last_mut() {
                Some(line) if !split => line.extend([b",".as_slice(), &hop].concat()),
                _ => lines.push(hop),
            }
        }
        let peer = chain[chain.len() - 1];
        prop_assert_eq!(proxies().client_address(peer, &lines), client.into());
    }

    #[test]
    fn headers_of_an_untrusted_peer_are_ignored(
        peer in untrusted_ip(),
        lines in prop::collection::vec(any_ip().prop_map(|ip| ip.to_string()), 0..4),
    ) {
        prop_assert_eq!(proxies().client_address(peer, &lines), peer.into());
    }

    #[test]
    fn random_bytes_never_panic(
        peer in any_ip(),
        lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8),
    ) {
        let _ = proxies().client_address(peer, &lines);
    }

    /// Bytes that resemble addresses more often than random bytes do.
    #[test]
    fn bytes_like_addresses_never_panic(peer in trusted_ip(), line in "[0-9a-f:.,\\[\\] %]{0,60}") {
        let _ = proxies().client_address(peer, [line]);
    }
}
