//! Conversions of a chart keep its variant (docs/formats/variant.md): simulated ones, and those of the
//! decoder's own writers. Both for the samples, and for real charts where there are some.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use chart_index_chartfile::{ChartFormat, decode};
use chart_index_domain::{NoteHash, Rows, Variant};
use chart_index_rox::{CanonicalNotes, TimedNote};
use rox::codec::{Decoder, Encoder};
use rox::formats::{OsuEncoder, QuaEncoder, RoxNativeCodec, SmEncoder};
use rox::{NoteType, RoxChart, RoxResult};

use crate::corpus::{corpus, must_be_refused};
use crate::support::{chart_files, decode_file, workspace_root};

/// The least number of conversions in a thousand that keep the variant.
const MIN_SURVIVAL: usize = 998;

/// A chart of a library.
struct Chart {
    name: String,
    hash: NoteHash,
    variant: Option<Variant>,
    roll_variants: Vec<Variant>,
    decoded: RoxChart,
}

impl Chart {
    fn notes(&self) -> Vec<TimedNote> {
        let timed = |note: &rox::Note| {
            let is_long = matches!(note.note_type, NoteType::Hold { .. });
            TimedNote {
                start_us: note.time_us,
                column: note.column,
                end_us: is_long.then(|| note.end_time_us()),
            }
        };
        self.decoded.notes.iter().map(timed).collect()
    }

    fn rows(&self) -> Rows {
        let notes = canonical(self.decoded.key_count, &self.notes());
        Rows::new(notes.keys(), notes.notes().iter().map(|note| (note.start_ms, note.column)))
    }
}

fn canonical(keys: u8, notes: &[TimedNote]) -> CanonicalNotes {
    CanonicalNotes::new(keys, notes).expect("a valid chart")
}

/// The charts of all files below a folder, each note hash once.
fn charts(root: &Path) -> Vec<Chart> {
    let (mut charts, mut seen) = (Vec::new(), HashSet::new());
    for path in chart_files(root).into_iter().filter(|path| !must_be_refused(path)) {
        let file =
            decode_file(&root.join(&path)).unwrap_or_else(|refusal| panic!("{}: {refusal}", path.display()));
        for chart in file.charts.into_iter().filter(|chart| seen.insert(chart.hash)) {
            let decoded = RoxNativeCodec::decode(&chart.rox.expect("a ROX file")).expect("a chart");
            charts.push(Chart {
                name: format!("{}: {}", path.display(), chart.metadata.difficulty),
                hash: chart.hash,
                variant: chart.variant,
                roll_variants: chart.aliases.roll_variants,
                decoded,
            });
        }
    }
    assert!(!charts.is_empty(), "no charts in {}", root.display());
    charts
}

fn samples() -> Vec<Chart> {
    charts(&workspace_root().join("samples"))
}

/// How many conversions of a kind, and those that change the variant.
#[derive(Default)]
struct Survival {
    count: usize,
    changed: Vec<String>,
    /// Those that also keep the note hash.
    same_hash: usize,
}

/// Prints the survival by kind, for `--show-output`, and checks that of all.
fn check(kinds: &BTreeMap<String, Survival>) {
    let (mut count, mut changed) = (0, 0);
    for (kind, survival) in kinds {
        println!(
            "{kind}: variant {} of {}, note hash {}",
            survival.count - survival.changed.len(),
            survival.count,
            survival.same_hash
        );
        for name in &survival.changed {
            println!("    {name}");
        }
        count += survival.count;
        changed += survival.changed.len();
    }
    println!("all: {} of {count}", count - changed);
    assert!(count > 0 && 1000 * (count - changed) >= MIN_SURVIVAL * count, "{changed} of {count} changed");
}

fn round_to_ms(time_us: i64) -> i64 {
    (time_us + 500).div_euclid(1000) * 1000
}

fn truncate_to_ms(time_us: i64) -> i64 {
    time_us.div_euclid(1000) * 1000
}

/// The notes with their times converted, and with ends that are not before their starts.
fn with_times(notes: &[TimedNote], time: impl Fn(i64) -> i64) -> Vec<TimedNote> {
    let convert = |note: &TimedNote| TimedNote {
        start_us: time(note.start_us),
        end_us: note.end_us.map(&time),
        ..*note
    };
    notes.iter().map(convert).collect()
}

/// What converters do to notes, by name.
fn conversions(notes: &[TimedNote]) -> Vec<(String, Vec<TimedNote>)> {
    let mut converted = vec![
        ("rounded to ms".to_owned(), with_times(notes, round_to_ms)),
        ("truncated to ms".to_owned(), with_times(notes, truncate_to_ms)),
    ];
    for shift_us in [250, 333, 500, 12_777] {
        let name = |method| format!("offset shifted by {shift_us} us, {method}");
        converted.push((name("rounded"), with_times(notes, |time_us| round_to_ms(time_us + shift_us))));
        converted.push((name("truncated"), with_times(notes, |time_us| truncate_to_ms(time_us + shift_us))));
    }
    for percent in [80, 90, 110, 125, 150] {
        let rate = |time_us: i64| round_to_ms((100 * time_us).div_euclid(percent));
        converted.push((format!("rate {percent} %, rounded"), with_times(notes, rate)));
    }
    // Notes that follow each other are moved differently.
    let (mut moved, mut ends) = (notes.to_vec(), notes.to_vec());
    for (index, (moved, ends)) in (0_i64..).zip(moved.iter_mut().zip(&mut ends)) {
        let by_us = |most_ms: i64| (index * 37 % (2 * most_ms + 1) - most_ms) * 1000;
        moved.start_us += by_us(1);
        ends.end_us = ends.end_us.map(|end_us| end_us + by_us(30));
    }
    converted.push(("each note moved by up to 1 ms".to_owned(), moved));
    converted.push(("ends of long notes moved by up to 30 ms".to_owned(), ends));
    converted
}

