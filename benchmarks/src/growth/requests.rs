//! Requests, and the hashes that they ask for.

use std::fmt::Display;
use std::net::Ipv4Addr;

use chart_index_domain::NoteHash;
use fastrand::Rng;

/// The number of different clients.
const CLIENTS: u32 = 1_000_000;

/// How often each chart of a catalogue is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Distribution {
    /// One chart.
    Hot,
    /// A Zipf distribution with exponent 1 over all charts.
    Zipf,
    /// All charts alike.
    Uniform,
}

impl Distribution {
    /// A random place in a list of `count` charts.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "between 1 and the number of charts"
    )]
    fn place(self, count: usize, random: &mut Rng) -> usize {
        match self {
            Self::Hot => 0,
            // The continuous form of the distribution.
            Self::Zipf => ((count as f64).powf(random.f64()) as usize).clamp(1, count) - 1,
            Self::Uniform => random.usize(0..count),
        }
    }

    /// Lookups of random hashes by random clients.
    pub(crate) fn lookups(self, hashes: &[String], count: usize, random: &mut Rng) -> Vec<String> {
        (0..count).map(|_| lookup(&hashes[self.place(hashes.len(), random)], random)).collect()
    }
}

/// A lookup by a random client.
pub(crate) fn lookup(hash: &str, random: &mut Rng) -> String {
    get(&format!("/api/charts/{hash}"), "", random)
}

/// A request by a random client, with further header lines.
pub(crate) fn get(path: &str, headers: &str, random: &mut Rng) -> String {
    get_as(path, headers, client(random.u32(0..CLIENTS)))
}

/// A request by this client.
pub(crate) fn get_as(path: &str, headers: &str, client: impl Display) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {client}\r\n{headers}\r\n")
}

/// The address of a client: one of 10.0.0.0/8.
pub(crate) fn client(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 | number & 0x00ff_ffff)
}

/// The hash of no chart.
pub(crate) fn unknown_hash(random: &mut Rng) -> String {
    let mut bytes = [0; 32];
    random.fill(&mut bytes);
    NoteHash::from_bytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_the_distribution() {
        let mut random = Rng::with_seed(1);
        let mut share_of_first_tenth = |distribution: Distribution| {
            let places = (0..10_000).map(|_| distribution.place(1_000, &mut random));
            places.filter(|place| *place < 100).count()
        };
        assert_eq!(share_of_first_tenth(Distribution::Hot), 10_000);
        // ln 100 / ln 1000 of the requests.
        assert!((6_300..7_000).contains(&share_of_first_tenth(Distribution::Zipf)));
        assert!((900..1_100).contains(&share_of_first_tenth(Distribution::Uniform)));
    }

    #[test]
    fn heads_are_complete() {
        let request = get_as("/api/chartsets", "Accept-Encoding: gzip\r\n", client(0x0102_0304));
        let expected = "GET /api/chartsets HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 10.2.3.4\r\nAccept-Encoding: gzip\r\n\r\n";
        assert_eq!(request, expected);
    }
}
