//! What is requested, and the expected responses.

mod expected;
mod paths;

use anyhow::{Result, ensure};
use chart_index_tests::Client;

pub(crate) use expected::{Expected, Received};

use crate::target::{Catalogue, Target};

/// A scenario by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scenario {
    /// Lookups of 1,000 charts that every cache has
    LookupHot,
    /// The same with If-None-Match, whose responses are 304
    LookupNotModified,
    /// Lookups by popularity (Zipf) over all charts of the catalogue
    LookupZipf,
    /// Lookups of charts that no cache has
    LookupMiss,
    /// Lookups of random hashes, which are unknown
    UnknownHashes,
    /// ROX files of about 6 KB
    #[value(name = "rox-6k")]
    Rox6k,
    /// ROX files of about 60 KB
    #[value(name = "rox-60k")]
    Rox60k,
    /// The first page of the list, cached, with and without Accept-Encoding
    ListHot,
    /// Lists by popularity (Zipf) over queries like those of users
    ListZipf,
    /// Lists that no cache has
    ListMiss,
    /// Pages 100 to 1,000 of lists, each of which is different
    DeepPages,
    /// What a page of a Browse site sends: 60 % lookups, 15 % lists, 10 % lookups with If-None-Match, 8 %
    /// details, 5 % ROX files, 2 % redirects
    Browse,
    /// One client that sends a tenth of all requests among 10,000 others
    Abuser,
    /// Twice as many lookups that no cache has as the service can serve
    Overload,
}

/// One request without the address of its client.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The path with its query string.
    pub(crate) path: String,
    /// Headers.
    pub(crate) headers: Vec<(String, String)>,
    /// The expected response.
    pub(crate) expected: Expected,
    /// Whether the request is to have `If-None-Match` with the entity tag of its target.
    pub(crate) is_conditional: bool,
}

/// The requests of a scenario.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests {
    /// Different requests.
    pub(crate) distinct: Vec<Request>,
    /// Which of them are sent, in turn. Empty if each is sent once, in order.
    pub(crate) order: Vec<u32>,
}

/// More than any scenario has. 16 ranges of this size are in 10.0.0.0/8.
const ADDRESSES_PER_ROUND: u32 = 1_000_001;
const ADDRESS_RANGES: u32 = 16;

/// The clients that send the requests of an open loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clients {
    /// The number of the first address.
    pub(crate) first: u32,
    /// Addresses, which send in turn.
    pub(crate) addresses: u32,
    /// One in this number of requests is sent by one more address.
    pub(crate) abuser_one_in: Option<u64>,
}

impl Scenario {
    /// The name on the command line and in reports.
    pub(crate) fn name(self) -> String {
        clap::ValueEnum::to_possible_value(&self)
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The requests to the service on a catalogue. Those that need entity tags get them from the service.
    pub(crate) fn requests(self, catalogue: &Catalogue) -> Result<Requests> {
        let requests = match self {
            Self::LookupHot | Self::Abuser => paths::hot_lookups(catalogue)?,
            Self::LookupNotModified => paths::conditional_lookups(catalogue)?,
            Self::LookupZipf => paths::zipf_lookups(catalogue)?,
            Self::LookupMiss | Self::Overload => paths::all_lookups(catalogue)?,
            Self::UnknownHashes => paths::unknown_hashes(),
            Self::Rox6k => paths::rox_files(catalogue, 6_000)?,
            Self::Rox60k => paths::rox_files(catalogue, 60_000)?,
            Self::ListHot => paths::first_page(),
            Self::ListZipf => paths::zipf_lists(catalogue),
            Self::ListMiss => paths::different_lists(),
            Self::DeepPages => paths::deep_pages(catalogue),
            Self::Browse => paths::browse(catalogue)?,
        };
        ensure!(!requests.distinct.is_empty(), "the catalogue has no charts for {}", self.name());
        Ok(requests)
    }

    /// Whether the responses come from neither cache.
    pub(crate) const fn is_cold(self) -> bool {
        matches!(
            self,
            Self::LookupMiss | Self::ListMiss | Self::UnknownHashes | Self::DeepPages | Self::Overload
        )
    }

    /// Whether lists are requested, which Meilisearch answers if it is installed.
    pub(crate) const fn needs_search(self) -> bool {
        matches!(self, Self::ListHot | Self::ListZipf | Self::ListMiss | Self::DeepPages | Self::Browse)
    }

    /// The clients of an open loop.
    pub(crate) const fn clients(self) -> Clients {
        match self {
            Self::Abuser => Clients { first: 0, addresses: 10_000, abuser_one_in: Some(10) },
            _ => Clients { first: 0, addresses: 1_000_000, abuser_one_in: None },
        }
    }
}

impl Requests {
    /// Requests that are sent once each, in order.
    pub(crate) fn in_order(distinct: Vec<Request>) -> Self {
        Self { distinct, order: Vec::new() }
    }

