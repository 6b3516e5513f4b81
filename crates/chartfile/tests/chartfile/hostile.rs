//! Hostile files: worst cases of the readers, and samples with random damage.

use std::fs;
use std::time::{Duration, Instant};

use chart_index_chartfile::{ChartFormat, MAX_FILE_BYTES, Refusal, decode, inspect_rox};
use chart_index_rox::preview;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::support::{chart_files, osu, preview_hash, workspace_root};

/// Far more than any file may take, and far less than a quadratic case would.
const MAX_DURATION: Duration = Duration::from_secs(20);

fn decoded_in_time(format: ChartFormat, bytes: &[u8]) -> Result<usize, Refusal> {
    let start = Instant::now();
    let outcome = decode(format, bytes).map(|decoded| decoded.charts.len());
    assert!(start.elapsed() < MAX_DURATION, "took {:?}", start.elapsed());
    outcome
}

fn limit_exceeded(what: &'static str) -> Result<usize, Refusal> {
    Err(Refusal::DecodingLimit { what })
}

fn simfile(header: &str, measures: &str) -> String {
    format!("#TITLE:a;\n#BPMS:0=120;\n{header}\n#NOTES:\ndance-single:\n:\nHard:\n1:\n0:\n{measures};\n")
}

fn ssc(header: &str, measures: &str) -> String {
    format!(
        "#TITLE:a;\n#BPMS:0=120;\n{header}\n#NOTEDATA:;\n#STEPSTYPE:dance-single;\n#NOTES:\n{measures};\n"
    )
}

fn pairs(count: usize) -> String {
    (0..count).map(|beat| format!("{beat}=1,")).collect()
}

#[test]
fn too_large_files_are_refused() {
    let bytes = vec![b'\n'; usize::try_from(MAX_FILE_BYTES).expect("fits") + 1];
    for format in [ChartFormat::Osu, ChartFormat::Sm, ChartFormat::Ssc, ChartFormat::Qua] {
        assert_eq!(decode(format, &bytes).err(), Some(Refusal::FileTooLarge { limit: MAX_FILE_BYTES }));
    }
}

#[test]
fn expensive_simfiles_are_refused_or_read_in_time() {
    let (fakes, stops) = (format!("#FAKES:{};", pairs(100_000)), format!("#STOPS:{};", pairs(300_000)));
    let falling: String = (0..100_000).rev().map(|beat| format!("{beat}={},", beat % 2 + 1)).collect();
    let open_heads = "2000\n".repeat(100_000) + &"0200\n0300\n".repeat(100_000) + "1000";
    let charts = |count| "#NOTES:dance-single:a:b:1:0:1000;\n".repeat(count);
    for (text, expected) in [
        (simfile("", &"1111\n".repeat(600_000)), Err("notes")),
        (charts(1000), Err("charts")),
        ("#a;".repeat(1_000_000), Err("tags")),
        ("#a".to_owned() + &":".repeat(1_000_000), Err("tags")),
        (simfile(&format!("#STOPS:{};", pairs(600_000)), "1000"), Err("timing changes")),
        (ssc(&format!("#BPMS:{falling};"), "1000"), Err("BPMs out of order")),
        (simfile("", &"\n,".repeat(6_000_000)), Err("measures")),
        (simfile("", &open_heads), Ok(1)),
        (simfile(&stops, "1000") + &charts(100), Ok(1)),
        (ssc(&fakes.replacen("0=1,", "", 1), &"1000\n".repeat(400_000)), Ok(1)),
    ] {
        let format = if text.contains("#NOTEDATA") { ChartFormat::Ssc } else { ChartFormat::Sm };
        let start = &text[..text.len().min(99)];
        match (decoded_in_time(format, text.as_bytes()), expected) {
            (Ok(charts), Ok(expected)) => assert_eq!(charts, expected, "{start}"),
            (Err(refusal), Err(what)) => {
                let limit = format!("decoding limit exceeded: {what}");
                assert!(refusal.to_string().ends_with(&limit), "{refusal}: {start}");
            }
            (outcome, _) => panic!("{outcome:?} should be {expected:?}: {start}"),
        }
    }
}

