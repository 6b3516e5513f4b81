//! Metadata, numbers and refusals of each format.

use chart_index_chartfile::{ChartFormat, Refusal, decode, decode_skipping_stored_rox};
use chart_index_domain::{ChartDraft, ChartNumbers, InvalidKeyCount, SourceRef};

use crate::support::{only_chart, osu};

const TAP: &str = "64,192,1000,1,0,0:0:0:0:";

fn osu_with(metadata: &str) -> String {
    osu(4, "0,500,4,1,0,100,1,0", TAP).replace("Title:Test\n", metadata)
}

fn qua(head: &str, timing: &str, notes: &str) -> String {
    format!("{head}\nTimingPoints:\n{timing}\nHitObjects:\n{notes}\n")
}

fn simfile(header: &str, charts: &[(&str, &str)]) -> String {
    let mut text = format!("#TITLE:Song;\n#ARTIST:Band;\n#CREDIT:Author;\n{header}\n");
    for (step_type, measures) in charts {
        text += &format!("#NOTES:\n{step_type}:\nabout:\nHard:\n7:\n0,0,0,0,0:\n{measures}\n;\n");
    }
    text
}

fn refusal(format: ChartFormat, text: &str) -> Refusal {
    decode(format, text.as_bytes()).expect_err(text)
}

/// The numbers of a 4-key chart with these timing points and hit objects.
fn numbers(timing: &str, objects: &str) -> ChartNumbers {
    only_chart(ChartFormat::Osu, &osu(4, timing, objects)).numbers
}

#[test]
fn original_and_romanised_names_are_read() {
    for (metadata, title, romanised) in [
        ("Title:Senritsu\nTitleUnicode:旋律\n", "旋律", Some("Senritsu")),
        ("Title:Same\nTitleUnicode:Same\n", "Same", None),
        ("Title:Plain\n", "Plain", None),
        ("Title:Hidden\nTitleUnicode:\n", "Hidden", None),
        ("Title:Hidden\nTitleUnicode:   \n", "Hidden", None),
        ("Title:\nTitleUnicode:\n", "", None),
        ("Title:a\0b\u{1b}[0m\n", "ab[0m", None),
    ] {
        let names = only_chart(ChartFormat::Osu, &osu_with(metadata)).metadata;
        assert_eq!(
            (names.title.as_str(), names.title_romanised.as_deref()),
            (title, romanised),
            "{metadata:?}"
        );
    }
    let header = "#TITLE:あ;#TITLETRANSLIT:A;#ARTISTTRANSLIT:Band;#BPMS:0=120;";
    let names = only_chart(ChartFormat::Sm, &simfile(header, &[("dance-single", "1000")])).metadata;
    assert_eq!((names.title.as_str(), names.title_romanised.as_deref()), ("あ", Some("A")));
    assert_eq!((names.artist.as_str(), names.artist_romanised), ("Band", None));
    assert_eq!((names.creator.as_str(), names.difficulty.as_str()), ("Author", "Hard"));
}

#[test]
fn ids_of_unpublished_charts_are_dropped() {
    for (set, chart, expected) in [
        ("577617", "1234", (Some(577_617), Some(1234))),
        ("-1", "0", (None, None)),
        ("0", "-1", (None, None)),
        ("x", "", (None, None)),
    ] {
        let osu = osu_with(&format!("BeatmapID:{chart}\nBeatmapSetID:{set}\n"));
        let qua = qua(
            &format!(
                "MapId: {}\nMapSetId: {}\nMode: Keys4",
                chart.parse().unwrap_or(-1),
                set.parse().unwrap_or(-1)
            ),
            "- Bpm: 120",
            "- Lane: 1",
        );
        for draft in [only_chart(ChartFormat::Osu, &osu), only_chart(ChartFormat::Qua, &qua)] {
            let declared = draft.declared_source.map(|source| source.reference);
            assert_eq!(declared, expected.0.and_then(SourceRef::from_number), "{set}");
            assert_eq!(draft.alpha_beatmap_id, expected.1, "{chart}");
        }
    }
}

