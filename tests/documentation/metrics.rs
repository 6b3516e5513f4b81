//! The tables of docs/operations/metrics.md are those of the programs. `UPDATE_DOCS=1` writes them.

use chart_index_instrumentation::{MetricRow, Metrics};

use super::{check_or_update, read};

const PAGE: &str = "docs/operations/metrics.md";

#[test]
fn page_has_the_tables_of_the_programs() {
    let page = read(PAGE);
    let sections = Metrics::TABLE.chunk_by(|row, next| row.section == next.section);
    let tables = sections.map(|rows| (documented(&page, rows[0].section), generated(rows)));
    check_or_update(PAGE, &tables.collect::<Vec<_>>());
}

/// The first table below a heading.
fn documented<'a>(page: &'a str, section: &str) -> &'a str {
    let (_, section) = page.split_once(&format!("\n## {section}\n")).expect(section);
    let start = section.find("\n|").expect("a table") + 1;
    let end = section[start..].find("\n\n").expect("an empty line") + 1;
    &section[start..start + end]
}

fn generated(rows: &[MetricRow]) -> String {
    let row = |row: &MetricRow| {
        let labels: Vec<_> = row.labels.iter().map(|label| format!("`{label}`")).collect();
        format!("| `{}` | {} | {} | {} |\n", row.name, row.kind, labels.join(", "), row.help)
            .replace("|  |", "| |")
    };
    let head = "| Name | Kind | Labels | Meaning |\n|---|---|---|---|\n";
    head.to_owned() + &rows.iter().map(row).collect::<String>()
}
