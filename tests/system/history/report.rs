//! Reports of histories, and the search for a shorter one that fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use crate::checks::{self, Check, Violation};
use crate::history::{self, History, Options};
use crate::model::Moment;
use crate::plan::Step;

/// Violations of each check that are printed.
const EXAMPLES: usize = 3;
/// Events this long before a violation are printed.
const CONTEXT: Duration = Duration::from_secs(10);
/// Histories that are run to find a shorter one.
const TRIES: usize = 10;

/// The checks with violations.
pub(crate) fn violated(violations: &[Violation]) -> BTreeSet<Check> {
    violations.iter().map(|violation| violation.check).collect()
}

pub(crate) fn print(options: &Options, history: &History, violations: &[Violation]) {
    let recorded = &history.recorded;
    println!(
        "seed {}: {} commands, {} faults, {} responses, {} walks, {} states of the mirror, recovery in {:.1?}, {} violations",
        options.seed,
        history.log.commands.len(),
        history.log.faults.len(),
        recorded.exchanges.len(),
        recorded.walks.len(),
        history.mirror.states.len(),
        history.ending.recovery,
        violations.len(),
    );
    for fault in &history.log.faults {
        println!("  {:.3?} to {:.3?}: {}", fault.start, fault.end.unwrap_or_default(), fault.name);
    }
    let mut by_check: BTreeMap<_, Vec<&Violation>> = BTreeMap::new();
    for violation in violations {
        by_check.entry(violation.check).or_default().push(violation);
    }
    for (check, violations) in by_check {
        println!("  {check:?}: {}", violations.len());
        for violation in violations.iter().take(EXAMPLES) {
            println!("    at {:.3?}: {}", violation.moment, violation.text);
        }
        print_events(history, violations[0].moment);
    }
}

/// Writes what clients received to a file.
pub(crate) fn write_responses(folder: &Path, history: &History) {
    let lines: String =
        history.recorded.exchanges.iter().map(|exchange| checks::describe(exchange) + "\n").collect();
    std::fs::write(folder.join("responses.log"), lines).expect("a file");
}

/// Prints what happened before a moment.
fn print_events(history: &History, moment: Moment) {
    let from = moment.saturating_sub(CONTEXT);
    let mut events: Vec<(Moment, String)> = Vec::new();
    for command in
        history.log.commands.iter().filter(|command| command.start <= moment && command.end >= from)
    {
        let text = format!("to {:.3?}: {} {:?}", command.end, command.words, command.outcome);
        events.push((command.start, text));
    }
    for fault in history
        .log
        .faults
        .iter()
        .filter(|fault| fault.start <= moment && fault.end.is_none_or(|end| end >= from))
    {
        events.push((fault.start, format!("to {:.3?}: {}", fault.end.unwrap_or_default(), fault.name)));
    }
    events.sort();
    for (start, text) in events {
        println!("      {start:.3?} {text}");
    }
}

/// Looks for a shorter history that violates one of the checks, and prints its steps: tries to leave out
/// halves, then quarters, and so on.
pub(crate) fn shrink(options: &Options, performed: Vec<Step>, checks: &BTreeSet<Check>) {
    let mut shortest = performed;
    let (mut parts, mut part) = (2, 0);
    for number in 1..=TRIES {
        let size = shortest.len().div_ceil(parts);
        if shortest.len() < 2 {
            break;
        }
        let kept = shortest.iter().enumerate().filter(|(index, _)| index / size != part);
        let candidate: Vec<_> = kept.map(|(_, step)| step.clone()).collect();
        let found = violated(&checks::check(&history::run(options, &candidate)));
        println!("  try {number}: {} steps: {found:?}", candidate.len());
        if found.is_disjoint(checks) {
            part += 1;
        } else {
            (shortest, part) = (candidate, 0);
        }
        if part == parts {
            (parts, part) = (parts * 2, 0);
        }
    }
    println!("  {} steps fail:", shortest.len());
    for step in &shortest {
        println!("    {:?} after {:?}: {:?}", step.actor, step.pause, step.action);
    }
}