#[test]
fn hostile_yaml_is_refused() {
    let nested = "[".repeat(1_000_000);
    let notes = format!("HitObjects: [{}]", "{},".repeat(3_000_000));
    let repeated = format!("HitObjects: &a [{}]\nb: [{}]\n", "{},".repeat(150_000), "*a,".repeat(20));
    for (text, what) in [(notes, "YAML list entries"), (repeated, "YAML nodes")] {
        assert_eq!(decoded_in_time(ChartFormat::Qua, text.as_bytes()), limit_exceeded(what));
    }
    let laughs: String = (1..30).map(|n| format!("l{n}: &l{n} [*l{0}, *l{0}, *l{0}]\n", n - 1)).collect();
    let laughs = format!("l0: &l0 [1]\n{laughs}HitObjects: *l29\n");
    let unused = format!("a: &a [{}]\nb: [{}]\n", "1,".repeat(500_000), "*a,".repeat(10_000));
    let directives: String = (0..1_000_000).map(|n| format!("%TAG !{n}! !\n")).collect();
    for text in [nested, laughs, unused, directives] {
        assert!(decoded_in_time(ChartFormat::Qua, text.as_bytes()).is_err());
    }
}

#[test]
fn largest_allowed_files_are_decoded_in_time() {
    let objects = "64,192,0,1,0\n".repeat(400_000);
    let scrolls = "0,-100\n".repeat(400_000);
    let osu = osu(4, &format!("0,500,4,1,0,100,1,0\n{scrolls}"), &objects);
    assert_eq!(decoded_in_time(ChartFormat::Osu, osu.as_bytes()), Ok(1));
    let empty_measures = ",\n".repeat(4_000_000);
    assert_eq!(
        decoded_in_time(ChartFormat::Sm, simfile("", &format!("1000\n{empty_measures}")).as_bytes()),
        Ok(1)
    );
    let notes: String = (0..150_000).map(|time| format!("- StartTime: {time}\n  Lane: 1\n")).collect();
    let qua = format!("Mode: Keys4\nTimingPoints:\n- Bpm: 120\nHitObjects:\n{notes}");
    assert_eq!(decoded_in_time(ChartFormat::Qua, qua.as_bytes()), Ok(1));
}

#[test]
fn overflowing_times_are_refused() {
    let slowest = osu(4, "0,60000,4,1,0,100,1,0\n0,-1000,4,1,0,100,0,0", "64,192,0,2,0,L|9:9,9000,131072");
    for (format, text) in [
        (ChartFormat::Osu, slowest),
        (ChartFormat::Sm, simfile("#OFFSET:9e18;", "1000")),
        (ChartFormat::Sm, simfile("#STOPS:0=9e30;", "1000\n0100")),
        (ChartFormat::Sm, simfile("", "1000\n0100").replace("0=120", "0=1e-30")),
    ] {
        let refusal = decoded_in_time(format, text.as_bytes()).expect_err(&text);
        assert!(refusal.to_string().ends_with("time out of range"), "{refusal}: {text}");
    }
}

#[test]
fn extreme_times_are_read() {
    let length_ms = |format, text: String| {
        let file = decode(format, text.as_bytes()).unwrap_or_else(|refusal| panic!("{refusal}: {text}"));
        file.charts[0].numbers.length_ms
    };
    let (first, last) = (-2_147_483_647_i64, 2_147_483_647_i64);
    for (objects, expected) in [
        (format!("64,192,{first},1,0\n64,192,{last},1,0"), 4_294_967_294),
        (format!("64,192,{first},128,0,{last}:0:0:0:0:"), 4_294_967_294),
        (format!("64,192,{last},128,0,-5:0:0:0:0:"), 0),
    ] {
        assert_eq!(
            length_ms(ChartFormat::Osu, osu(4, "0,500,4,1,0,100,1,0", &objects)),
            expected,
            "{objects}"
        );
    }
    let notes = format!("- StartTime: {}\n  Lane: 1\n- StartTime: {last}\n  Lane: 1", first - 1);
    let qua = format!("Mode: Keys4\nTimingPoints:\n- StartTime: -3e38\n  Bpm: 120\nHitObjects:\n{notes}\n");
    assert_eq!(length_ms(ChartFormat::Qua, qua), u32::MAX);
}

#[test]
fn extreme_tempos_give_finite_numbers() {
    for beat_length in ["1e-300", "1e300", "1e-30", "NaN", "inf"] {
        let timing = format!("0,500,4,1,0,100,1,0\n500,{beat_length},4,1,0,100,1,0");
        let decoded =
            decode(ChartFormat::Osu, osu(4, &timing, "64,192,1000,1,0").as_bytes()).expect("a chart");
        let numbers = decoded.charts[0].numbers;
        for bpm in [numbers.bpm_min, numbers.bpm_main, numbers.bpm_max] {
            assert!(bpm.is_finite(), "{beat_length}: {numbers:?}");
        }
    }
}

