//! Simfiles that the games play and the decoder refuses: notes with attributes, and timing below zero.
//!
//! Each is compared with a simfile that the decoder reads, in which the same is written the other way.

use chart_index_chartfile::{ChartFormat, DecodedFile, decode};
use chart_index_domain::ChartDraft;

const MEASURE: &str = "1000\n0100\n0010\n0001";

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
fn attributes_do_not_change_how_a_note_is_played() {
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
fn fake_notes_are_not_played() {
    for (notes, plain) in [
        ("{1|n|1|0}000\n0100\n0010\n0001", "0000\n0100\n0010\n0001"),
        // A fake long note with its end.
        ("1000\n{2|n|1|0}000\n{3|n|1|0}000\n0001", "1000\n0000\n0000\n0001"),
        ("1000\n{2|h|1|0}000\n3000\n0001", "1000\n0000\n0000\n0001"),
        // The head decides, not the end.
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
fn cells_of_which_the_meaning_is_not_known_are_refused() {
    // A note of another player, a flag and a form that no source describes, and cells that do not end.
    for cell in ["{X|n|0|0}", "{1|n|2|0}", "{1e0}", "{11|n|0|0}", "{1|n|0|0", "{}", "{1|n}", "{é|n|0|0}"] {
        let notes = format!("{{1|n|0|0}}000\n{cell}000\n0000\n0000");
        let refusal = decode(ChartFormat::Sm, sm("#BPMS:0=120;", "dance-single", &notes).as_bytes());
        let refusal = refusal.expect_err(cell).to_string();
        assert!(refusal.contains("columns, expected 4"), "{cell}: {refusal}");
    }
}

#[test]
fn a_repaired_chart_does_not_change_the_others_of_its_file() {
    let bare = "1S00\n0000\n{000\n0001";
    let plain = sm("#BPMS:0=120;", "dance-single", bare);
    let with_repaired = plain.clone() + &sm("", "dance-single", "{1|n|0|0}000\n0100\n0000\n0000");
    let file = decoded(ChartFormat::Sm, &with_repaired);
    assert_eq!((file.charts.len(), file.charts[0].hash), (2, only(ChartFormat::Sm, &plain).hash));
}

#[test]
fn time_below_zero_is_a_warp() {
    let notes = "1000\n1000\n0100\n0100\n,\n0010\n0010\n0001\n0001\n,\n1000\n0100\n0010\n0001";
    for (name, old, warp) in [
        // Two beats back at 120 BPM take as long as four at 240: the warp is six beats.
        ("negative BPM", "#BPMS:0=120,2=-120,4=240;", "#BPMS:0=120,2=240;#WARPS:2=6;"),
        ("negative BPM, same BPM after", "#BPMS:0=120,2=-120,4=120;", "#BPMS:0=120;#WARPS:2=4;"),
        // A second at 120 BPM is two beats.
        ("negative stop", "#BPMS:0=120;#STOPS:3=-1;", "#BPMS:0=120;#WARPS:3=2;"),
        (
            "negative stop, then one",
            "#BPMS:0=120;#STOPS:1=0.5,3=-1,6=0.25;",
            "#BPMS:0=120;#STOPS:1=0.5,6=0.25;#WARPS:3=2;",
        ),
        // The stop inside makes up for a half of it.
        ("stop inside", "#BPMS:0=120;#STOPS:3=-1,3.5=0.5;", "#BPMS:0=120;#WARPS:3=1;"),
        // At beat 4 a half second is missing; the stop of two leaves one and a half.
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
fn a_warp_that_never_ends_swallows_the_rest() {
    let all = sm("#BPMS:0=120,2=-120;", "dance-single", "1000\n0100\n0010\n0001\n,\n1111");
    assert_same(ChartFormat::Sm, &all, &sm("#BPMS:0=120;", "dance-single", "1000\n0100\n0000\n0000"));
    let nothing = sm("#BPMS:0=120;#STOPS:0=-9000;", "dance-single", MEASURE);
    let refusal = decode(ChartFormat::Sm, nothing.as_bytes()).expect_err("no notes left").to_string();
    assert!(refusal.contains("no notes"), "{refusal}");
}

#[test]
fn a_bpm_of_zero_and_a_first_one_below_it_do_not_count() {
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
fn a_stop_before_the_first_beat_moves_the_notes() {
    // Between the notes nothing changes; the ROX file, made from the whole chart, is where the offset shows.
    let notes = |timing| sm(timing, "dance-single", MEASURE);
    let moved = only(ChartFormat::Sm, &notes("#OFFSET:-1;#BPMS:0=120,9=0;#STOPS:-1=-0.25,-0.5=0.75;"));
    let plain = only(ChartFormat::Sm, &notes("#OFFSET:-1.5;#BPMS:0=120;"));
    assert_eq!((moved.hash, moved.rox), (plain.hash, plain.rox));
}

#[test]
fn an_ssc_passes_over_what_is_not_positive() {
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
