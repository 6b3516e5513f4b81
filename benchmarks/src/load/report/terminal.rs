//! Tables in the terminal.

use std::fmt::Write;

use crate::compare::Comparison;
use crate::latency::LatencyResult;

/// The medians of a comparison, and the ratios to its first target, as a table in Markdown.
pub(crate) fn comparison_table(comparison: &Comparison) -> String {
    let mut table = format!(
        "{}: medians of {} rounds of {} s, {} connections\n\n",
        comparison.scenario, comparison.rounds, comparison.seconds, comparison.connections,
    );
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
        rows.push([
            target.name.to_owned(),
            at_least(target.is_void, number(target.requests_per_second, 0)),
            cpu("server"),
            cpu("redis"),
            cpu("postgres"),
            number(target.bytes_per_response, 0),
            target.void.to_string(),
            number(target.ratios.requests_per_second, 2),
            number(target.ratios.bytes_per_second, 2),
            number(target.ratios.server_cpu, 2),
            number(target.ratios.total_cpu, 2),
        ]);
    }
    align(&rows, &mut table);
    table
}

/// The latencies of a scenario, as a table in Markdown.
pub(crate) fn latency_table(result: &LatencyResult) -> String {
    let mut table = format!(
        "{}: {} requests/s for {} s, latencies in ms from the intended start, medians of the rounds\n\n",
        result.scenario, result.rate, result.seconds
    );
    let columns = ["target", "p50", "p99", "p99.9", "p99 :1", "void", "repeated", "problems"];
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
            target.void.to_string(),
            target.repeated.to_string(),
            target.problems.to_string(),
        ]);
    }
    align(&rows, &mut table);
    table
}

fn at_least(is_lower_bound: bool, number: String) -> String {
    if is_lower_bound { format!(">= {number}") } else { number }
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

fn align<const N: usize>(rows: &[[String; N]], table: &mut String) {
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
}