#[test]
fn damaged_rox_files_do_not_cause_panics() {
    let text = osu(4, "0,500,4,1,0,100,1,0", "64,192,1000,1,0\n192,192,2000,128,0,3000:0:0:0:0:");
    let rox =
        decode(ChartFormat::Osu, text.as_bytes()).expect("a chart").charts.remove(0).rox.expect("a ROX file");
    for at in 0..rox.len() {
        assert!(inspect_rox(&rox[..at]).is_err());
        let mut bytes = rox.clone();
        bytes[at] ^= 0x10;
        assert_ne!(inspect_rox(&bytes).err(), Some(Refusal::DecoderPanicked), "byte {at}");
    }
}

/// Fragments of chart files with large effects.
const FRAGMENTS: [&str; 18] = [
    "\n[HitObjects]\n",
    "\n#NOTES:",
    "#NOTEDATA:;",
    ";",
    ",",
    "0=0.000001,",
    "2=-120,3=120,",
    "{2|n|1|0}",
    "-9223372036854775808",
    "2147483647",
    "1e308",
    "NaN",
    "\0",
    "\u{feff}",
    "- StartTime: -1e9\n",
    "M4L23F",
    "&a [*a]",
    "\\",
];

#[derive(Debug, Clone)]
enum Damage {
    Flip(Index, u8),
    Insert(Index, &'static str),
    Cut(Index, Index),
    Double(Index, Index),
    Truncate(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<Index>;
    prop_oneof![
        4 => (index(), any::<u8>()).prop_map(|(at, value)| Damage::Flip(at, value)),
        3 => (index(), select(&FRAGMENTS[..])).prop_map(|(at, fragment)| Damage::Insert(at, fragment)),
        1 => (index(), index()).prop_map(|(from, to)| Damage::Cut(from, to)),
        1 => (index(), index()).prop_map(|(from, to)| Damage::Double(from, to)),
        1 => index().prop_map(Damage::Truncate),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    let range = |from: &Index, to: &Index, length| {
        let (from, to) = (from.index(length), to.index(length));
        from.min(to)..from.max(to)
    };
    let length = bytes.len();
    match damage {
        Damage::Flip(at, value) => bytes[at.index(length)] = *value,
        Damage::Insert(at, fragment) => {
            let at = at.index(length);
            bytes.splice(at..at, fragment.bytes());
        }
        Damage::Cut(from, to) => drop(bytes.drain(range(from, to, length))),
        Damage::Double(from, to) => bytes.extend_from_within(range(from, to, length)),
        Damage::Truncate(at) => bytes.truncate(at.index(length)),
    }
}

fn samples() -> Vec<(ChartFormat, Vec<u8>)> {
    let root = workspace_root().join("samples");
    chart_files(&root)
        .into_iter()
        .map(|path| {
            let format = ChartFormat::from_path(path.to_str().expect("a UTF-8 path")).expect("a chart");
            (format, fs::read(root.join(path)).expect("a readable sample"))
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Covers what the fuzzer does, which needs another toolchain, in every test run.
    #[test]
    fn damaged_files_are_decoded_or_refused_in_time(
        (format, original) in select(samples()),
        read_as in prop::option::weighted(0.1, select(vec![ChartFormat::Osu, ChartFormat::Sm, ChartFormat::Ssc, ChartFormat::Qua])),
        damages in prop::collection::vec(damage(), 1..8),
    ) {
        let mut bytes = original;
        for damage in &damages {
            apply(&mut bytes, damage);
        }
        let start = Instant::now();
        if let Ok(decoded) = decode(read_as.unwrap_or(format), &bytes) {
            for chart in &decoded.charts {
                let rox = chart.rox.as_deref().expect("a ROX file");
                let content = inspect_rox(rox).expect("a readable ROX file");
                prop_assert_eq!((content.hash, content.numbers), (chart.hash, chart.numbers));
                prop_assert_eq!(preview_hash(&preview(rox).expect("a preview")), chart.hash);
                prop_assert!(!chart.metadata.title.contains('\0'));
            }
        }
        prop_assert!(start.elapsed() < MAX_DURATION);
    }
}
