//! Repairs of files that the games play and the decoder rejects or misreads: a test input for each row of the
//! table in `src/repairs/mod.rs`, and edge cases.

use chart_index_chartfile::{ChartFormat, DecodedFile, decode};
use chart_index_domain::{ChartDraft, ChartMetadata, ChartNumbers, NoteHash, PublicSource};
use rox::codec::Decoder;
use rox::formats::{OsuDecoder, QuaDecoder, SmDecoder, SscDecoder};

use crate::support::osu;

const MEASURE: &str = "1000\n0100\n0010\n0001";
const TIMING: &str = "0,500,4,1,0,100,1,0";
const NOTES: &str = "64,192,1000,1,0,\n192,192,2000,1,0,";

/// A repair, by its name in the table.
struct Repair {
    name: &'static str,
    format: ChartFormat,
    /// A file that needs the repair.
    broken: String,
    /// A file with the same content that needs none.
    plain: String,
    /// Whether the decoder rejects the file without the repair.
    is_required: bool,
}

fn required(name: &'static str, format: ChartFormat, broken: String, plain: String) -> Repair {
    Repair { name, format, broken, plain, is_required: true }
}

fn optional(name: &'static str, format: ChartFormat, broken: String, plain: String) -> Repair {
    Repair { is_required: false, ..required(name, format, broken, plain) }
}

fn repairs() -> Vec<Repair> {
    use ChartFormat::{Osu, Qua, Sm, Ssc};
    let osu_notes = |notes: &str| osu(4, TIMING, notes);
    let osu_text = |metadata: &str| osu_notes(NOTES).replace("Title:Test\n", metadata);
    let sm_timing = |timing: &str| sm(timing, "dance-single", MEASURE);
    let sm_notes = |notes: &str| sm("#BPMS:0=120;", "dance-single", notes);
    let ssc_timing = |timing: &str| ssc(timing, "", MEASURE);
    let qua_head = |head: &str| qua(head, "- Bpm: 120", "- StartTime: 10\n  Lane: 2");
    let qua_timing =
        |timing: &str| qua("Mode: Keys4", &format!("- Bpm: 120{timing}"), "- StartTime: 10\n  Lane: 2");
    let qua_note = |end: &str| {
        qua("Mode: Keys4", "- StartTime: -100\n  Bpm: 120", &format!("- StartTime: -10\n  Lane: 2{end}"))
    };
    let five_keys = |mode: &str| qua(mode, "- Bpm: 120", "- StartTime: 10\n  Lane: 5");
    let stop_at_start = |stop: &str, offset: &str| sm_timing(&format!("#OFFSET:{offset};#BPMS:0=120;{stop}"));
    vec![
        optional("byte order mark", Osu, format!("\u{feff}{}", osu_notes(NOTES)), osu_notes(NOTES)),
        optional("empty title", Osu, osu_text("Title:A\nTitleUnicode:\n"), osu_text("Title:A\n")),
        optional("unpublished id", Osu, osu_text("Title:A\nBeatmapSetID:-1\n"), osu_text("Title:A\n")),
        required("note outside the playfield", Osu, osu_notes("512,192,9,1,0,"), osu_notes("448,192,9,1,0,")),
        optional(
            "comma-separated tags",
            Qua,
            qua_head("Mode: Keys4\nTags: jam, cj"),
            qua_head("Mode: Keys4\nTags: jam cj"),
        ),
        required("numeric signature", Qua, qua_timing("\n  Signature: 4"), qua_timing("")),
        required("five or six keys", Qua, five_keys("Mode: Keys5"), osu(5, TIMING, "448,192,10,1,0,")),
        optional("end time of zero", Qua, qua_note("\n  EndTime: 0"), qua_note("")),
        required(
            "note attributes",
            Sm,
            sm_notes("{1|n|0|0}000\n0S00\n00V0\n000{H|n|0|0}"),
            sm_notes(MEASURE),
        ),
        required(
            "fake note",
            Ssc,
            ssc("#BPMS:0=120;", "", "{1|n|1|0}000\n0100"),
            ssc("#BPMS:0=120;", "", "F000\n0100"),
        ),
        required(
            "keysound",
            Sm,
            sm_notes("1[23]000\n0K[4]00\n0010\n0001[5"),
            sm_notes("1000\n0000\n0010\n0001"),
        ),
        required(
            "row too wide or too narrow",
            Ssc,
            ssc("#BPMS:0=120;", "", "10001\n01\n0010\n0001,\n1000\n0100"),
            ssc("#BPMS:0=120;", "", "1000\n0100\n0010\n0001,\n1000\n0100"),
        ),
        required(
            "negative stop",
            Sm,
            sm_timing("#BPMS:0=120;#STOPS:3=-1;"),
            sm_timing("#BPMS:0=120;#WARPS:3=2;"),
        ),
        required(
            "negative BPM",
            Sm,
            sm_timing("#BPMS:0=120,2=-120,3=120;"),
            sm_timing("#BPMS:0=120;#WARPS:2=2;"),
        ),
        required(
            "stop before the first beat",
            Sm,
            stop_at_start("#STOPS:-1=-0.25;", "-1"),
            stop_at_start("", "-0.75"),
        ),
        required("negative delay", Sm, sm_timing("#BPMS:0=120;#DELAYS:1=-1;"), sm_timing("#BPMS:0=120;")),
        required(
            "negative timing",
            Ssc,
            ssc_timing("#BPMS:0=120,2=-60;#STOPS:1=-1;"),
            ssc_timing("#BPMS:0=120;"),
        ),
        required("late first BPM", Osu, osu(4, "1500,500,4,1,0,100,1,0", NOTES), osu_notes(NOTES)),
        required(
            "notes out of order",
            Qua,
            qua("Mode: Keys4", "- Bpm: 120", "- StartTime: 20\n  Lane: 1\n- StartTime: 10\n  Lane: 2"),
            qua("Mode: Keys4", "- Bpm: 120", "- StartTime: 10\n  Lane: 2\n- StartTime: 20\n  Lane: 1"),
        ),
        required(
            "timing points out of order",
            Osu,
            osu(4, &format!("1500,250,4,1,0,100,1,0\n{TIMING}"), NOTES),
            osu(4, &format!("{TIMING}\n1500,250,4,1,0,100,1,0"), NOTES),
        ),
        required(
            "long note without length",
            Osu,
            osu_notes("64,192,1000,128,0,1000:0"),
            osu_notes("64,192,1000,1,0,"),
        ),
    ]
}

