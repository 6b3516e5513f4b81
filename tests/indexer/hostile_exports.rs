//! `chart-indexer import` of exports that no instance writes, although their digests match.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::exports::{Exported, chartsets, forge_chartsets, forged, peak_memory};
use super::*;

/// The most memory of an import, in KiB.
const MAX_PEAK: u64 = 100 * 1024;
const MEBIBYTE: usize = 1024 * 1024;

/// Imports, and returns the exit code, the peak of the memory in KiB, and the standard error.
async fn import(database: &Database, export: &Path) -> (Option<i32>, u64, String) {
    let mut command = indexer_command(database.0.url(), &["import", export.to_str().unwrap()]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let (status, peak) = peak_memory(child).await;
    let mut text = String::new();
    stderr.read_to_string(&mut text).unwrap();
    (status.code(), peak, text)
}

/// As that of a chart file.
#[tokio::test]
async fn text_is_cleaned() {
    let exported = Exported::shared().await;
    let export = &exported.export;
    let mut lines = chartsets(export);
    let title = format!("\0 \u{7}{}", "x".repeat(5_015));
    lines[0]["chartset"]["charts"][0]["title"] = json!(title);
    let id = lines[0]["chartset"]["id"].as_str().unwrap().to_owned();
    let folder = forged(export, |folder| forge_chartsets(folder, &lines));
    let restored = Database::new().await;
    restored.run(&["import", folder.path().to_str().unwrap()]);
    let titles = format!(
        "SELECT max(char_length(title)), bool_or(title ~ '[[:cntrl:]]') FROM chartset_charts WHERE chartset_id = '{id}'"
    );
    assert_eq!(restored.0.psql(&titles), "1000|f");
}

#[tokio::test]
async fn long_lines_do_not_fill_the_memory() {
    let exported = Exported::shared().await;
    let export = &exported.export;
    let line = chartsets(export).remove(0);
    let lines = |count: usize, change: &dyn Fn(&mut Value)| {
        let lines = (0..count).map(|number| {
            let mut line = line.clone();
            line["chartset"]["id"] = json!(format!("{number:016x}"));
            line["chartset"].as_object_mut().unwrap().remove("exactSource");
            change(&mut line);
            line
        });
        lines.collect::<Vec<_>>()
    };
    let text = "x".repeat(15 * MEBIBYTE);
    let too_long = lines(80, &|line| line["chartset"]["charts"][0]["title"] = json!(text));
    let folder = forged(export, |folder| forge_chartsets(folder, &too_long));
    let restored = Database::new().await;
    let (code, peak, stderr) = import(&restored, folder.path()).await;
    assert!(peak > 0 && peak < MAX_PEAK, "{peak} KiB");
    assert_eq!((code, stderr.contains("line 1 of chartsets.ndjson.zst")), (Some(1), true), "{stderr}");

    // Fields of a later version, with as many values as fit into a line.
    let values = vec![Vec::<u8>::new(); 3 * MEBIBYTE / 3];
    let tags = vec![""; 3 * MEBIBYTE / 3];
    for (name, change) in [
        (
            "text",
            &(|line: &mut Value| line["chartset"]["charts"][0]["title"] = json!(text[..3 * MEBIBYTE]))
                as &dyn Fn(&mut Value),
        ),
        ("field", &|line: &mut Value| line["chartset"]["charts"][0]["later"] = json!(values)),
        ("tags", &|line: &mut Value| line["chartset"]["charts"][0]["tags"] = json!(tags)),
    ] {
        let lines = lines(12, change);
        let folder = forged(export, |folder| forge_chartsets(folder, &lines));
        let (_, peak, stderr) = import(&restored, folder.path()).await;
        assert!(peak > 0 && peak < MAX_PEAK, "{name}: {peak} KiB {stderr}");
    }
}
