//! Records responses of every endpoint, to compare two systems.

use std::collections::BTreeMap;
use std::fmt;

use chart_index_tests::{Client, Response};

/// Headers that differ between two responses to the same request: docs/api.md promises no value of them.
const VARIABLE_HEADERS: [&str; 2] = ["date", "x-request-id"];

/// One in this many responses with a tag is requested again with that tag.
const CONDITIONAL: usize = 8;

/// Queries of the chartset list, each with every sort.
const FILTERS: [&str; 22] = [
    "",
    "q=harbour",
    "q=lantern+sig",
    "q=ete",
    "q=夜",
    "q=mapper+3",
    "q=zzzz",
    "q=love",
    "keys=4",
    "keys=5,7",
    "source=alphaSet",
    "source=betaPack",
    "creator=mapper+1",
    "creator=a",
    "bpmMin=120&bpmMax=150",
    "bpmMax=99.5",
    "lengthMin=60.05",
    "lengthMax=64.1",
    "densityMin=0.05",
    "q=static&keys=6",
    "q=garden&source=betaPack&bpmMin=100",
    "keys=4,6&lengthMin=30&creator=mapper",
];
const SORTS: [&str; 10] = [
    "",
    "sort=updated&order=asc",
    "sort=title",
    "sort=title&order=desc",
    "sort=artist&perPage=7&page=2",
    "sort=bpm",
    "sort=length&order=asc&perPage=5",
    "sort=density&perPage=60",
    "sort=relevance",
    "perPage=3&page=11",
];

/// Paths whose responses are errors.
const ERRORS: [&str; 8] = [
    "/api/charts/ABC",
    "/api/charts/12/rox",
    "/api/chartsets?keys=3",
    "/api/chartsets?bpmMin=9&bpmMax=8",
    "/api/chartsets/none",
    "/go/chartset/none",
    "/api/unknown",
    "/",
];

/// A request: its path, and whether it accepts gzip.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    path: String,
    gzip: bool,
    /// `If-None-Match`.
    tag: Option<String>,
}

/// What a client sees of a response.
#[derive(PartialEq, Eq)]
struct Recorded {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

#[derive(PartialEq, Eq)]
pub(crate) struct Responses(BTreeMap<Request, Recorded>);

/// Charts and chartsets to request.
pub(crate) struct Entries {
    /// Note hashes, those of removed charts included.
    pub(crate) hashes: Vec<String>,
    /// Ids, those of removed chartsets included.
    pub(crate) chartsets: Vec<String>,
}

impl Entries {
    /// Chooses up to this many charts and chartsets of a database, evenly, and everything that is removed.
    pub(crate) fn choose(psql: impl Fn(&str) -> String, count: usize) -> Self {
        let column = |table: &str, key: &str, text: &str| {
            let query = format!(
                "SELECT {text} FROM (SELECT *, row_number() OVER (ORDER BY {key}) AS row, count(*) OVER () AS rows
                 FROM (SELECT {key}, removed_at_ms FROM {table}) AS keys) AS numbered
                 WHERE removed_at_ms IS NOT NULL OR row % greatest(rows / {count}, 1) = 0 ORDER BY {key}"
            );
            psql(&query).lines().map(str::to_owned).collect()
        };
        Self {
            hashes: column("charts", "hash", "encode(hash, 'hex')"),
            chartsets: column("chartsets", "id", "id"),
        }
    }

    /// Requests of every kind for these entries.
    fn requests(&self) -> Vec<Request> {
        let lookups = self.hashes.iter().map(|hash| format!("/api/charts/{hash}"));
        let unknown = (0..60).map(|number| format!("/api/charts/{number:064x}"));
        let rox = self.hashes.iter().step_by(2).map(|hash| format!("/api/charts/{hash}/rox"));
        let unknown_rox = (0..20).map(|number| format!("/api/charts/{number:064x}/rox"));
        let details = self.chartsets.iter().map(|id| format!("/api/chartsets/{id}"));
        let redirects = self.chartsets.iter().step_by(2).map(|id| format!("/go/chartset/{id}"));
        let lists =
            FILTERS.iter().flat_map(|filter| SORTS.map(|sort| format!("/api/chartsets?{filter}&{sort}")));
        let paths =
            lookups.chain(unknown).chain(rox).chain(unknown_rox).chain(details).chain(redirects).chain(lists);
        let paths = paths.chain(ERRORS.map(str::to_owned));
        paths.enumerate().map(|(number, path)| Request { path, gzip: number % 3 == 0, tag: None }).collect()
    }
}

impl Responses {
    /// The responses of a replica to requests of every kind, some of them conditional. The catalogue must not
    /// change.
    pub(crate) async fn record(client: &Client, entries: &Entries) -> Self {
        let responses = Self::read(client, entries).await;
        for (request, recorded) in responses.0.iter().filter(|(request, _)| request.tag.is_some()) {
            assert_eq!(recorded.status, 304, "{request:?}");
        }
        responses
    }

    /// The same, while the responses may still change.
    pub(crate) async fn read(client: &Client, entries: &Entries) -> Self {
        let mut responses = BTreeMap::new();
        let mut tagged = Vec::new();
        for request in entries.requests() {
            let response = send(client, &request).await;
            if !response.header("etag").is_empty() {
                tagged.push(Request { tag: Some(response.header("etag").to_owned()), ..request.clone() });
            }
            responses.insert(request, Recorded::from(response));
        }
        for request in tagged.into_iter().step_by(CONDITIONAL) {
            let response = send(client, &request).await;
            responses.insert(request, Recorded::from(response));
        }
        Self(responses)
    }

    /// The number of responses.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The number of responses with each status.
    pub(crate) fn statuses(&self) -> BTreeMap<u16, usize> {
        let mut statuses = BTreeMap::new();
        for recorded in self.0.values() {
            *statuses.entry(recorded.status).or_default() += 1;
        }
        statuses
    }

    /// Fails unless both have the same responses, byte by byte.
    pub(crate) fn assert_equal(&self, other: &Self) {
        assert_eq!(self.count(), other.count(), "the same requests");
        let differing: Vec<_> =
            self.0.iter().filter(|(request, _)| self.0[*request] != other.0[*request]).collect();
        let examples = differing
            .iter()
            .take(3)
            .map(|(request, recorded)| format!("{request:?}\n  {recorded:?}\n  {:?}\n", other.0[*request]));
        assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), examples.collect::<String>());
    }
}

async fn send(client: &Client, request: &Request) -> Response {
    let mut headers = vec![("origin", "https://example.org")];
    headers.extend(request.gzip.then_some(("accept-encoding", "gzip")));
    headers.extend(request.tag.as_deref().map(|tag| ("if-none-match", tag)));
    let response = client.get_with(&request.path, &headers).await;
    assert!(response.status.as_u16() < 500, "{request:?}: {response:?}");
    response
}

impl From<Response> for Recorded {
    fn from(response: Response) -> Self {
        let headers = response.headers.iter().map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let mut headers: Vec<_> =
            headers.filter(|(name, _)| !VARIABLE_HEADERS.contains(&name.as_str())).collect();
        headers.sort_unstable();
        Self { status: response.status.as_u16(), headers, body: response.body }
    }
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = String::from_utf8_lossy(&self.body);
        write!(f, "{} {:?} {body}", self.status, self.headers)
    }
}