fn qua(head: &str, timing: &str, notes: &str) -> String {
    format!("{head}\nTimingPoints:\n{timing}\nHitObjects:\n{notes}\n")
}

/// Whether the decoder, without this crate, gives a valid chart with notes.
fn decoder_accepts(format: ChartFormat, text: &str) -> bool {
    let chart = match format {
        ChartFormat::Osu => OsuDecoder::decode(text.as_bytes()),
        ChartFormat::Qua => QuaDecoder::decode(text.as_bytes()),
        ChartFormat::Sm => SmDecoder::decode(text.as_bytes()),
        ChartFormat::Ssc => SscDecoder::decode(text.as_bytes()),
    };
    chart.is_ok_and(|chart| chart.validate().is_ok())
}

/// What the index stores of a chart, apart from its ROX file.
fn content(chart: ChartDraft) -> (NoteHash, ChartNumbers, ChartMetadata, Option<PublicSource>, Option<u64>) {
    (chart.hash, chart.numbers, chart.metadata, chart.declared_source, chart.alpha_beatmap_id)
}

#[test]
fn repaired_files_equal_plain_ones() {
    for Repair { name, format, broken, plain, is_required } in repairs() {
        let plain_format = if plain.starts_with("osu") { ChartFormat::Osu } else { format };
        assert_ne!(broken, plain, "{name}");
        assert!(decoder_accepts(plain_format, &plain), "{name}: {plain}");
        assert_eq!(decoder_accepts(format, &broken), !is_required, "{name}: {broken}");
        let (repaired, plain) = (content(only(format, &broken)), content(only(plain_format, &plain)));
        if plain_format == format {
            assert_eq!(repaired, plain, "{name}");
        }
        assert_eq!(repaired.0, plain.0, "{name}");
    }
}