#[test]
fn tags_are_split_at_commas_or_else_at_spaces() {
    let tags = |list: &str| {
        let head = format!("Mode: Keys4\nTags: {list}");
        only_chart(ChartFormat::Qua, &qua(&head, "- Bpm: 120", "- Lane: 1")).metadata.tags
    };
    assert_eq!(tags("chordjack, cj, electronic dance music"), ["chordjack", "cj", "electronic dance music"]);
    assert_eq!(tags("one two"), ["one", "two"]);
    assert_eq!(only_chart(ChartFormat::Osu, &osu_with("Tags:a b  c\n")).metadata.tags, ["a", "b", "c"]);
}

#[test]
fn length_counts_and_average_density() {
    let beat = "0,500,4,1,0,100,1,0";
    for (objects, notes, lns, length_ms, density_avg) in [
        (TAP, 1, 0, 0, "0"),
        ("64,192,1000,1,0,\n192,192,4000,1,0,", 2, 0, 3000, "0.667"),
        ("64,192,1000,128,0,9000:0:0:0:0:\n192,192,4000,1,0,", 2, 1, 8000, "0.25"),
    ] {
        let numbers = numbers(beat, objects);
        assert_eq!((numbers.notes, numbers.lns, numbers.length_ms), (notes, lns, length_ms), "{objects}");
        assert_eq!(numbers.density_avg.to_string(), density_avg, "{objects}");
    }
}

#[test]
fn density_window_is_one_second_half_open() {
    let peak = |times: &[u32]| {
        let objects: String = times.iter().map(|time| format!("64,192,{time},1,0,\n")).collect();
        numbers("0,500,4,1,0,100,1,0", &objects).density_peak
    };
    for (times, expected) in [
        (&[0, 1000][..], 1.0),
        (&[0, 999], 2.0),
        (&[0, 500, 999, 1000, 1400, 1499], 5.0),
        (&[0, 2000, 4000], 1.0),
    ] {
        assert!((peak(times) - expected).abs() < f64::EPSILON, "{times:?}");
    }
}

#[test]
#[expect(clippy::float_cmp, reason = "rounded numbers compare exactly")]
fn main_bpm_applies_for_the_longest_time() {
    let bpms = |timing: &str, last_ms: u32| {
        let objects = format!("64,192,1000,1,0,\n192,192,1000,128,0,{last_ms}:0:0:0:0:");
        let numbers = numbers(timing, &objects);
        [numbers.bpm_min, numbers.bpm_main, numbers.bpm_max]
    };
    let (slow, fast) = ("600,4,1,0,100,1,0", "300,4,1,0,100,1,0");
    for (timing, last_ms, expected) in [
        (format!("0,{slow}"), 5000, [100.0, 100.0, 100.0]),
        // 100 for 1 s and 200 for 3 s.
        (format!("0,{slow}\n2000,{fast}"), 5000, [100.0, 200.0, 200.0]),
        // On a tie, 2 s each, the higher BPM.
        (format!("0,{fast}\n3000,{slow}"), 5000, [100.0, 200.0, 200.0]),
        (format!("0,{slow}\n3000,{fast}"), 5000, [100.0, 200.0, 200.0]),
        // Total time counts: 100 for 1 + 2 s, 200 for 2 s.
        (format!("0,{slow}\n2000,{fast}\n4000,{slow}"), 6000, [100.0, 100.0, 200.0]),
        // The first point applies before its time; time before the first note and after the last does not
        // count.
        (format!("4000,{slow}\n4500,{fast}"), 5000, [100.0, 100.0, 200.0]),
        (format!("-90000,{fast}\n900,{slow}\n5000,{fast}\n90000,{fast}"), 5000, [100.0, 100.0, 200.0]),
        // Of several timing changes at the same time the first one applies.
        (format!("0,{slow}\n0,{fast}"), 5000, [100.0, 100.0, 100.0]),
        // Points are sorted.
        (format!("4500,{fast}\n0,{slow}"), 5000, [100.0, 100.0, 200.0]),
    ] {
        assert_eq!(bpms(&timing, last_ms), expected, "{timing}");
    }
}

#[test]
fn chart_without_length_has_the_bpm_of_its_first_note() {
    let numbers = numbers("0,600,4,1,0,100,1,0\n5000,300,4,1,0,100,1,0", TAP);
    let bpms = [numbers.bpm_min, numbers.bpm_main, numbers.bpm_max];
    assert_eq!(bpms.map(|bpm| bpm.to_string()), ["100", "100", "200"]);
}

