//! `.sm` and `.ssc` files as StepMania 5 plays them: what the cases in `tests/cases/simfiles` leave open.

use chart_index_chartfile::{ChartFormat, DecodedFile, decode};
use chart_index_domain::ChartDraft;

const MEASURE: &str = "1000\n0100\n0010\n0001";
const BPM: &str = "#BPMS:0=120;";

fn sm(timing: &str, step_type: &str, measures: &str) -> String {
    format!("#TITLE:Song;\n{timing}\n#NOTES:{step_type}::Hard:1:0:{measures};\n")
}

fn ssc(timing: &str, chart_timing: &str, measures: &str) -> String {
    format!(
        "#TITLE:Song;\n{timing}\n#NOTEDATA:;\n#STEPSTYPE:dance-single;\n#DIFFICULTY:Hard;\n{chart_timing}\n\
         #NOTES:{measures};\n"
    )
}

fn format_of(text: &str) -> ChartFormat {
    if text.contains("#NOTEDATA") { ChartFormat::Ssc } else { ChartFormat::Sm }
}

fn decoded(text: &str) -> DecodedFile {
    decode(format_of(text), text.as_bytes()).unwrap_or_else(|refusal| panic!("{refusal}: {text}"))
}

fn only(text: &str) -> ChartDraft {
    decoded(text).charts.remove(0)
}

fn refusal(text: &str) -> String {
    decode(format_of(text), text.as_bytes()).expect_err(text).to_string()
}

fn assert_same(text: &str, plain: &str) {
    let (chart, plain) = (only(text), only(plain));
    assert_eq!((chart.hash, chart.numbers), (plain.hash, plain.numbers), "{text}");
}

fn notes(measures: &str) -> String {
    sm(BPM, "dance-single", measures)
}

/// `ProcessBPMsAndStops`: the warps of `.sm` files.
#[test]
fn negative_timing_is_a_warp() {
    let notes = "1000\n1000\n0100\n0100\n,\n0010\n0010\n0001\n0001\n,\n1000\n0100\n0010\n0001";
    for (old, warp) in [
        // Two beats back at 120 BPM take as long as four beats at 240: a warp of six beats.
        ("#BPMS:0=120,2=-120,4=240;", "#BPMS:0=120,2=240;#WARPS:2=6;"),
        ("#BPMS:0=120,2=-120,4=120;", "#BPMS:0=120;#WARPS:2=4;"),
        // One second at 120 BPM is two beats.
        ("#BPMS:0=120;#STOPS:3=-1;", "#BPMS:0=120;#WARPS:3=2;"),
        ("#BPMS:0=120;#STOPS:1=0.5,3=-1,6=0.25;", "#BPMS:0=120;#STOPS:1=0.5,6=0.25;#WARPS:3=2;"),
        // The stop within the warp halves it.
        ("#BPMS:0=120;#STOPS:3=-1,3.5=0.5;", "#BPMS:0=120;#WARPS:3=1;"),
        // At beat 4 time is half a second behind, which leaves 1.5 s of the stop of 2 s.
        ("#BPMS:0=120;#STOPS:3=-1,4=2;", "#BPMS:0=120;#WARPS:3=1;#STOPS:4=1.5;"),
        // The stop is longer than the warp, which continues behind it.
        ("#BPMS:0=120,2=-120,4=120;#STOPS:3=1;", "#BPMS:0=120;#WARPS:2=1,3=2;#STOPS:3=0.5;"),
        ("#BPMS:0=120,4=60;#STOPS:3=-1;", "#BPMS:0=120,3=60;#WARPS:3=1.5;"),
        ("#BPMS:0=120,3=99999999,5=120;#STOPS:0=-0.5;", "#BPMS:0=120;#WARPS:0=1,3=2;"),
        ("#BPMS:0=120,2=-120,3=120;#STOPS:2=-1;", "#BPMS:0=120;#WARPS:2=4;"),
        ("#BPMS:0=120;#STOPS:3.001=-1.001;", "#BPMS:0=120;#WARPS:3=2;"),
        ("#BPMS:4=240,2=-120,0=120;", "#BPMS:0=120,2=240;#WARPS:2=6;"),
        ("#BPMS:0=120;#STOPS:6=0.25,3=-1,1=0.5;", "#BPMS:0=120;#STOPS:1=0.5,6=0.25;#WARPS:3=2;"),
    ] {
        assert_same(&sm(old, "dance-single", notes), &ssc(warp, "", notes));
    }
}