#[test]
fn every_documented_repair_is_tested() {
    let documented = include_str!("../../src/repairs/mod.rs").lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("//! |")?.split(" | ").map(str::trim).collect();
        Some((cells[0].to_owned(), cells[cells.len() - 1].starts_with("required")))
    });
    let tested: Vec<_> =
        repairs().iter().map(|repair| (repair.name.to_owned(), repair.is_required)).collect();
    assert_eq!(documented.skip(2).collect::<Vec<_>>(), tested);
}

fn sm(timing: &str, step_type: &str, measures: &str) -> String {
    format!("#TITLE:Song;\n{timing}\n#NOTES:\n{step_type}:\nabout:\nHard:\n7:\n0,0:\n{measures}\n;\n")
}

fn ssc(timing: &str, chart_timing: &str, measures: &str) -> String {
    format!(
        "#VERSION:0.83;\n#TITLE:Song;\n{timing}\n#NOTEDATA:;\n#STEPSTYPE:dance-single;\n#DIFFICULTY:Hard;\n\
         {chart_timing}\n#NOTES:\n{measures}\n;\n"
    )
}

fn decoded(format: ChartFormat, text: &str) -> DecodedFile {
    decode(format, text.as_bytes()).unwrap_or_else(|refusal| panic!("{refusal}\n{text}"))
}

fn only(format: ChartFormat, text: &str) -> ChartDraft {
    decoded(format, text).charts.remove(0)
}

fn assert_same(format: ChartFormat, text: &str, plain: &str) {
    let (chart, plain) = (only(format, text), only(format, plain));
    assert_eq!((chart.hash, chart.numbers), (plain.hash, plain.numbers), "{text}");
}

#[test]
fn charts_of_another_width_are_refused() {
    for rows in ["10000\n01000\n0010\n0001", "10001000\n01000100", "{108}000\n0100\n0010\n0001"] {
        for text in [sm("#BPMS:0=120;", "dance-single", rows), ssc("#BPMS:0=120;", "", rows)] {
            let format = if text.contains("#NOTEDATA") { ChartFormat::Ssc } else { ChartFormat::Sm };
            let refusal = decode(format, text.as_bytes()).expect_err(&text);
            assert!(refusal.to_string().contains("expected 4"), "{refusal}");
        }
    }
}

#[test]
fn fake_notes_of_other_players_are_ignored() {
    let row = |cells: &str| sm("#BPMS:0=120;", "dance-single", cells);
    for note in ['X', 'Y', 'Z', 'x', 'y', 'z'] {
        assert_same(ChartFormat::Sm, &row(&format!("1{{{note}|v|1|0}}00\n0001")), &row("1000\n0001"));
        let played = row(&format!("1{{{note}|v|0|0}}00\n0001"));
        assert!(decode(ChartFormat::Sm, played.as_bytes()).is_err(), "{played}");
    }
}

#[test]
fn note_attributes_are_ignored() {
    for attribute in ['n', 'v', 's', 'h'] {
        let row =
            format!("0{{1|{attribute}|0|0}}000\n{{2|{attribute}|0|0}}0000\n00{{M|n|0|0}}00\n{{3|n|0|0}}0001");
        let (row, plain) = (sm("#BPMS:0=120;", "pump-single", &row), "01000\n20000\n00M00\n30001");
        assert_same(ChartFormat::Sm, &row, &sm("#BPMS:0=120;", "pump-single", plain));
    }
    let notes = "{1|n|0|0}000\n0S00\n00V0\n000{H|n|0|0}";
    assert_same(ChartFormat::Ssc, &ssc("#BPMS:0=120;", "", notes), &ssc("#BPMS:0=120;", "", MEASURE));
}

