//! What else than its note hash a chart is known by: variants with rolls, and digests of files.

use std::collections::HashSet;

use chart_index_chartfile::{ChartFormat, decode};
use chart_index_domain::{ChartDraft, FileMd5};
use encoding_rs::SHIFT_JIS;
use md5::{Digest, Md5};

use crate::support::{only_chart, osu};

/// Rows of taps that are long and varied enough for a variant.
fn taps() -> Vec<String> {
    let rows = ["1000", "0100", "0010", "0001", "1001", "0110", "1010"];
    (0..48_usize).map(|row| rows[(row * row + row / 3) % 7].to_owned()).collect()
}

/// The taps, then these rows, in which `H` is a head and `T` a tail.
fn with_rows(rows: &[&str], head: char, tail: char) -> Vec<String> {
    let more = rows.iter().map(|row| row.replace('H', &head.to_string()).replace('T', &tail.to_string()));
    taps().into_iter().chain(more).collect()
}

const TWO: [&str; 8] = ["H000", "0000", "T000", "0010", "000H", "0100", "000T", "1000"];
/// The same with other rolls.
const ONE: [&str; 8] = ["0000", "0000", "0000", "0010", "H000", "0100", "T000", "1000"];

/// A simfile with charts of these rows.
fn simfile(charts: &[Vec<String>]) -> String {
    let mut text = "#TITLE:Test;\n#BPMS:0=133;\n".to_owned();
    for rows in charts {
        let measures: Vec<String> = rows.chunks(16).map(|measure| measure.join("\n")).collect();
        let measures = measures.join("\n,\n");
        text += &format!("#NOTES:\ndance-single:\n:\nHard:\n5:\n0,0,0,0,0:\n{measures}\n;\n");
    }
    text
}

fn only_simfile_chart(rows: Vec<String>) -> ChartDraft {
    only_chart(ChartFormat::Sm, &simfile(&[rows]))
}

#[test]
fn rolls_converted_to_long_notes_are_a_second_variant() {
    let rolls = only_simfile_chart(with_rows(&TWO, '4', '3'));
    let converted = only_simfile_chart(with_rows(&TWO, '2', '3'));
    let without = only_simfile_chart(with_rows(&TWO, '0', '0'));
    assert!(converted.variant.is_some() && without.variant.is_some());
    assert_ne!(converted.variant, without.variant);
    assert_eq!((rolls.hash, rolls.variant), (without.hash, without.variant));
    assert_eq!(rolls.aliases.roll_variants.first(), converted.variant.as_ref());
    assert_eq!(rolls.aliases.roll_variants.len(), 1);
    assert!(converted.aliases.roll_variants.is_empty() && without.aliases.roll_variants.is_empty());
}

#[test]
fn mines_are_in_no_variant() {
    let mines = only_simfile_chart(with_rows(&["M000", "00M0"], '4', '3'));
    let plain = only_simfile_chart(taps());
    assert_eq!((mines.variant, mines.aliases), (plain.variant, plain.aliases));
    let with_mines = ["H0M0", "0000", "T000", "0010", "M00H", "0100", "000T", "1000"];
    let rolls = only_simfile_chart(with_rows(&with_mines, '4', '3'));
    assert_eq!(rolls.aliases, only_simfile_chart(with_rows(&TWO, '4', '3')).aliases);
}

#[test]
fn one_chart_of_a_file_has_the_aliases_of_all_with_its_notes() {
    let rolls = [with_rows(&TWO, '4', '3'), with_rows(&ONE, '4', '3')];
    let separate: Vec<ChartDraft> = rolls.iter().cloned().map(only_simfile_chart).collect();
    assert_eq!(separate[0].hash, separate[1].hash);
    let [first, second, third] = [&rolls[0], &rolls[1], &with_rows(&ONE, '0', '0')].map(Clone::clone);
    let together = only_chart(ChartFormat::Sm, &simfile(&[first.clone(), third, second, first]));
    assert_eq!((together.hash, together.variant), (separate[0].hash, separate[0].variant));
    let variants: HashSet<_> = separate.iter().flat_map(|chart| &chart.aliases.roll_variants).collect();
    assert_eq!(variants.len(), 2);
    assert_eq!(together.aliases.roll_variants.iter().collect::<HashSet<_>>(), variants);
    assert_eq!(together.aliases.roll_variants.len(), 2);
}

const QUA: &str = "Mode: Keys4\nTitle: Test\nTimingPoints:\n- StartTime: 0\n  Bpm: 120\nHitObjects:\n\
                   - StartTime: 1000\n  Lane: 1\n";

#[test]
fn osu_and_qua_files_are_known_by_their_md5() {
    let osu = osu(4, "0,500,4,1,0,100,1,0", "64,192,1000,1,0,");
    for (format, text, md5) in [
        (ChartFormat::Osu, osu.as_str(), "606833552d4da4ab854ca45e99ccda48"),
        (ChartFormat::Qua, QUA, "0cb0fae67db8d984f36618371e570b69"),
    ] {
        let chart = only_chart(format, text);
        let digests: Vec<String> = chart.aliases.md5s.iter().map(ToString::to_string).collect();
        assert_eq!(digests, [md5], "{text}");
    }
    assert!(only_simfile_chart(taps()).aliases.md5s.is_empty());
}

#[test]
fn md5_is_that_of_the_bytes_before_their_encoding_is_converted() {
    let osu = osu(4, "0,500,4,1,0,100,1,0", "64,192,1000,1,0,");
    for (format, text) in [(ChartFormat::Osu, osu.as_str()), (ChartFormat::Qua, QUA)] {
        let text = text.replace("Test", "夜明けの航路");
        let (shift_jis, _, unmappable) = SHIFT_JIS.encode(&text);
        assert!(!unmappable);
        let files =
            [text.clone().into_bytes(), format!("\u{feff}{text}").into_bytes(), shift_jis.into_owned()];
        let mut hashes = HashSet::new();
        for bytes in files {
            let chart = decode(format, &bytes).expect("a chart").charts.remove(0);
            let md5: [u8; 16] = Md5::digest(&bytes).into();
            let digests: Vec<&[u8; 16]> = chart.aliases.md5s.iter().map(FileMd5::as_bytes).collect();
            assert_eq!(digests, [&md5]);
            hashes.insert(chart.hash);
        }
        assert_eq!(hashes.len(), 1);
    }
}