#[test]
fn defective_osu_files_have_the_hash_of_the_plain_one() {
    let beat = "0,500,4,1,0,100,1,0";
    let plain = only_chart(ChartFormat::Osu, &osu(4, beat, "64,192,1000,1,0,\n192,192,2000,1,0,")).hash;
    for (name, text) in [
        ("first BPM late", osu(4, "1500,500,4,1,0,100,1,0", "64,192,1000,1,0,\n192,192,2000,1,0,")),
        (
            "scroll change before a late BPM",
            osu(
                4,
                "900,-50,4,1,0,100,0,0\n1500,-25,4,1,0,100,0,0\n1600,500,4,1,0,100,1,0",
                "64,192,1000,1,0,\n192,192,2000,1,0,",
            ),
        ),
        ("notes out of order", osu(4, beat, "192,192,2000,1,0,\n64,192,1000,1,0,")),
        ("long note without length", osu(4, beat, "64,192,1000,128,0,1000:0:0:0:0:\n192,192,2000,1,0,")),
        ("long note without end", osu(4, beat, "64,192,1000,128,0\n192,192,2000,1,0,")),
        ("byte order mark", format!("\u{feff}{}", osu(4, beat, "64,192,1000,1,0,\n192,192,2000,1,0,"))),
        ("left of the playfield", osu(4, beat, "-200,192,1000,1,0,\n192,192,2000,1,0,")),
        ("Windows line endings", osu(4, beat, "64,192,1000,1,0,\n192,192,2000,1,0,").replace('\n', "\r\n")),
    ] {
        assert_eq!(only_chart(ChartFormat::Osu, &text).hash, plain, "{name}");
    }
    let right = |x: u32| only_chart(ChartFormat::Osu, &osu(7, beat, &format!("{x},192,1000,1,0,"))).hash;
    assert_eq!(right(512), right(500));
}

#[test]
fn defective_qua_files_have_the_hash_of_the_plain_one() {
    let plain = qua("Mode: Keys4", "- Bpm: 120", "- StartTime: 10\n  Lane: 2");
    let hash = only_chart(ChartFormat::Qua, &plain).hash;
    for text in [
        qua("Mode: Keys4", "- Bpm: 120\n  Signature: 4", "- StartTime: 10\n  Lane: 2"),
        qua("Mode: Keys4", "- Signature: 3\n  Bpm: 120", "- StartTime: 10\n  Lane: 2\n  EndTime: 0"),
        qua("Mode: Keys4", "- Bpm: 120\n  Signature: 7", "- StartTime: 10\n  Lane: 2\n  EndTime: -10"),
        qua("Mode: Keys4", "- Bpm: 120\n  Signature: Triple", "- StartTime: 10\n  Lane: 2"),
        qua("Mode: Keys4", "- StartTime: 5000\n  Bpm: 120", "- StartTime: 10\n  Lane: 2"),
        format!("\u{feff}{plain}"),
        plain.replace('\n', "\r\n"),
    ] {
        assert_eq!(only_chart(ChartFormat::Qua, &text).hash, hash, "{text}");
    }
    for mode in ["\"Keys4\"", "Keys4 # four", "keys4", "1"] {
        let text = qua(&format!("Mode: {mode}"), "- Bpm: 120", "- StartTime: 10\n  Lane: 2");
        assert_eq!(only_chart(ChartFormat::Qua, &text).hash, hash);
    }
}

#[test]
fn qua_modes_are_1_to_10_keys() {
    for keys in [5, 6] {
        let text = qua(&format!("Mode: Keys{keys}"), "- Bpm: 120", &format!("- Lane: {keys}"));
        assert_eq!(only_chart(ChartFormat::Qua, &text).numbers.keys.get(), keys);
    }
    let unknown = [
        "Keys300",
        "Keys256",
        "Keys260",
        "Keys0",
        "Keys11",
        "Keys+5",
        "Keys05",
        "Keys",
        "Keys99999999999",
        "11",
        "Other",
    ];
    for mode in unknown {
        let text = qua(&format!("Mode: {mode}"), "- Bpm: 120", "- Lane: 1");
        assert_eq!(refusal(ChartFormat::Qua, &text), Refusal::UnknownGameMode { mode: mode.to_owned() });
    }
    let eight = qua("Mode: Keys8", "- Bpm: 120", "- Lane: 1");
    assert_eq!(refusal(ChartFormat::Qua, &eight), InvalidKeyCount(8).into());
}

