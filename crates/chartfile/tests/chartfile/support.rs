//! Shared helpers: finding chart files on disk and decoding them.

use std::fs;
use std::path::{Path, PathBuf};

use chart_index_chartfile::{ChartFormat, DecodedFile, Refusal, decode, inspect_rox};
use chart_index_domain::NoteHash;
use chart_index_rox::preview;
use serde_json::Value;

pub(crate) fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All chart files below `root`, sorted by path; paths are relative to it.
pub(crate) fn chart_files(root: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = files_below(root)
        .into_iter()
        .filter(|path| ChartFormat::from_path(path.to_str().expect("a UTF-8 path")).is_some())
        .collect();
    files.sort();
    files
}

/// All files below `root`; paths are relative to it.
pub(crate) fn files_below(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).expect("a readable folder") {
            let entry = entry.expect("a readable entry");
            let path = folder.join(entry.file_name());
            if entry.file_type().expect("a file type").is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found
}

/// Decodes the file at `path` and checks the invariants of every decoded file.
pub(crate) fn decode_file(path: &Path) -> Result<DecodedFile, Refusal> {
    let format = ChartFormat::from_path(path.to_str().expect("a UTF-8 path")).expect("a chart file");
    let decoded = decode(format, &fs::read(path).expect("a readable file"))?;
    assert!(!decoded.charts.is_empty(), "{}", path.display());
    for chart in &decoded.charts {
        let rox = chart.rox.as_deref().expect("a ROX file");
        let inspected = inspect_rox(rox).expect("a readable ROX file");
        let name = format!("{}: {}", path.display(), chart.metadata.difficulty);
        assert_eq!((inspected.hash, inspected.numbers), (chart.hash, chart.numbers), "{name}");
        assert_eq!(inspected.variant, chart.variant, "{name}");
        assert_eq!(Some(inspected.analysis), chart.analysis, "{name}");
        assert_eq!(Some(inspected.curve), chart.curve, "{name}");
        assert_eq!(preview_hash(&preview(rox).expect("a preview")), chart.hash, "{name}");
    }
    Ok(decoded)
}

/// The note hash of a preview: written from its documentation, without the code that writes previews.
pub(crate) fn preview_hash(json: &[u8]) -> NoteHash {
    let preview: Value = serde_json::from_slice(json).expect("JSON");
    let mut notes = Vec::new();
    for (column, numbers) in (0_u8..).zip(preview["columns"].as_array().expect("columns")) {
        let mut start_ms = 0_u32;
        for number in numbers.as_array().expect("an array") {
            let number = number.as_i64().expect("an integer");
            let milliseconds = u32::try_from(number.abs()).expect("milliseconds");
            if number < 0 {
                *notes.last_mut().expect("a note before its duration") =
                    (start_ms, column, 1, start_ms + milliseconds);
            } else {
                start_ms += milliseconds;
                notes.push((start_ms, column, 0_u8, 0));
            }
        }
    }
    notes.sort_unstable();
    let mut bytes = vec![u8::try_from(preview["keys"].as_u64().expect("keys")).expect("a key count")];
    for (start_ms, column, kind, end_ms) in notes {
        bytes.extend(start_ms.to_le_bytes());
        bytes.extend([column, kind]);
        if kind == 1 {
            bytes.extend(end_ms.to_le_bytes());
        }
    }
    NoteHash::from_bytes(*blake3::hash(&bytes).as_bytes())
}

/// An `.osu` file with these timing points and hit objects.
pub(crate) fn osu(keys: u8, timing: &str, objects: &str) -> String {
    format!(
        "osu file format v14\n\n[General]\nMode: 3\n\n[Metadata]\nTitle:Test\nArtist:Tester\nCreator:Someone\n\
         Version:Easy\n\n[Difficulty]\nCircleSize:{keys}\n\n[TimingPoints]\n{timing}\n\n[HitObjects]\n{objects}\n"
    )
}

/// Decodes a file that must have exactly one chart and no refused ones.
pub(crate) fn only_chart(format: ChartFormat, text: &str) -> chart_index_domain::ChartDraft {
    let mut decoded = decode(format, text.as_bytes()).unwrap_or_else(|refusal| panic!("{refusal}\n{text}"));
    assert_eq!((decoded.charts.len(), decoded.refused.len()), (1, 0), "{text}");
    decoded.charts.remove(0)
}
