//! Verifies responses while they are received, and the limit of requests per client.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use serde::Serialize;

use crate::scenario::{Received, Request};

/// Admissions of a client in any window.
pub(crate) const LIMIT: usize = 240;
/// The length of the window.
pub(crate) const WINDOW: Duration = Duration::from_mins(1);
/// Descriptions of wrong responses that are reported.
const MAX_EXAMPLES: usize = 10;
const TOO_MANY_REQUESTS: u16 = 429;
const SERVICE_UNAVAILABLE: u16 = 503;

/// Checks the responses to the requests of a scenario: the first one to each request by its content, later ones
/// by comparing them with it, since the catalogue does not change.
#[derive(Debug)]
pub(crate) struct Verifier {
    hasher: RandomState,
    /// The hash of the body of each distinct request whose response was checked.
    checked: HashMap<usize, u64>,
    /// Whether 503 is a correct response.
    may_reject: bool,
    wrong: Examples,
    admissions: Admissions,
}

/// A number of problems, and descriptions of the first ones.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Examples {
    pub(crate) count: u64,
    pub(crate) descriptions: Vec<String>,
}

/// When a request was sent and its response received, counted from the start of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) sent: Duration,
    pub(crate) received: Duration,
}

/// Which requests of each client were admitted and which were refused, by group of the limit.
#[derive(Debug, Default)]
pub(crate) struct Admissions {
    by_client: BTreeMap<(&'static str, u32), Vec<(Exchange, bool)>>,
}

impl Verifier {
    /// A verifier of a load. With `may_reject` the server may respond 503.
    pub(crate) fn new(may_reject: bool) -> Self {
        Self {
            hasher: RandomState::new(),
            checked: HashMap::new(),
            may_reject,
            wrong: Examples::default(),
            admissions: Admissions::default(),
        }
    }

    /// Checks the response to the distinct request `index`, sent by `client`.
    pub(crate) fn check(
        &mut self,
        (index, request): (usize, &Request),
        client: u32,
        exchange: Exchange,
        (received, retry_after): (&Received<'_>, &str),
    ) {
        let rejected = self.may_reject && received.status == SERVICE_UNAVAILABLE;
        let refused = received.status == TOO_MANY_REQUESTS;
        if !rejected {
            self.admissions.add(request.expected.group(), client, exchange, !refused);
        }
        if refused && retry_after.parse::<u64>().is_err() {
            self.wrong.add(|| format!("{}: 429 with Retry-After \"{retry_after}\"", request.path));
        }
        if refused || rejected {
            return;
        }
        let hash = self.hasher.hash_one((received.status, received.body));
        match self.checked.get(&index) {
            Some(first) if *first == hash => {}
            Some(_) => {
                let status = received.status;
                self.wrong
                    .add(|| format!("{}: the response {status} differs from the first one", request.path));
            }
            None => match request.expected.check(received) {
                Ok(()) => drop(self.checked.insert(index, hash)),
                Err(error) => self.wrong.add(|| format!("{}: {error:#}", request.path)),
            },
        }
    }

    /// Wrong responses, and violations of the limit.
    pub(crate) fn finish(self) -> (Examples, Examples) {
        (self.wrong, self.admissions.violations())
    }
}

impl Examples {
    /// Counts a problem.
    pub(crate) fn add(&mut self, describe: impl FnOnce() -> String) {
        self.count += 1;
        if self.descriptions.len() < MAX_EXAMPLES {
            self.descriptions.push(describe());
        }
    }

    /// Counts the problems of others, too.
    pub(crate) fn append(&mut self, others: Self) {
        self.count += others.count;
        let room = MAX_EXAMPLES.saturating_sub(self.descriptions.len());
        self.descriptions.extend(others.descriptions.into_iter().take(room));
    }
}

impl Admissions {
    fn add(&mut self, group: &'static str, client: u32, exchange: Exchange, admitted: bool) {
        self.by_client.entry((group, client)).or_default().push((exchange, admitted));
    }