#[test]
fn unsupported_charts_are_refused() {
    let text = simfile(
        "#BPMS:0=120;",
        &[
            ("dance-double", "10000000"),
            ("dance-single", "1000\n0100\n0010\n0001"),
            ("dance-single", "0000"),
            ("unknown-game", "1000"),
            ("dance-single", "1000\n0100\n0010\n0001"),
            ("pump-single", "00001"),
        ],
    );
    let decoded = decode(ChartFormat::Sm, text.as_bytes()).expect("charts");
    let keys: Vec<u8> = decoded.charts.iter().map(|chart| chart.numbers.keys.get()).collect();
    assert_eq!(keys, [4, 5], "duplicate notes are ignored");
    let refused: Vec<String> =
        decoded.refused.iter().map(|refused| format!("{}: {}", refused.chart, refused.reason)).collect();
    assert_eq!(
        refused,
        [
            "dance-double Hard: unsupported key count 8 (only 4 to 7 are indexed)",
            "dance-single Hard: no notes",
            "unknown-game Hard: cannot be decoded: unknown step type \"unknown-game\"",
        ]
    );
}

#[test]
fn refusals_name_the_reason() {
    let beat = "0,500,4,1,0,100,1,0";
    let mode = osu(4, beat, TAP).replace("Mode: 3", "Mode: 0");
    let inside = osu(4, beat, "64,192,1000,128,0,3000:0:0:0:0:\n64,192,2000,1,0,");
    let only_mines = simfile("#BPMS:0=120;", &[("dance-single", "M00M\n4000\n3000\n0000")]);
    for (format, text, expected) in [
        (ChartFormat::Osu, mode, "unsupported game mode 0 (only mode 3 is indexed)"),
        (ChartFormat::Osu, osu(4, beat, ""), "no notes"),
        (ChartFormat::Osu, osu(3, beat, TAP), "unsupported key count 3 (only 4 to 7 are indexed)"),
        (ChartFormat::Osu, osu(18, beat, TAP), "unsupported key count 18 (only 4 to 7 are indexed)"),
        (ChartFormat::Osu, inside, "note inside a long note in column 0 (from 0) at 2000 ms"),
        (ChartFormat::Osu, String::new(), "cannot be decoded: the file is empty"),
        (ChartFormat::Osu, "[General]".into(), "unsupported game mode 0 (only mode 3 is indexed)"),
        (
            ChartFormat::Qua,
            qua("Mode: Keys4", "- Bpm: 120", "- Lane: 5"),
            "note in column 4 (from 0) of a chart with 4 keys",
        ),
        (ChartFormat::Qua, "- [".into(), "cannot be decoded: "),
        (ChartFormat::Sm, only_mines, "no indexable chart: dance-single Hard: no notes"),
        (ChartFormat::Sm, String::new(), "no indexable chart: the file has no charts"),
        (ChartFormat::Ssc, String::new(), "no indexable chart: the file has no charts"),
    ] {
        let refusal = refusal(format, &text).to_string();
        assert!(refusal.starts_with(expected), "{refusal:?} should be {expected:?}");
    }
}

#[test]
fn stored_rox_files_are_not_encoded_again() {
    let text = osu(4, "0,500,4,1,0,100,1,0", "64,192,1000,1,0");
    let encoded = decode(ChartFormat::Osu, text.as_bytes()).expect("a chart").charts.remove(0);
    let skipped =
        decode_skipping_stored_rox(ChartFormat::Osu, text.as_bytes(), &|hash| *hash == encoded.hash);
    let skipped = skipped.expect("a chart").charts.remove(0);
    assert!(encoded.rox.is_some() && skipped.rox.is_none());
    assert_eq!(skipped, ChartDraft { rox: None, analysis: None, curve: None, ..encoded });
}

#[test]
fn chart_without_timing_has_60_bpm() {
    let numbers = numbers("0,-100,4,1,0,100,0,0", TAP);
    assert_eq!(
        [numbers.bpm_min, numbers.bpm_main, numbers.bpm_max].map(|bpm| bpm.to_string()),
        ["60", "60", "60"]
    );
}

