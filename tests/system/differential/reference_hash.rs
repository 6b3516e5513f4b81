//! Rules 1 to 5 of docs/formats/note-hash.md, for times in floating point.

use std::collections::BTreeSet;

/// A note of another reader.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReferenceNote {
    pub(crate) start_us: f64,
    pub(crate) column: u8,
    pub(crate) end_us: Option<f64>,
}

/// Sums of a few hundred doubles up to an hour are exact to a millionth of a microsecond.
const ERROR_US: f64 = 1e-3;

/// At most 64 combinations are tried.
const MAX_HASHES: usize = 64;

/// Why there is no note hash where there are more.
pub(crate) const UNDECIDED: &str = "undecided";

/// The note hashes that a chart may have: a time whose distance to the middle of two microseconds is within the
/// error of the arithmetic may be either.
pub(crate) fn hashes(keys: u8, notes: &[ReferenceNote]) -> Result<BTreeSet<String>, &'static str> {
    if notes.is_empty() || !(4..=7).contains(&keys) || notes.iter().any(|note| note.column >= keys) {
        return Err("no chart");
    }
    let earliest = |index: usize| notes.iter().map(|note| microseconds(note.start_us)[index]).min();
    let firsts: BTreeSet<i64> = [earliest(0), earliest(1)].into_iter().flatten().collect();
    let mut hashes = BTreeSet::new();
    for first in firsts {
        for charts in combinations(notes, first)? {
            hashes.insert(hash(keys, charts));
        }
    }
    Ok(hashes)
}

/// The two microseconds that a time may be; most times have one.
#[expect(clippy::cast_possible_truncation, reason = "times of charts are hours")]
fn microseconds(time_us: f64) -> [i64; 2] {
    [(time_us - ERROR_US).round() as i64, (time_us + ERROR_US).round() as i64]
}

/// Start and end in milliseconds, column, and whether it is a long note, in the order of rule 4.
type Millis = (i64, u8, Option<i64>);

fn combinations(notes: &[ReferenceNote], first: i64) -> Result<Vec<Vec<Millis>>, &'static str> {
    let millis = |time_us: f64| microseconds(time_us).map(|time| (time - first + 500).div_euclid(1000));
    let mut charts: Vec<Vec<Millis>> = vec![Vec::new()];
    for note in notes {
        let starts = BTreeSet::from(millis(note.start_us));
        let ends = note.end_us.map(|end_us| BTreeSet::from(millis(end_us)));
        let mut possible = Vec::new();
        for start in starts {
            match &ends {
                None => possible.push((start, note.column, None)),
                Some(ends) => {
                    possible.extend(
                        ends.iter().map(|end| (start, note.column, Some(*end).filter(|end| *end > start))),
                    );
                }
            }
        }
        if let [only] = possible[..] {
            for chart in &mut charts {
                chart.push(only);
            }
        } else {
            charts = charts
                .iter()
                .flat_map(|chart| possible.iter().map(|one| [&chart[..], &[*one]].concat()))
                .collect();
        }
        if charts.len() > MAX_HASHES {
            return Err(UNDECIDED);
        }
    }
    Ok(charts)
}

fn hash(keys: u8, mut notes: Vec<Millis>) -> String {
    // A tap, which has no end, is before a long note.
    notes.sort_unstable();
    let mut bytes = vec![keys];
    for (start, column, end) in notes {
        bytes.extend(milliseconds(start));
        bytes.extend([column, u8::from(end.is_some())]);
        bytes.extend(end.into_iter().flat_map(milliseconds));
    }
    blake3::hash(&bytes).to_hex().to_string()
}

fn milliseconds(time: i64) -> [u8; 4] {
    u32::try_from(time).expect("a time of a chart").to_le_bytes()
}