/// `ProcessBPMsAndStops`.
#[test]
fn endless_warp_skips_the_rest_of_the_chart() {
    let all = sm("#BPMS:0=120,2=-120;", "dance-single", "1000\n0100\n0010\n0001\n,\n1111");
    assert_same(&all, &notes("1000\n0100\n0000\n0000"));
    let nothing = sm("#BPMS:0=120;#STOPS:0=-9000;", "dance-single", MEASURE);
    assert!(refusal(&nothing).contains("no notes"));
}

/// `ProcessBPMsAndStops` and `TidyUpData`: there is always a first BPM.
#[test]
fn bpms_before_the_first_beat_and_missing_ones() {
    for (timing, plain) in [
        ("#BPMS:0=120,2=0;", BPM),
        ("#BPMS:0=0,1=150;", "#BPMS:0=150;"),
        ("#BPMS:-1=-5,0=120;", BPM),
        ("#BPMS:-1=120;", BPM),
        ("#BPMS:2=150;", "#BPMS:0=150;"),
        ("#BPMS:0=120;#DELAYS:1=-1,2=0.5;", "#BPMS:0=120;#DELAYS:2=0.5;"),
        ("", "#BPMS:0=60;"),
        ("#BPMS:;", "#BPMS:0=60;"),
        ("#BPMS:0=NaN;", "#BPMS:0=60;"),
        ("#BPMS:0=120;#STOPS:inf=1;", "#BPMS:0=120;#STOPS:0=1;"),
        ("#BPMS:0=100;#BPMS:0=120;", BPM),
        ("#BPMS:0=120;#STOPS:1=1;#FREEZES:2=1;", "#BPMS:0=120;#STOPS:2=1;"),
        ("#BPMS:0=120;#DELAYS:1=1;#DELAYS:2=1;", "#BPMS:0=120;#DELAYS:1=1,2=1;"),
        ("#BPMS:0=120=3,0=120;", BPM),
        ("#BPMS:0==120,,=;", BPM),
    ] {
        let [text, plain] = [timing, plain].map(|timing| sm(timing, "dance-single", MEASURE));
        assert_same(&text, &plain);
    }
}

/// `ProcessBPMsAndStops`. The note hash is relative to the first note; only the ROX file shows the offset.
#[test]
fn stop_before_the_first_beat_moves_the_offset() {
    let chart = |timing| only(&sm(timing, "dance-single", MEASURE));
    let moved = chart("#OFFSET:-1;#BPMS:0=120,9=0;#STOPS:-1=-0.25,-0.5=0.75;");
    let plain = chart("#OFFSET:-1.5;#BPMS:0=120;");
    assert_ne!(chart("#BPMS:0=120;").rox, plain.rox);
    assert_eq!((moved.hash, moved.rox), (plain.hash, plain.rox));
}

/// `SSCLoader::ProcessBPMs`, `ProcessStops`, `ProcessDelays`, `ProcessWarps` and `ProcessFakes`.
#[test]
fn ssc_entries_that_do_nothing_are_ignored() {
    for (song, chart, plain_song, plain_chart) in [
        ("#BPMS:0=120,2=-60,3=240;", "", "#BPMS:0=120,3=240;", ""),
        ("#BPMS:0=120;#STOPS:1=-1,2=0.5,-1=3;", "", "#BPMS:0=120;#STOPS:2=0.5;", ""),
        ("#BPMS:0=120;#DELAYS:1=-1;", "", BPM, ""),
        ("#BPMS:0=120;#WARPS:1=-1;#FAKES:1=-1;", "", BPM, ""),
        ("#BPMS:0=60;", "#BPMS:0=120,1=0;#STOPS:2=-1,3=1;", "#BPMS:0=60;", "#BPMS:0=120;#STOPS:3=1;"),
        ("#BPMS:0=120;#STOPS:1=0.5;", "#STOPS:2=-1;", "#BPMS:0=120;#STOPS:1=0.5;", ""),
        ("#BPMS:0=120;#STOPS:1=0.5;#STOPS:2=0.5;", "", "#BPMS:0=120;#STOPS:1=0.5,2=0.5;", ""),
    ] {
        assert_same(&ssc(song, chart, MEASURE), &ssc(plain_song, plain_chart, MEASURE));
    }
}