#[test]
fn fake_notes_are_ignored() {
    for (notes, plain) in [
        ("{1|n|1|0}000\n0100\n0010\n0001", "0000\n0100\n0010\n0001"),
        // A fake long note and its tail.
        ("1000\n{2|n|1|0}000\n{3|n|1|0}000\n0001", "1000\n0000\n0000\n0001"),
        ("1000\n{2|h|1|0}000\n3000\n0001", "1000\n0000\n0000\n0001"),
        // The flag of the tail has no effect.
        ("1000\n{2|n|0|0}000\n{3|n|1|0}000\n0001", "1000\n2000\n3000\n0001"),
    ] {
        assert_same(
            ChartFormat::Sm,
            &sm("#BPMS:0=120;", "dance-single", notes),
            &sm("#BPMS:0=120;", "dance-single", plain),
        );
        assert_same(ChartFormat::Ssc, &ssc("#BPMS:0=120;", "", notes), &ssc("#BPMS:0=120;", "", plain));
    }
}

#[test]
fn unknown_cells_are_refused() {
    // A note of a second player, an undocumented flag, malformed cells, and unterminated ones.
    for cell in ["{X|n|0|0}", "{1|n|2|0}", "{1e0}", "{11|n|0|0}", "{1|n|0|0", "{}", "{1|n}", "{é|n|0|0}"] {
        let notes = format!("{{1|n|0|0}}000\n{cell}000\n0000\n0000");
        let refusal = decode(ChartFormat::Sm, sm("#BPMS:0=120;", "dance-single", &notes).as_bytes());
        let refusal = refusal.expect_err(cell).to_string();
        assert!(refusal.contains("columns, expected 4"), "{cell}: {refusal}");
    }
}

#[test]
fn repair_does_not_change_other_charts_of_the_file() {
    let bare = "1S00\n0000\n{000\n0001";
    let plain = sm("#BPMS:0=120;", "dance-single", bare);
    let with_repaired = plain.clone() + &sm("", "dance-single", "{1|n|0|0}000\n0100\n0000\n0000");
    let file = decoded(ChartFormat::Sm, &with_repaired);
    assert_eq!((file.charts.len(), file.charts[0].hash), (2, only(ChartFormat::Sm, &plain).hash));
}

#[test]
fn negative_timing_is_a_warp() {
    let notes = "1000\n1000\n0100\n0100\n,\n0010\n0010\n0001\n0001\n,\n1000\n0100\n0010\n0001";
    for (name, old, warp) in [
        // Two beats back at 120 BPM take as long as four beats at 240: a warp of six beats.
        ("negative BPM", "#BPMS:0=120,2=-120,4=240;", "#BPMS:0=120,2=240;#WARPS:2=6;"),
        ("negative BPM, same BPM after", "#BPMS:0=120,2=-120,4=120;", "#BPMS:0=120;#WARPS:2=4;"),
        // One second at 120 BPM is two beats.
        ("negative stop", "#BPMS:0=120;#STOPS:3=-1;", "#BPMS:0=120;#WARPS:3=2;"),
        (
            "negative stop, then one",
            "#BPMS:0=120;#STOPS:1=0.5,3=-1,6=0.25;",
            "#BPMS:0=120;#STOPS:1=0.5,6=0.25;#WARPS:3=2;",
        ),
        // The stop within the warp halves it.
        ("stop inside", "#BPMS:0=120;#STOPS:3=-1,3.5=0.5;", "#BPMS:0=120;#WARPS:3=1;"),
        // At beat 4 time is half a second behind, which leaves 1.5 s of the stop of 2 s.
        ("longer stop inside", "#BPMS:0=120;#STOPS:3=-1,4=2;", "#BPMS:0=120;#WARPS:3=1;#STOPS:4=1.5;"),
        ("BPM inside", "#BPMS:0=120,4=60;#STOPS:3=-1;", "#BPMS:0=120,3=60;#WARPS:3=1.5;"),
        ("BPM without time", "#BPMS:0=120,3=99999999,5=120;#STOPS:0=-0.5;", "#BPMS:0=120;#WARPS:0=1,3=2;"),
        (
            "negative BPM and stop on one beat",
            "#BPMS:0=120,2=-120,3=120;#STOPS:2=-1;",
            "#BPMS:0=120;#WARPS:2=4;",
        ),
        ("rows of 1/48 beat", "#BPMS:0=120;#STOPS:3.001=-1.001;", "#BPMS:0=120;#WARPS:3=2;"),
        ("out of order", "#BPMS:4=240,2=-120,0=120;", "#BPMS:0=120,2=240;#WARPS:2=6;"),
    ] {
        let chart = |timing| sm(timing, "dance-single", notes);
        let (chart, plain) = (only(ChartFormat::Sm, &chart(old)), only(ChartFormat::Sm, &chart(warp)));
        assert_eq!((chart.hash, chart.numbers), (plain.hash, plain.numbers), "{name}");
    }
}