    /// The index among the distinct requests of the request with this number. The sequence repeats.
    pub(crate) fn index(&self, number: u64) -> usize {
        let length = if self.order.is_empty() { self.distinct.len() } else { self.order.len() };
        let position = usize::try_from(number % length.max(1) as u64).unwrap_or_default();
        self.order.get(position).map_or(position, |index| *index as usize)
    }

    /// The same requests with one more header.
    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        for request in &mut self.distinct {
            request.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// The requests to a target: the conditional ones have the entity tags of its responses.
    pub(crate) async fn for_target(&self, target: &Target) -> Result<Self> {
        let client = Client::new(target.address);
        let mut distinct = Vec::with_capacity(self.distinct.len());
        for (number, request) in self.distinct.iter().enumerate() {
            if request.is_conditional {
                let response =
                    client.get_with(&request.path, &[("x-forwarded-for", &own_address(number))]).await;
                ensure!(response.status == 200, "{}: {}", request.path, response.status);
                distinct.push(request.if_none_match(response.header("etag")));
            } else {
                distinct.push(request.clone());
            }
        }
        if target.has_own_tags {
            for request in &mut distinct {
                request.expected = request.expected.with_any_tag();
            }
        }
        Ok(Self { distinct, order: self.order.clone() })
    }

    /// The requests in the order in which they are sent.
    pub(crate) fn sequence(&self) -> impl Iterator<Item = &Request> {
        let length = if self.order.is_empty() { self.distinct.len() } else { self.order.len() };
        (0..length as u64).filter_map(|number| self.distinct.get(self.index(number)))
    }
}

impl Clients {
    /// Other clients for each round, from 1: the service remembers in memory whom it has refused. The first
    /// range of addresses is left to wrk. A scenario with 1,000,000 clients has the same ones again after 15
    /// rounds.
    pub(crate) fn in_round(self, round: u32) -> Self {
        let clients = self.addresses + 1;
        let rounds = (ADDRESS_RANGES - 1) * ADDRESSES_PER_ROUND / clients;
        Self { first: ADDRESSES_PER_ROUND + round.saturating_sub(1) % rounds * clients, ..self }
    }

    /// The number of the client that sends the request with this number.
    pub(crate) fn number(self, request: u64) -> u32 {
        if self.abuser_one_in.is_some_and(|one_in| request.is_multiple_of(one_in)) {
            return self.first + self.addresses;
        }
        self.first + u32::try_from(request % u64::from(self.addresses.max(1))).unwrap_or_default()
    }
}

/// An address for requests of the harness itself, outside of those of the generators.
pub(crate) fn own_address(number: usize) -> String {
    format!("192.168.{}.{}", number / 200 % 200, number % 200)
}

impl Request {
    /// A request without headers.
    pub(crate) fn new(path: String, expected: Expected) -> Self {
        Self { path, headers: Vec::new(), expected, is_conditional: false }
    }

    /// The same request, to be sent with the entity tag of its target.
    pub(crate) fn conditional(&self) -> Self {
        Self { is_conditional: true, ..self.clone() }
    }

    /// The same request with `If-None-Match`, whose response is 304.
    fn if_none_match(&self, tag: &str) -> Self {
        let headers = vec![("If-None-Match".to_owned(), tag.to_owned())];
        Self { path: self.path.clone(), headers, expected: Expected::NotModified, is_conditional: true }
    }
}