/// `IsWarpAtRow` and `IsFakeAtRow`.
#[test]
fn notes_in_warps_and_fakes_are_not_judged() {
    for (timing, measures, judged) in [
        ("#FAKES:1=2;", MEASURE, "1000\n0000\n0000\n0001"),
        // In single precision the warp ends after the row of the last note.
        ("#WARPS:2.666667=0.666667;", "1000\n0100\n0010\n0001\n1000\n0100", "1000\n0100\n0010\n0001\n00\n00"),
    ] {
        let timing = format!("{BPM}{timing}");
        assert_same(&ssc(&timing, "", measures), &ssc(&timing, "", judged));
    }
}

/// `TimingData::empty`: any change of its own gives a chart all timing of its own, 60 BPM without `#BPMS`.
#[test]
fn charts_with_any_own_timing_have_all_of_their_own() {
    let song = "#BPMS:0=120;#STOPS:1=1;";
    for own in [
        "#LABELS:0=x;",
        "#TICKCOUNTS:0=4;",
        "#COMBOS:0=1;",
        "#SCROLLS:0=1;",
        "#SPEEDS:0=1=0;",
        "#TIMESIGNATURES:0=4=4;",
        "#FAKES:99=1;",
    ] {
        assert_same(&ssc(song, own, MEASURE), &ssc("#BPMS:0=60;", "", MEASURE));
    }
    for nothing in [
        "#FAKES:0=0.5,0=0.01;",
        "#TIMESIGNATURES:0=0=4;",
        "#TIMESIGNATURES:1r=4=4;",
        "#SPEEDS:0=1=-1=0;",
        "#BPMS:;",
        "#OFFSET:3;",
        "#SCROLLS:-1=1;",
        "#LABELS:0;",
        "#ATTACKS:0=1;",
        "#VERSION:0.83;",
    ] {
        assert_same(&ssc(song, nothing, MEASURE), &ssc(song, "", MEASURE));
    }
    // Before version 0.7 charts have no timing.
    let old = format!("#VERSION:0.69;{song}");
    assert_same(&ssc(&old, "#BPMS:0=200;", MEASURE), &ssc(song, "", MEASURE));
}

/// `LoadFromSimfile` of both loaders.
#[test]
fn tags_after_notes_belong_to_the_song() {
    let late = sm("", "dance-single", MEASURE) + "#BPMS:0=120;#TITLE:Late;";
    assert_same(&late, &notes(MEASURE));
    assert_eq!(only(&late).metadata.title, "Late");
    let late = ssc("#BPMS:0=60;", "", MEASURE) + "#BPMS:0=120;";
    assert_same(&late, &ssc(BPM, "", MEASURE));
    // The notes of the first chart are in another file.
    let other = ssc(BPM, "#STEPFILENAME:a;#NOTEDATA:;#STEPSTYPE:dance-single;", MEASURE);
    assert_eq!((decoded(&other).charts.len(), decoded(&other).refused.len()), (1, 1));
    // Within a chart a second `#NOTEDATA` means nothing.
    assert_same(&ssc(BPM, "#STOPS:1=1;#NOTEDATA:;", MEASURE), &ssc("", "#STOPS:1=1;", MEASURE));
}

/// `AddSegment` moves a BPM before others if it makes the next one redundant.
#[test]
fn bpms_that_the_game_misreads_are_refused() {
    assert!(refusal(&ssc("#BPMS:8=100,16=120,0=120;", "", MEASURE)).contains("BPMs out of order"));
    assert_same(&ssc("#BPMS:2=100,0=120;", "", MEASURE), &ssc("#BPMS:0=120,2=100;", "", MEASURE));
}