fn check_conversions(charts: &[Chart]) {
    let mut kinds: BTreeMap<String, Survival> = BTreeMap::new();
    for chart in charts.iter().filter(|chart| chart.variant.is_some()) {
        for (kind, notes) in conversions(&chart.notes()) {
            let converted = canonical(chart.decoded.key_count, &notes);
            let survival = kinds.entry(kind).or_default();
            survival.count += 1;
            survival.same_hash += usize::from(converted.hash() == chart.hash);
            if converted.rows().variant() != chart.variant {
                survival.changed.push(chart.name.clone());
            }
        }
    }
    check(&kinds);
}

type Writer = fn(&RoxChart) -> RoxResult<String>;

/// The writers of the ROX library, and the key counts that their formats have.
const WRITERS: [(ChartFormat, Writer, &[u8]); 3] = [
    (ChartFormat::Osu, OsuEncoder::encode_to_string, &[4, 5, 6, 7]),
    (ChartFormat::Qua, write_qua, &[4, 7]),
    (ChartFormat::Sm, SmEncoder::encode_to_string, &[4, 6]),
];

/// The writer has 4 keys in every file, and times with decimals, which the game cannot read.
fn write_qua(chart: &RoxChart) -> RoxResult<String> {
    let mut rounded = chart.clone();
    for note in &mut rounded.notes {
        let end_us = round_to_ms(note.end_time_us());
        note.time_us = round_to_ms(note.time_us);
        if note.is_hold() {
            note.note_type = NoteType::Hold { duration_us: (end_us - note.time_us).max(1000) };
        }
    }
    let text = QuaEncoder::encode_to_string(&rounded)?;
    assert!(text.contains("Mode: Keys4\n"), "{text}");
    let text = text.replace("Mode: Keys4\n", &format!("Mode: Keys{}\n", chart.key_count));
    Ok(text.replace(".0\n", "\n"))
}

fn check_writers(charts: &[Chart]) {
    let mut kinds: BTreeMap<String, Survival> = BTreeMap::new();
    for chart in charts.iter().filter(|chart| chart.variant.is_some()) {
        for (format, write, keys) in WRITERS {
            if !keys.contains(&chart.decoded.key_count) {
                continue;
            }
            let text = write(&chart.decoded).expect("the library accepts the chart");
            let survival = kinds.entry(format!("written as {format:?}")).or_default();
            survival.count += 1;
            match decode(format, text.as_bytes()) {
                Ok(file) => {
                    survival.same_hash += usize::from(file.charts[0].hash == chart.hash);
                    if file.charts[0].variant != chart.variant {
                        survival.changed.push(chart.name.clone());
                    }
                }
                Err(refusal) => survival.changed.push(format!("{}: {refusal}", chart.name)),
            }
        }
    }
    check(&kinds);
}

/// Whether one rate and one offset convert the rows of a chart to those of the other within 5 ms.
fn is_conversion(one: &Rows, other: &Rows) -> bool {
    let (Some(last), Some(other_last)) = (one.starts_ms().last(), other.starts_ms().last()) else {
        return false;
    };
    let rate = f64::from(*other_last) / f64::from(*last);
    let is_near = |(&start, &other): (&u32, &u32)| (f64::from(start) * rate - f64::from(other)).abs() <= 5.0;
    one.starts_ms().len() == other.starts_ms().len()
        && one.starts_ms().iter().zip(other.starts_ms()).all(is_near)
}

fn check_collisions(charts: &[Chart]) {
    let mut by_variant: HashMap<Variant, Vec<&Chart>> = HashMap::new();
    for chart in charts {
        for variant in chart.variant.iter().chain(&chart.roll_variants) {
            by_variant.entry(*variant).or_default().push(chart);
        }
    }
    let mut collisions = Vec::new();
    for shared in by_variant.values().filter(|shared| shared.len() > 1) {
        for other in &shared[1..] {
            let is_conversion = is_conversion(&shared[0].rows(), &other.rows());
            println!("{} and {}: conversion {is_conversion}", shared[0].name, other.name);
            if !is_conversion {
                collisions.push((&shared[0].name, &other.name));
            }
        }
    }
    let none = charts.iter().filter(|chart| chart.variant.is_none());
    for chart in none.clone() {
        println!("no variant: {}, {} rows", chart.name, chart.rows().starts_ms().len());
    }
    println!("{} charts, {} without a variant", charts.len(), none.count());
    assert!(collisions.is_empty(), "{collisions:#?}");
}

#[test]
fn conversions_of_samples_keep_the_variant() {
    check_conversions(&samples());
}

#[test]
#[ignore = "needs the real charts: make test-system"]
fn conversions_of_real_charts_keep_the_variant() {
    check_conversions(&charts(&corpus()));
}

#[test]
fn written_samples_keep_the_variant() {
    check_writers(&samples());
}

#[test]
#[ignore = "needs the real charts: make test-system"]
fn written_real_charts_keep_the_variant() {
    check_writers(&charts(&corpus()));
}

#[test]
fn different_samples_have_different_variants() {
    check_collisions(&samples());
}

#[test]
#[ignore = "needs the real charts: make test-system"]
fn different_real_charts_have_different_variants() {
    check_collisions(&charts(&corpus()));
}
