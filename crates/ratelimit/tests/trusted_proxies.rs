//! Whom a request is counted for, whatever is sent.

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
fn the_right_most_untrusted_hop_counts() {
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
fn a_hop_may_have_a_port_or_brackets_or_be_mapped() {
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
fn a_malformed_hop_ends_the_search_at_the_proxy_that_passed_it_on() {
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
fn a_list_of_proxies_is_networks_or_addresses() {
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
        // As a peer it counts for itself, whatever it forwards, only if it is untrusted.
        proxies().client_address(*ip, ["8.8.8.8"]) == (*ip).into() && *ip != Ipv4Addr::new(8, 8, 8, 8)
    })
}

/// An address as some proxy writes it.
fn written(ip: IpAddr, style: u8) -> String {
    match (ip, style % 3) {
        (IpAddr::V4(ip), 1) => format!("{ip}:4711"),
        (IpAddr::V6(ip), 1) => format!("[{ip}]:4711"),
        (IpAddr::V6(ip), 2) => format!("[{ip}]"),
        (ip, _) => ip.to_string(),
    }
}

proptest! {
    /// The client may write what it wants into the header: each trusted proxy appends the peer that it sees, so the
    /// first of them appends the client's own address, and the others the proxies.
    #[test]
    fn what_a_client_sends_through_trusted_proxies_changes_nothing(
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
    fn the_headers_of_an_untrusted_peer_are_ignored(
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

    /// Bytes that look like addresses more often than random ones do.
    #[test]
    fn almost_addresses_never_panic(peer in trusted_ip(), line in "[0-9a-f:.,\\[\\] %]{0,60}") {
        let _ = proxies().client_address(peer, [line]);
    }
}
