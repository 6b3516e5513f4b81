//! Verifies responses while they are received, and the numbers of admissions and refusals of each client.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use serde::Serialize;

use crate::scenario::{Received, Request};

/// Admissions of a client in any window.
const LIMIT: u64 = 240;
/// The length of the window in seconds.
const WINDOW: u64 = 60;
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
    /// Admissions and refusals of each client, by group of the limit.
    decisions: BTreeMap<(&'static str, u32), Decisions>,
    /// When the last response was received, counted from the start of the load.
    end: Duration,
}

/// A number of problems, and descriptions of the first ones.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Examples {
    pub(crate) count: u64,
    pub(crate) descriptions: Vec<String>,
}

#[derive(Debug, Default)]
struct Decisions {
    admitted: u64,
    refused: u64,
}

impl Verifier {
    /// A verifier of a load. With `may_reject` the server may respond 503.
    pub(crate) fn new(may_reject: bool) -> Self {
        Self {
            hasher: RandomState::new(),
            checked: HashMap::new(),
            may_reject,
            wrong: Examples::default(),
            decisions: BTreeMap::new(),
            end: Duration::ZERO,
        }
    }

    /// Checks the response to the distinct request `index`, sent by `client`, that was received at `end`.
    pub(crate) fn check(
        &mut self,
        (index, request): (usize, &Request),
        client: u32,
        end: Duration,
        (received, retry_after): (&Received<'_>, &str),
    ) {
        self.end = self.end.max(end);
        let rejected = self.may_reject && received.status == SERVICE_UNAVAILABLE;
        let refused = received.status == TOO_MANY_REQUESTS;
        if !rejected {
            let decisions = self.decisions.entry((request.expected.group(), client)).or_default();
            *(if refused { &mut decisions.refused } else { &mut decisions.admitted }) += 1;
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
        let violations = self.violations();
        (self.wrong, violations)
    }

    /// Clients with more admissions than the windows of the load permit, or with refusals and fewer than one
    /// window permits.
    fn violations(&self) -> Examples {
        let mut violations = Examples::default();
        let permitted = LIMIT * (self.end.as_secs() / WINDOW + 1);
        for ((group, client), decisions) in &self.decisions {
            let Decisions { admitted, refused } = *decisions;
            if admitted > permitted || refused > 0 && admitted < LIMIT {
                let end = self.end;
                violations.add(|| {
                    format!("{group}: client {client}: {admitted} admitted, {refused} refused in {end:.2?}")
                });
            }
        }
        violations
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

#[cfg(test)]
mod tests {
    use chart_index_domain::NoteHash;

    use super::*;
    use crate::scenario::Expected;

    const HASH: NoteHash = NoteHash::from_bytes([1; 32]);

    fn check(verifier: &mut Verifier, status: u16, body: &str, retry_after: &str) {
        let request = Request::new("/api/charts/x".to_owned(), Expected::UnknownChart(HASH));
        let received =
            Received { status, tag: "\"a\"", location: "", body: body.as_bytes(), is_encoded: false };
        verifier.check((0, &request), 1, Duration::ZERO, (&received, retry_after));
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

    #[test]
    fn violations_of_the_limit_are_found() {
        for (admitted, refused, expected) in [(240, 9, 0), (241, 0, 1), (239, 0, 0), (239, 1, 1)] {
            let mut verifier = Verifier::new(false);
            verifier.decisions.insert(("lookup", 7), Decisions { admitted, refused });
            assert_eq!(verifier.violations().count, expected, "{admitted} admitted, {refused} refused");
        }
    }
}
