//! The report as Markdown tables.

use std::fmt::{self, Write};

use crate::Report;
use crate::lookups::Figures;

/// Renders a report.
pub(crate) fn markdown(report: &Report) -> Result<String, fmt::Error> {
    let mut text = String::new();
    writeln!(text, "{}\n", report.machine.join("; "))?;
    sizes(&mut text, report)?;
    lookups(&mut text, report)?;
    lists(&mut text, report)?;
    classes(&mut text, report)?;
    memory(&mut text, report)?;
    projections(&mut text, report)?;
    for missing in &report.not_measured {
        writeln!(text, "Not measured: {missing}.")?;
    }
    Ok(text)
}

fn table(text: &mut String, heading: &str, columns: &[&str]) -> fmt::Result {
    writeln!(text, "## {heading}\n\n| {} |", columns.join(" | "))?;
    writeln!(text, "|{}", "---|".repeat(columns.len()))
}

fn sizes(text: &mut String, report: &Report) -> fmt::Result {
    let columns =
        ["Chartsets", "Charts", "Database", "Filled in", "Replica: started", "served", "cache full", "peak"];
    table(text, "Sizes", &columns)?;
    for stage in &report.stages {
        let memory = &stage.replica;
        let [started, served, full, peak] =
            [memory.started, memory.served, memory.full, memory.peak].map(megabytes);
        let (gigabytes, seconds) = (stage.gigabytes(), stage.fill_seconds);
        writeln!(
            text,
            "| {} | {} | {gigabytes:.2} GB | {seconds:.0} s | {started:.0} MB | {served:.0} MB | {full:.0} MB | {peak:.0} MB |",
            stage.chartsets, memory.charts
        )?;
    }
    writeln!(text)
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a process")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn lookups(text: &mut String, report: &Report) -> fmt::Result {
    let columns = [
        "Lookups",
        "Charts",
        "p50",
        "to the smallest",
        "chart-index",
        "to the smallest",
        "Redis",
        "PostgreSQL",
        "per second",
    ];
    table(text, "Lookups", &columns)?;
    for row in report.stages.iter().flat_map(|stage| &stage.lookups) {
        let ratio = |of: fn(&Figures) -> f64| {
            row.reference
                .as_ref()
                .map_or_else(String::new, |reference| format!("{:.2}", of(&row.figures) / of(reference)))
        };
        let Figures { p50_us, cost, per_second } = row.figures;
        writeln!(
            text,
            "| {} | {} | {p50_us:.0} µs | {} | {:.1} µs | {} | {:.1} µs | {:.1} µs | {per_second:.0} |",
            row.case,
            row.charts,
            ratio(|figures| figures.p50_us),
            cost.service,
            ratio(|figures| figures.cost.service),
            cost.redis,
            cost.postgres
        )?;
    }
    writeln!(text)
}

fn lists(text: &mut String, report: &Report) -> fmt::Result {
    let columns =
        ["Lists by", "Chartsets", "", "p50", "Slowest", "chart-index", "PostgreSQL", "Meilisearch", "Failed"];
    table(text, "Lists that are not cached", &columns)?;
    for row in report.stages.iter().flat_map(|stage| &stage.lists) {
        let total = if row.total_cached { "total cached" } else { "first read" };
        let [service, postgres, meilisearch] = [row.cost.service, row.cost.postgres, row.cost.meilisearch]
            .map(|microseconds| microseconds / 1e3);
        writeln!(
            text,
            "| {} | {} | {total} | {:.1} ms | {:.1} ms, `{}` | {service:.2} ms | {postgres:.2} ms | {meilisearch:.2} ms | {} |",
            row.engine, row.chartsets, row.p50_ms, row.slowest_ms, row.slowest, row.failed
        )?;
    }
    writeln!(text)
}

fn classes(text: &mut String, report: &Report) -> fmt::Result {
    let columns = ["Requests", "chart-index", "Redis", "PostgreSQL", "Meilisearch", "per second"];
    table(text, "CPU-seconds per 1,000 requests", &columns)?;
    for row in &report.classes {
        let [service, redis, postgres, meilisearch] =
            [row.cost.service, row.cost.redis, row.cost.postgres, row.cost.meilisearch]
                .map(|each| each / 1e3);
        let rate = row.per_second.map_or("one at a time".into(), |rate| format!("{rate:.0}"));
        writeln!(
            text,
            "| {} | {service:.4} | {redis:.4} | {postgres:.4} | {meilisearch:.4} | {rate} |",
            row.class
        )?;
    }
    writeln!(text)
}

fn memory(text: &mut String, report: &Report) -> fmt::Result {
    let (Some(entries), Some(redis)) = (&report.entries, &report.redis) else { return Ok(()) };
    table(text, "Bytes", &["Of", "Bytes"])?;
    let rows = [
        ("a cached lookup in a replica", entries.known),
        ("a cached unknown hash in a replica", entries.unknown),
        ("a cached lookup in Redis", redis.entry),
    ];
    for (name, bytes) in rows {
        writeln!(text, "| {name} | {bytes:.0} |")?;
    }
    for (admissions, ipv4, ipv6) in &redis.addresses {
        writeln!(text, "| an address in Redis after {admissions} requests, IPv4 | {ipv4:.0} |")?;
        writeln!(text, "| the same, an IPv6 /64 with its /48 | {ipv6:.0} |")?;
    }
    writeln!(text)
}

fn projections(text: &mut String, report: &Report) -> fmt::Result {
    if let Some(rate) = &report.rate {
        let columns = ["Server", "Cores at 50,000 requests per second", "Requests per second and core"];
        table(text, "Projection by rate", &columns)?;
        for (server, cores, per_core) in &rate.servers {
            writeln!(text, "| {server} | {cores:.2} | {per_core:.0} |")?;
        }
        let mix: Vec<_> = rate.mix.iter().map(|(class, share)| format!("{share} {class}")).collect();
        writeln!(text, "\nOf 1,000 requests: {}.\n", mix.join("; "))?;
    }
    let [.., before, last] = report.stages.as_slice() else { return Ok(()) };
    let [before, last] = [before, last].map(|stage| format!("{} charts", stage.charts()));
    table(text, "Projection by size", &["", &before, &last, "10 million charts"])?;
    for row in &report.size {
        writeln!(text, "| {} | {:.2} | {:.2} | {:.2} |", row.quantity, row.before, row.last, row.projected)?;
    }
    writeln!(text)
}