/// `LoadFromSMNoteDataStringWithPlayer`.
#[test]
fn cells_are_read_as_in_the_game() {
    let deep = "1000\n0100\n0010\n0001,\n1000\n0100";
    for (measures, plain) in [
        ("10001\n01\n0010\n0001,\n1000\n0100", deep),
        ("1[23]000\n0K[4]00\n0010\n0001[5", "1000\n0000\n0010\n0001"),
        ("1000\r\n \t0100 \r\n\0\n0010\0\r\n0001\r\n", MEASURE),
        ("  // measure 0\n1000 // a, b\n0100\n0010\n0001\n//", MEASURE),
        ("F000\nL100\nM010\n0001", "0000\n1100\n0010\n0001"),
        ("1000\n0100\nx010\nm001", MEASURE),
        // Leading commas of an `.sm` file are nothing, since its measures are trimmed.
        ("\n,\n1000\n0100\n0010\n0001", MEASURE),
        ("1000\n0100\n0010\n0001,,,1000\n0100", deep),
        ("1000\n0100\n0010\n0001,\n,1000\n0100", "1000\n0100\n0010\n0001,\n0000\n,1000\n0100"),
        ("1000\n0100\n0010\n0001,//\n,1000\n0100", "1000\n0100\n0010\n0001,\n0000\n,1000\n0100"),
        ("1000\n0100\n0010\n0001:1111", MEASURE),
        // Keysounds that play by themselves replace notes, and long notes do not see them.
        ("1000\n2000\nK000\n3000", "1000\n2000\n0000\n3000"),
    ] {
        assert_same(&notes(measures), &notes(plain));
    }
    // Those of an `.ssc` file are not trimmed.
    let leading = ssc("#BPMS:0=120;#STOPS:4=1;", "", &format!("\n,\n{MEASURE}"));
    assert_same(&leading, &ssc("#BPMS:0=120;#STOPS:4=1;", "", &format!("0000\n,\n{MEASURE}")));
}

/// `IsHoldNoteAtRow`.
#[test]
fn tails_end_the_nearest_head() {
    for (measures, plain) in [
        ("2000\n2000\n3000\n1000", "0000\n2000\n3000\n1000"),
        ("2000\n1000\n3000\n1000", "0000\n1000\n0000\n1000"),
        ("2000\nM000\n3000\n1000", "0000\n0000\n0000\n1000"),
        ("2000\nF000\n3000\n1000", "0000\n0000\n0000\n1000"),
        ("2000\n3000\n3000\n1000", "2000\n3000\n0000\n1000"),
        ("3000\n1000\n2000\n0000", "0000\n1000\n0000\n0000"),
        ("2000\n0000\n4000\n3000\n1000", "0000\n0000\n0000\n0000\n1000"),
    ] {
        let with_tap = |measures: &str| notes(&format!("0001\n{measures}"));
        assert_same(&with_tap(measures), &with_tap(plain));
    }
}

/// A measure of 256 lines has two lines on some rows: the later note counts, and an end belongs to the note
/// before them.
#[test]
fn of_two_lines_on_a_row_the_later_note_counts() {
    let line_64 = |cells: [&str; 2]| {
        let mut lines = vec!["0000"; 256];
        lines[0] = "0001";
        (lines[62], lines[63]) = (cells[0], cells[1]);
        notes(&lines.join("\n"))
    };
    // Lines 62 and 63 are 46.5 and 47.25 rows: both are row 46 or 47.
    let row_of = |line: f32| (line / 256.0 * 192.0).round_ties_even();
    assert_eq!((row_of(62.0), row_of(63.0)), (46.0, 47.0));
    let line_61 = |cells: [&str; 2]| {
        let mut lines = vec!["0000"; 256];
        lines[0] = "2001";
        (lines[61], lines[62]) = (cells[0], cells[1]);
        notes(&lines.join("\n"))
    };
    assert_eq!((row_of(61.0), row_of(62.0)), (46.0, 46.0));
    assert_same(&line_61(["1010", "M000"]), &line_61(["M010", "0000"]));
    assert_same(&line_61(["3000", "0100"]), &line_61(["0100", "3000"]));
    assert_same(&line_61(["K000", "3000"]), &line_61(["0000", "3000"]));
    assert_same(&line_64(["1000", "0100"]), &line_64(["1000", "0100"]));
}

/// `g_StepsTypeInfos`, `LoadFromTokens` and `SetStepsType`.
#[test]
fn step_types_of_4_to_7_columns_are_read() {
    for (step_type, keys) in [
        ("dance-single", 4),
        ("dance-solo", 6),
        ("pump-single", 5),
        ("pump-halfdouble", 6),
        ("kb7-single", 7),
        ("ez2-single", 5),
        ("ez2-single-hard", 5),
        ("ez2-real", 7),
        ("para-single", 5),
        ("para", 5),
        ("bm-single5", 6),
        ("bm-versus5", 6),
        ("maniax-single", 4),
        ("techno-single4", 4),
        ("techno-single5", 5),
        ("pnm-five", 5),
        ("kickbox-human", 4),
        ("kickbox-quadarm", 4),
        ("kickbox-insect", 6),
        (" \tDANCE-Single\r\n", 4),
    ] {
        assert_eq!(only(&sm(BPM, step_type, "1111111")).numbers.keys.get(), keys, "{step_type}");
    }
    for (step_type, reason) in [
        ("dance-double", "unsupported key count 8"),
        ("dance-threepanel", "unsupported key count 3"),
        ("lights-cabinet", "unknown step type \"lights-cabinet\""),
        ("", "unknown step type \"\""),
        ("PARA", "unknown step type \"PARA\""),
    ] {
        assert!(refusal(&sm(BPM, step_type, "1111")).contains(reason), "{step_type}");
    }
    for step_type in ["para", " dance-single", "ez2-single-hard"] {
        let text = ssc(BPM, "", MEASURE).replace("dance-single", step_type);
        assert!(refusal(&text).contains("unknown step type"), "{step_type}");
    }
}

