//! Objects in the bucket: those of removed charts, and those that redirects name.

use chart_index_tests::Response;

use super::reads::{is_slow, lacks_postgres};
use super::{MAX_AGE, describe};
use crate::clients::{Exchange, Request};
use crate::history::History;
use crate::model::Moment;
use crate::operator::{FaultEvent, Scope};

/// Says so if a redirect has led to no object, or to other bytes than its name says.
pub(super) fn wrong_object(history: &History, exchange: &Exchange) -> Option<String> {
    let Request::Object(_, path) = &exchange.request else { return None };
    let is_right = match &exchange.response {
        Ok(Response { status, body, .. }) if *status == 200 => {
            path.ends_with(blake3::hash(body).to_hex().as_str())
        }
        Ok(response) => response.status == 404 && may_be_deleted(history, exchange),
        Err(_) => false,
    };
    (!is_right).then(|| describe(exchange))
}

/// Whether an object may have been deleted, or lost, since it was read which one the file is.
fn may_be_deleted(history: &History, exchange: &Exchange) -> bool {
    let (from, to) = (exchange.start.saturating_sub(MAX_AGE), exchange.end);
    let deletes =
        |words: &str| ["remove", "replace-rox", "objects gc"].iter().any(|verb| words.contains(verb));
    let loses = |fault: &FaultEvent| fault.name.starts_with("LoseObjects") && fault.overlaps(from, to);
    runs(history, from, to, deletes)
        || history.log.faults.iter().any(loses)
        || history.faults(from, to).any(|fault| lacks_postgres(fault, exchange.target))
        || is_slow(history, exchange)
}

/// Whether such a command runs between two moments.
fn runs(history: &History, from: Moment, to: Moment, matches: impl Fn(&str) -> bool) -> bool {
    let mut commands = history.log.commands.iter();
    commands.any(|command| command.start <= to && command.end >= from && matches(&command.words))
}

/// Removals that have succeeded, and after which the objects of their charts were still there.
pub(super) fn left_objects(history: &History) -> Vec<(Moment, String)> {
    let removals = history.log.removed_objects.iter().filter(|removal| {
        // Files that move back at the same time leave their objects, and a reset brings all back.
        let are_moved = runs(history, removal.start, removal.end, |words| words.contains("--to-postgres"));
        let mut faults = history.faults(removal.start, removal.end);
        !removal.left.is_empty() && !are_moved && !faults.any(|fault| fault.scope == Scope::Reset)
    });
    removals.map(|removal| (removal.end, format!("a removal has left {:?}", removal.left))).collect()
}
