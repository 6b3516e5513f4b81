//! Tests with real charts. The charts belong to their creators and are not part of the project, so these tests
//! are ignored by default. `CHARTS_DIR` names the folder, by default `../shared/charts` next to the workspace.

use std::env;
use std::path::{Path, PathBuf};

use chart_index_chartfile::{InvalidNotes, Refusal, RefusedChart};
use chart_index_domain::{InvalidKeyCount, NoteHash};

use crate::support::{chart_files, decode_file, workspace_root};

/// The folder of real charts.
pub(crate) fn corpus() -> PathBuf {
    let root =
        env::var_os("CHARTS_DIR").map_or_else(|| workspace_root().join("../shared/charts"), PathBuf::from);
    assert!(root.is_dir(), "no charts at {}", root.display());
    root
}

pub(crate) fn must_be_refused(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "no id - to be refused")
}

fn hashes(path: &Path) -> Vec<NoteHash> {
    let decoded = decode_file(path).unwrap_or_else(|refusal| panic!("{}: {refusal}", path.display()));
    decoded.charts.iter().map(|chart| chart.hash).collect()
}

/// The chart files in a folder of the corpus whose name starts with `folder`.
fn files_in(root: &Path, folder: &str) -> Vec<PathBuf> {
    let files: Vec<PathBuf> = chart_files(root)
        .into_iter()
        .filter(|path| path.to_str().expect("a UTF-8 path").replace('\\', "/").starts_with(folder))
        .map(|path| root.join(path))
        .collect();
    assert!(!files.is_empty(), "{folder} is missing");
    files
}

#[test]
#[ignore = "needs the real charts: make test-system"]
fn every_real_chart_survives_the_rox_round_trip() {
    let root = corpus();
    let mut count = 0;
    for path in chart_files(&root).into_iter().filter(|path| !must_be_refused(path)) {
        let decoded =
            decode_file(&root.join(&path)).unwrap_or_else(|refusal| panic!("{}: {refusal}", path.display()));
        for chart in &decoded.charts {
            let numbers = chart.numbers;
            assert!(!chart.metadata.title.is_empty() || numbers.notes < 200, "{}", path.display());
            assert!(numbers.bpm_min <= numbers.bpm_main && numbers.bpm_main <= numbers.bpm_max);
            assert!(numbers.lns <= numbers.notes);
        }
        count += decoded.charts.len();
    }
    assert!(count > 0);
}

#[test]
#[ignore = "needs the real charts: make test-system"]
fn unsupported_real_files_are_refused() {
    let root = corpus();
    let refusals = files_in(&root, "alpha/no id - to be refused").into_iter().map(|path| {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a UTF-8 name").to_owned();
        (name, decode_file(&path).expect_err("a refusal"))
    });
    for (name, refusal) in refusals {
        let expected = match name.as_str() {
            "another game mode" => Refusal::OtherGameMode { mode: 1 },
            "no notes" => InvalidNotes::NoNotes.into(),
            "note inside a long note" => Refusal::NoteInsideLongNote { column: 0, time_ms: 545 },
            other => panic!("{other}: {refusal}"),
        };
        assert_eq!(refusal, expected);
    }
}

#[test]
#[ignore = "needs the real charts: make test-system"]
fn osu_and_qua_of_one_chart_have_one_hash() {
    let root = corpus();
    let osu = files_in(&root, "alpha/577617");
    let qua = files_in(&root, "alpha/no id - megalovania");
    assert_eq!((osu.len(), qua.len()), (1, 1));
    assert_eq!(hashes(&osu[0]), hashes(&qua[0]));
    let text = &decode_file(&osu[0]).expect("a chart").charts[0].metadata;
    assert_eq!((text.title.as_str(), text.artist.as_str()), ("Piano 7K BMS Pack", "Various Artists"));
    assert_eq!((&text.title_romanised, &text.artist_romanised), (&None, &None));
}

#[test]
#[ignore = "needs the real charts: make test-system"]
fn sm_and_ssc_of_one_song_have_the_same_charts() {
    let root = corpus();
    let files = files_in(&root, "beta/5 ");
    let [sm, ssc, _] = &files[..] else { panic!("{files:?}") };
    assert_eq!(hashes(sm), hashes(ssc));
    assert_eq!(hashes(sm).len(), 5);
    for path in [sm, ssc] {
        let refused = decode_file(path).expect("charts").refused;
        assert!(!refused.is_empty());
        for RefusedChart { chart, reason } in refused {
            assert!(chart.starts_with("dance-double "), "{chart}");
            assert_eq!(reason, InvalidKeyCount(8).into());
        }
    }
}