#[test]
fn charts_without_enough_parameters_are_ignored() {
    let short = "#NOTES:dance-single::Hard:1:0;".to_owned();
    assert!(refusal(&short).contains("the file has no charts"));
    assert_eq!(decoded(&(short + &notes(MEASURE))).refused, []);
}

/// `GetDisplayFullTitle` and `GetTranslitFullTitle`.
#[test]
fn subtitles_belong_to_titles() {
    for (tags, title, romanised) in [
        ("#TITLE:A;", "A", None),
        ("#TITLE:A;#SUBTITLE:(B);", "A (B)", None),
        ("#TITLE:A;#SUBTITLE:B;#TITLETRANSLIT:a;", "A B", Some("a B")),
        ("#TITLE:A;#SUBTITLE:B;#SUBTITLETRANSLIT:b;", "A B", Some("A b")),
        ("#TITLE: A ;#SUBTITLE: ;", "A", None),
        ("#TITLE:A;#TITLETRANSLIT:A;", "A", None),
        ("#SUBTITLE:B;", "B", None),
    ] {
        for text in [notes(MEASURE), ssc(BPM, "", MEASURE)] {
            let metadata = only(&text.replace("#TITLE:Song;", tags)).metadata;
            assert_eq!((metadata.title.as_str(), metadata.title_romanised.as_deref()), (title, romanised));
        }
    }
}

/// The exception: cells of `StepF2`.
#[test]
fn note_attributes_are_ignored() {
    for attribute in ['n', 'v', 's', 'h'] {
        let row =
            format!("0{{1|{attribute}|0|0}}000\n{{2|{attribute}|0|0}}0000\n00{{M|n|0|0}}00\n{{3|n|0|0}}0001");
        let plain = "01000\n20000\n00M00\n30001";
        assert_same(&sm(BPM, "pump-single", &row), &sm(BPM, "pump-single", plain));
    }
    let attributes = "{1|n|0|0}000\n0S00\n00V0\n000{H|n|0|0}";
    assert_same(&ssc(BPM, "", attributes), &ssc(BPM, "", MEASURE));
    // Only charts with such cells have these notes.
    assert_same(&notes("S100\n0{100 // {1|n|0|0}"), &notes("0100\n0010"));
}

#[test]
fn fake_notes_are_ignored() {
    for (measures, plain) in [
        ("{1|n|1|0}000\n0100\n0010\n0001", "0000\n0100\n0010\n0001"),
        // A fake long note and its tail.
        ("1000\n{2|n|1|0}000\n{3|n|1|0}000\n0001", "1000\n0000\n0000\n0001"),
        ("1000\n{2|h|1|0}000\n3000\n0001", "1000\n0000\n0000\n0001"),
        // The flag of the tail has no effect.
        ("1000\n{2|n|0|0}000\n{3|n|1|0}000\n0001", "1000\n2000\n3000\n0001"),
    ] {
        assert_same(&notes(measures), &notes(plain));
        assert_same(&ssc(BPM, "", measures), &ssc(BPM, "", plain));
    }
    for note in ['X', 'Y', 'Z', 'x', 'y', 'z'] {
        assert_same(&notes(&format!("1{{{note}|v|1|0}}00\n0001")), &notes("1000\n0001"));
    }
}

#[test]
fn unknown_attributes_are_refused() {
    // A note of a second player, an undocumented flag, malformed cells, and unterminated ones.
    for cell in ["{X|n|0|0}", "{1|n|2|0}", "{1e0}", "{11|n|0|0}", "{1|n|0|0", "{}", "{1|n}", "{é|n|0|0}"] {
        let measures = format!("{{1|n|0|0}}000\n{cell}000\n0000\n0000");
        assert!(refusal(&notes(&measures)).contains("note attributes of an unknown kind"), "{cell}");
    }
}
