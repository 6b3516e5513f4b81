//! Compares the ratings of charts with the meters that their authors gave them.
//!
//! ```text
//! rating-ranks LIBRARY
//! ```
//!
//! Reads the `.sm` and `.ssc` files of a library and prints the rank correlation (Spearman) by key count. A
//! chart that several files have counts once, with the meter of the first file by path.
#![expect(clippy::print_stdout, reason = "a program that prints its measurements")]

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chart_index_chartfile::{ChartFormat, decode};
use walkdir::WalkDir;

/// The charts of a key count: meter and rating.
type Pairs = Vec<(f64, f64)>;

fn main() -> Result<()> {
    let library = PathBuf::from(std::env::args().nth(1).context("usage: rating-ranks LIBRARY")?);
    let (mut pairs, mut unrated, mut seen) = (BTreeMap::<u8, Pairs>::new(), 0, HashSet::new());
    for file in WalkDir::new(&library).sort_by_file_name() {
        for (format, text, meter) in charts(file?.path())? {
            let Ok(decoded) = decode(format, text.as_bytes()) else { continue };
            for chart in decoded.charts.into_iter().filter(|chart| seen.insert(chart.hash)) {
                match chart.analysis.and_then(|analysis| analysis.rating) {
                    Some(rating) => {
                        pairs.entry(chart.numbers.keys.get()).or_default().push((meter, rating.value()));
                    }
                    None => unrated += 1,
                }
            }
        }
    }
    println!("| Keys | Charts | Spearman |\n|---|---|---|");
    for (keys, pairs) in &pairs {
        println!("| {keys} | {} | {:.3} |", pairs.len(), spearman(pairs));
    }
    println!("\n{unrated} charts without a rating");
    Ok(())
}

/// The charts of a simfile, each as a file of its own, with their meters. None for other files.
fn charts(path: &Path) -> Result<Vec<(ChartFormat, String, f64)>> {
    let format = path.to_str().and_then(ChartFormat::from_path);
    let (format, separator) = match format {
        Some(format @ ChartFormat::Sm) => (format, "#NOTES:"),
        Some(format @ ChartFormat::Ssc) => (format, "#NOTEDATA:"),
        _ => return Ok(Vec::new()),
    };
    let bytes = std::fs::read(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut parts = text.split(separator);
    let header = parts.next().unwrap_or_default();
    let chart = |part: &str| Some((format, format!("{header}{separator}{part}"), meter(format, part)?));
    Ok(parts.filter_map(chart).collect())
}

/// The meter of a chart: in `.sm` files the fourth field of `#NOTES`, in `.ssc` files a tag.
fn meter(format: ChartFormat, chart: &str) -> Option<f64> {
    let text = match format {
        ChartFormat::Sm => chart.split(':').nth(3)?,
        _ => chart.split("#METER:").nth(1)?.split(';').next()?,
    };
    text.trim().parse().ok()
}

/// The correlation of the ranks.
fn spearman(pairs: &[(f64, f64)]) -> f64 {
    let (meters, ratings): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (meters, ratings) = (ranks(&meters), ranks(&ratings));
    let covariance = |x: &[f64], y: &[f64]| {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.iter().map(|_| 1.0).sum::<f64>();
        let (mean_x, mean_y) = (mean(x), mean(y));
        x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>()
    };
    covariance(&meters, &ratings) / (covariance(&meters, &meters) * covariance(&ratings, &ratings)).sqrt()
}

/// The rank of each value; equal values have the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let count = |is_counted: &dyn Fn(&f64) -> bool| {
        values.iter().filter(|other| is_counted(other)).map(|_| 1.0).sum::<f64>()
    };
    let rank = |value: &f64| {
        let (less, equal) = (count(&|other| other < value), count(&|other| other.total_cmp(value).is_eq()));
        less + f64::midpoint(equal, 1.0)
    };
    values.iter().map(rank).collect()
}