#[test]
fn osu_charts_that_cannot_be_played_or_determined_are_refused() {
    let beat = "0,500,4,1,0,100,1,0";
    for (object, expected) in [
        ("64,192,1000,8,0,2000", "notes not determined by the file: the column of a spinner is random"),
        (
            "64,192,1000,2,0,B|1:1|9:9|20:1,1",
            "notes not determined by the file: a slider is as long as its curve",
        ),
        ("64,192,1000,129,0,2000:0:0:0:0:", "not played by its game: an object of several types"),
    ] {
        let text = osu(4, beat, &format!("{TAP}\n{object}"));
        assert_eq!(refusal(ChartFormat::Osu, &text).to_string(), expected, "{object}");
        let other_mode = text.replace("Mode: 3", "Mode: 1");
        assert_eq!(refusal(ChartFormat::Osu, &other_mode), Refusal::OtherGameMode { mode: 1 });
    }
}

#[test]
fn qua_charts_that_the_game_refuses_are_refused() {
    let long_note = "- StartTime: 10\n  Lane: 1\n  EndTime: 10";
    let mine = format!("{long_note}\n  Type: Mine");
    let sound = "- Lane: 1\n  KeySounds:\n  - Sample: 1";
    let keys = |field: &str| format!("Mode: Keys4\n{field}");
    let samples = keys("CustomAudioSamples:\n- Path: a.wav\nSoundEffects:\n- Sample: 1\n  Volume: 101");
    for (head, timing, notes, expected) in [
        (
            keys("QuaVersion: 2"),
            "- Bpm: 1",
            "- Lane: 1",
            "not played by its game: a version of the format above 1",
        ),
        (keys(""), "- Bpm: 1", " []", "no notes"),
        (keys(""), "- Bpm: 1", "- Type: Mine\n  Lane: 1", "no notes"),
        (keys(""), " []", "- Lane: 1", "no BPM"),
        (
            keys(""),
            "- Bpm: 1",
            long_note,
            "not played by its game: a long note whose end is not after its start",
        ),
        (keys(""), "- Bpm: 1", &mine, "not played by its game: a long note whose end is not after its start"),
        (
            keys(""),
            "- Bpm: 1",
            sound,
            "not played by its game: a sound without a sample, or with a wrong volume",
        ),
        (
            samples,
            "- Bpm: 1",
            sound,
            "not played by its game: a sound without a sample, or with a wrong volume",
        ),
        (keys(""), "- Bpm: 1", "- Lane: 0", "not played by its game: a note in a lane below 1"),
        (
            keys("HasScratchKey: true"),
            "- Bpm: 1",
            "- Lane: 6",
            "note in column 5 (from 0) of a chart with 5 keys",
        ),
        (keys("Bookmarks:"), "- Bpm: 1", "- Lane: 1", "cannot be decoded: Bookmarks: a list was expected"),
        (keys(""), "- Bpm: x", "- Lane: 1", "cannot be decoded: Bpm: a number was expected"),
        (keys(""), "- Bpm: 1", "- Lane: 1.0", "cannot be decoded: Lane: an integer was expected"),
        (
            keys(""),
            "- Bpm: 1",
            "- Type: Mines\n  Lane: 1",
            "cannot be decoded: Type: a known name was expected",
        ),
    ] {
        let text = qua(&head, timing, notes);
        assert_eq!(refusal(ChartFormat::Qua, &text).to_string(), expected, "{text}");
    }
}

#[test]
fn qua_sounds_and_scroll_groups_are_read() {
    let head = "Mode: Keys4\nHasScratchKey: on\nCustomAudioSamples:\n- Path: a.wav\nTimingGroups:\n  a: !ScrollGroup\n    \
                InitialScrollVelocity: 1\nSoundEffects:\n- StartTime: 5.5\n  Sample: 1\n  Volume: 100";
    let notes =
        "- Lane: 5\n  HitSound: Whistle, Clap\n  KeySounds:\n  - Sample: 1\n    Volume: 0\n  TimingGroup: a";
    assert_eq!(only_chart(ChartFormat::Qua, &qua(head, "- Bpm: .inf", notes)).numbers.keys.get(), 5);
}