#[test]
fn endless_warp_skips_the_rest_of_the_chart() {
    let all = sm("#BPMS:0=120,2=-120;", "dance-single", "1000\n0100\n0010\n0001\n,\n1111");
    assert_same(ChartFormat::Sm, &all, &sm("#BPMS:0=120;", "dance-single", "1000\n0100\n0000\n0000"));
    let nothing = sm("#BPMS:0=120;#STOPS:0=-9000;", "dance-single", MEASURE);
    let refusal = decode(ChartFormat::Sm, nothing.as_bytes()).expect_err("no notes left").to_string();
    assert!(refusal.contains("no notes"), "{refusal}");
}

#[test]
fn zero_bpm_and_negative_first_bpm_are_ignored() {
    let notes = |timing| sm(timing, "dance-single", MEASURE);
    for (old, plain) in [
        ("#BPMS:0=120,2=0;", "#BPMS:0=120;"),
        ("#BPMS:0=0,1=150;", "#BPMS:1=150;"),
        ("#BPMS:0=-120,2=150;", "#BPMS:2=150;"),
        ("#BPMS:-1=-5,0=120;", "#BPMS:0=120;"),
        ("#BPMS:0=120;#DELAYS:1=-1,2=0.5;", "#BPMS:0=120;#DELAYS:2=0.5;"),
    ] {
        assert_same(ChartFormat::Sm, &notes(old), &notes(plain));
    }
    for no_tempo in ["#BPMS:0=0;", "#BPMS:0=-120;", "#BPMS:;"] {
        let refusal = decode(ChartFormat::Sm, notes(no_tempo).as_bytes()).expect_err(no_tempo).to_string();
        assert!(refusal.contains("no valid #BPMS"), "{no_tempo}: {refusal}");
    }
    for not_finite in ["#BPMS:0=120,1=NaN,2=-1;", "#BPMS:0=120;#STOPS:inf=-1;"] {
        assert!(decode(ChartFormat::Sm, notes(not_finite).as_bytes()).is_err(), "{not_finite}");
    }
}

#[test]
fn stop_before_the_first_beat_moves_the_offset() {
    // The note hash is relative to the first note; only the ROX file shows the offset.
    let notes = |timing| sm(timing, "dance-single", MEASURE);
    let moved = only(ChartFormat::Sm, &notes("#OFFSET:-1;#BPMS:0=120,9=0;#STOPS:-1=-0.25,-0.5=0.75;"));
    let plain = only(ChartFormat::Sm, &notes("#OFFSET:-1.5;#BPMS:0=120;"));
    assert_eq!((moved.hash, moved.rox), (plain.hash, plain.rox));
}

#[test]
fn ssc_entries_that_are_not_positive_are_ignored() {
    for (song, chart, plain_song, plain_chart) in [
        ("#BPMS:0=120,2=-60,3=240;", "", "#BPMS:0=120,3=240;", ""),
        ("#BPMS:0=120;#STOPS:1=-1,2=0.5;", "", "#BPMS:0=120;#STOPS:2=0.5;", ""),
        ("#BPMS:0=120;#DELAYS:1=-1;", "", "#BPMS:0=120;", ""),
        ("#BPMS:0=60;", "#BPMS:0=120,1=0;#STOPS:2=-1,3=1;", "#BPMS:0=60;", "#BPMS:0=120;#STOPS:3=1;"),
        ("#BPMS:0=120;#STOPS:1=0.5;", "#STOPS:2=-1;", "#BPMS:0=120;#STOPS:1=0.5;", ""),
    ] {
        assert_same(ChartFormat::Ssc, &ssc(song, chart, MEASURE), &ssc(plain_song, plain_chart, MEASURE));
    }
}
