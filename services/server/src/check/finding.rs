//! What a check finds, and how it is printed.

use std::io::{self, Write};
use std::process::ExitCode;

use chart_index_cli::{escape_controls, escape_controls_in_json};
use serde::Serialize;

/// What is checked, and the section of the documentation about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) document: &'static str,
}

/// How a check ended. The worst is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Outcome {
    Ok,
    /// It works, but not as well as it could, or not for long.
    Warning,
    /// A part of the service does not work.
    Problem,
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    name: &'static str,
    outcome: Outcome,
    text: String,
    document: &'static str,
}

impl Subject {
    pub(super) fn ok(self, text: impl Into<String>) -> Finding {
        self.finding(Outcome::Ok, text.into())
    }

    pub(super) fn warning(self, text: impl Into<String>) -> Finding {
        self.finding(Outcome::Warning, text.into())
    }

    pub(super) fn problem(self, text: impl Into<String>) -> Finding {
        self.finding(Outcome::Problem, text.into())
    }

    const fn finding(self, outcome: Outcome, text: String) -> Finding {
        let Self { name, document } = self;
        Finding { name, outcome, text, document }
    }
}

/// All findings, in the order in which they are printed.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn push(&mut self, finding: Finding) {
        self.0.push(finding);
    }

    pub(super) fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.0.extend(findings);
    }

    /// 1 if there is a problem, else 0.
    pub(super) fn exit_code(&self) -> ExitCode {
        if self.worst() == Outcome::Problem { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    /// Writes one JSON object, or a line for each finding and one with their numbers. Control characters are
    /// escaped: servers send some of the text.
    pub(super) fn print(&self, as_json: bool) -> io::Result<()> {
        let mut output = io::stdout().lock();
        if as_json {
            let object = serde_json::json!({ "outcome": self.worst(), "checks": &self.0 }).to_string();
            return writeln!(output, "{}", escape_controls_in_json(&object));
        }
        for finding in &self.0 {
            writeln!(output, "{}", finding.line())?;
        }
        let count = |outcome| self.0.iter().filter(|finding| finding.outcome == outcome).count();
        let (warnings, problems) = (count(Outcome::Warning), count(Outcome::Problem));
        writeln!(output, "checks: {}, warnings: {warnings}, problems: {problems}", self.0.len())
    }

    fn worst(&self) -> Outcome {
        self.0.iter().map(|finding| finding.outcome).max().unwrap_or(Outcome::Ok)
    }
}

impl Finding {
    fn line(&self) -> String {
        let Self { name, outcome, text, document } = self;
        let text = escape_controls(text);
        match outcome {
            Outcome::Ok => format!("ok       {name}: {text}"),
            Outcome::Warning => format!("warning  {name}: {text} ({document})"),
            Outcome::Problem => format!("problem  {name}: {text} ({document})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBJECT: Subject = Subject { name: "redis", document: "docs/operations/install.md#redis" };

    #[test]
    fn lines_that_are_not_ok_name_the_document() {
        assert_eq!(SUBJECT.ok("7.0").line(), "ok       redis: 7.0");
        let line = SUBJECT.problem("a\u{1b}[2J\nb").line();
        assert_eq!(line, "problem  redis: a\\u{1b}[2J\\nb (docs/operations/install.md#redis)");
    }

    #[test]
    fn only_problems_fail() {
        let mut findings = Findings::default();
        for (finding, worst) in [
            (SUBJECT.ok(""), Outcome::Ok),
            (SUBJECT.problem(""), Outcome::Problem),
            (SUBJECT.warning(""), Outcome::Problem),
        ] {
            findings.push(finding);
            assert_eq!(findings.worst(), worst);
        }
        assert_eq!(findings.exit_code(), ExitCode::FAILURE);
        findings.0.remove(1);
        assert_eq!((findings.worst(), findings.exit_code()), (Outcome::Warning, ExitCode::SUCCESS));
    }
}