    /// Clients that certainly were admitted too often, or refused although they had room. A request was counted
    /// at some moment between its sending and its response, so only what holds for every such moment is a
    /// violation.
    fn violations(&self) -> Examples {
        let mut violations = Examples::default();
        for ((group, client), exchanges) in &self.by_client {
            let mut admitted: Vec<Exchange> =
                exchanges.iter().filter(|(_, admitted)| *admitted).map(|(exchange, _)| *exchange).collect();
            admitted.sort_unstable_by_key(|exchange| exchange.sent);
            if let Some(over) = admitted.windows(LIMIT + 1).find(|window| certainly_within(window)) {
                let (first, last) = (over[0].sent, over[LIMIT].sent);
                violations.add(|| {
                    format!("{group}: client {client}: {} admitted in {first:.2?} to {last:.2?}", LIMIT + 1)
                });
            }
            for (refused, _) in exchanges.iter().filter(|(_, admitted)| !admitted) {
                let counted = admitted.iter().filter(|admission| may_count(**admission, *refused)).count();
                if counted < LIMIT {
                    let at = refused.sent;
                    violations.add(|| {
                        format!("{group}: client {client}: refused at {at:.2?} after {counted} admissions")
                    });
                }
            }
        }
        violations
    }
}

/// Whether all of these requests were counted within one window, whenever that was.
fn certainly_within(exchanges: &[Exchange]) -> bool {
    let first = exchanges.iter().map(|exchange| exchange.sent).min().unwrap_or_default();
    let last = exchanges.iter().map(|exchange| exchange.received).max().unwrap_or_default();
    last.saturating_sub(first) < WINDOW
}

/// Whether the admission may have been in the window before the refusal.
fn may_count(admission: Exchange, refused: Exchange) -> bool {
    admission.received + WINDOW >= refused.sent && admission.sent <= refused.received
}

#[cfg(test)]
mod tests {
    use chart_index_domain::NoteHash;

    use super::*;
    use crate::scenario::Expected;

    const HASH: NoteHash = NoteHash::from_bytes([1; 32]);

    fn exchange(sent_ms: u64) -> Exchange {
        let sent = Duration::from_millis(sent_ms);
        Exchange { sent, received: sent + Duration::from_millis(1) }
    }

    /// The violations after `admitted` admissions 10 ms apart and one more request.
    fn violations(admitted: u64, last_ms: u64, last_admitted: bool) -> u64 {
        let mut admissions = Admissions::default();
        for number in 0..admitted {
            admissions.add("lookup", 7, exchange(number * 10), true);
        }
        admissions.add("lookup", 7, exchange(last_ms), last_admitted);
        admissions.violations().count
    }

    #[test]
    fn over_admission_is_found() {
        assert_eq!(violations(240, 59_990, true), 1);
        assert_eq!(violations(240, 60_000, true), 0, "the first admission has left the window");
        assert_eq!(violations(239, 59_990, true), 0);
    }

    #[test]
    fn refusal_below_the_limit_is_found() {
        assert_eq!(violations(240, 30_000, false), 0);
        assert_eq!(violations(239, 30_000, false), 1);
        assert_eq!(violations(240, 60_500, false), 1, "the first admissions have left the window");
    }

    #[test]
    fn groups_and_clients_are_counted_apart() {
        let mut admissions = Admissions::default();
        for number in 0..400 {
            admissions.add(if number % 2 == 0 { "lookup" } else { "list" }, 1, exchange(number), true);
            admissions.add("rox", u32::try_from(number % 2).unwrap(), exchange(number), true);
        }
        assert_eq!(admissions.violations().count, 0);
    }

    fn check(verifier: &mut Verifier, status: u16, body: &str, retry_after: &str) {
        let request = Request::new("/api/charts/x".to_owned(), Expected::UnknownChart(HASH));
        let received =
            Received { status, tag: "\"a\"", location: "", body: body.as_bytes(), is_encoded: false };
        verifier.check((0, &request), 1, exchange(0), (&received, retry_after));
    }

    #[test]
    fn wrong_responses_are_found() {
        let right = format!(r#"{{"chartHash":"{HASH}","status":"unknown"}}"#);
        let mut verifier = Verifier::new(false);
        check(&mut verifier, 200, &right, "");
        check(&mut verifier, 200, &right, "");
        assert_eq!(verifier.wrong.count, 0, "{:?}", verifier.wrong);
        check(&mut verifier, 200, &format!("{right} "), "");
        check(&mut verifier, 404, &right, "");
        check(&mut verifier, 503, "", "");
        check(&mut verifier, 429, "", "soon");
        assert_eq!(verifier.wrong.count, 4, "{:?}", verifier.wrong);
    }

    #[test]
    fn first_response_is_checked_by_its_content() {
        let mut verifier = Verifier::new(true);
        check(&mut verifier, 200, r#"{"status":"known"}"#, "");
        check(&mut verifier, 503, "", "");
        assert_eq!(verifier.wrong.count, 1, "{:?}", verifier.wrong);
    }
}
