//! Tables in Markdown.

use std::fmt::Write;

use crate::compare::Comparison;
use crate::instructions::InstructionCount;
use crate::latency::LatencyResult;

/// The medians of a comparison, and the ratios to its first target.
pub(crate) fn comparison_table(comparison: &Comparison) -> String {
    let columns = [
        "target",
        "requests/s",
        "server us",
        "redis us",
        "postgres us",
        "bytes",
        "void",
        "requests/s :1",
        "bytes/s :1",
        "server :1",
        "all :1",
    ];
    let mut rows = vec![columns.map(str::to_owned)];
    for target in &comparison.targets {
        let cpu = |role| number(target.cpu_us.get(role).copied(), 1);
        let at_least = if target.is_void { ">= " } else { "" };
        rows.push([
            target.name.to_owned(),
            format!("{at_least}{}", number(target.requests_per_second, 0)),
            cpu("server"),
            cpu("redis"),
            cpu("postgres"),
            number(target.bytes_per_response, 0),
            format!("{}/{}", target.void, target.rounds.len()),
            number(target.ratios.requests_per_second, 2),
            number(target.ratios.bytes_per_second, 2),
            number(target.ratios.server_cpu, 2),
            number(target.ratios.total_cpu, 2),
        ]);
    }
    format!(
        "### {}\n\nMedians of {} rounds of {} s, {} connections.\n\n{}",
        comparison.scenario,
        comparison.rounds,
        comparison.seconds,
        comparison.connections,
        table(&rows)
    )
}

/// The latencies of a scenario.
pub(crate) fn latency_table(result: &LatencyResult) -> String {
    let columns =
        ["target", "p50 ms", "p99 ms", "p99.9 ms", "p99 :1", "accepted", "void", "repeated", "problems"];
    let mut rows = vec![columns.map(str::to_owned)];
    let is_reference_void = result.targets.first().is_some_and(|target| target.is_void);
    for target in &result.targets {
        let marked = |text: String, is_void: bool| if is_void { format!("{text} void") } else { text };
        let milliseconds = |microseconds: Option<f64>| {
            marked(number(microseconds.map(|value| value / 1_000.0), 2), target.is_void)
        };
        rows.push([
            target.name.to_owned(),
            milliseconds(target.p50_us),
            milliseconds(target.p99_us),
            milliseconds(target.p999_us),
            marked(number(target.p99_ratio, 2), target.is_void || is_reference_void),
            format!("{} %", number(target.accepted.map(|share| share * 100.0), 1)),
            format!("{}/{}", target.void, target.rounds.len()),
            target.repeated.to_string(),
            target.problems.to_string(),
        ]);
    }
    format!(
        "### {}\n\n{} requests/s, medians of {} rounds of {} s.\n\n{}",
        result.scenario,
        result.rate,
        result.rounds,
        result.seconds,
        table(&rows)
    )
}

/// The instructions of all scenarios; no table without any.
pub(super) fn instruction_table(counts: &[InstructionCount]) -> Vec<String> {
    let mut rows = vec![["scenario", "target", "instructions"].map(str::to_owned)];
    rows.extend(
        counts.iter().map(|count| {
            [count.scenario.clone(), count.target.to_owned(), number(Some(count.instructions), 0)]
        }),
    );
    if counts.is_empty() { Vec::new() } else { vec![table(&rows)] }
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

/// A table with its columns aligned. The first row is its head.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut table = String::new();
    let widths: Vec<usize> =
        (0..N).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    for (index, row) in rows.iter().enumerate() {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = if column == 0 {
                write!(table, "| {cell:width$} ")
            } else {
                write!(table, "| {cell:>width$} ")
            };
        }
        table.push_str("|\n");
        if index == 0 {
            for width in &widths {
                let _ = write!(table, "|{}", "-".repeat(width + 2));
            }
            table.push_str("|\n");
        }
    }
    table
}
