//! `chart-hash`.

use std::io::Write;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

/// Runs the program, and returns its exit code, the lines of its output, and its errors.
fn hash(paths: &[&str]) -> (Option<i32>, Vec<serde_json::Value>, String) {
    let run = IndexerRun::run(&mut hash_command(paths));
    let lines = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (run.code, lines, run.stderr)
}

#[test]
fn charts_of_files_folders_and_archives_are_hashed() {
    let library = Library::new();
    let charts = [4, 7].map(|keys| ChartSpec { keys, ..ChartSpec::default() });
    let [first, second] = charts.map(|chart| library.osu(&format!("folder/{}k.osu", chart.keys), chart));
    library.file("folder/b.txt", "not a chart");
    library.file("folder/z.qua", "Mode: Keys9\nTimingPoints:\n- Bpm: 120\nHitObjects:\n- Lane: 1\n");
    let root = library.root();
    let mut archive = ZipWriter::new(std::fs::File::create(root.join("folder/c.osz")).unwrap());
    archive.start_file("sub/4k.osu", SimpleFileOptions::default()).unwrap();
    archive.write_all(&std::fs::read(root.join("folder/4k.osu")).unwrap()).unwrap();
    archive.finish().unwrap();

    let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let (code, lines, errors) = hash(&[&path("folder"), &path("folder/7k.osu")]);
    assert_eq!((code, &*errors), (Some(0), ""));
    let files: Vec<_> = lines.iter().map(|line| line["file"].as_str().unwrap().to_owned()).collect();
    let expected =
        ["folder/4k.osu", "folder/7k.osu", "folder/c.osz/sub/4k.osu", "folder/z.qua", "folder/7k.osu"];
    assert_eq!(files, expected.map(path));
    let (first, second) = (first.note_hash(), second.note_hash());
    let hashes: Vec<_> = lines.iter().filter_map(|line| line["hash"].as_str()).collect();
    assert_eq!(hashes, [&*first, &second, &first, &second]);
    assert_eq!((&lines[1]["keys"], &lines[1]["noteHashVersion"]), (&7.into(), &1.into()));
    assert_eq!((&lines[1]["title"], &lines[1]["difficulty"]), (&"Title".into(), &"Hard".into()));
    assert_eq!(lines[3]["kind"], "key_count");
    assert!(lines[3]["reason"].as_str().unwrap().contains('9'), "{}", lines[3]);
}

/// The paths of the files below the root in lines of output.
fn files<'a>(lines: &'a [serde_json::Value], library: &Library) -> Vec<&'a str> {
    let root = format!("{}/", library.argument());
    lines.iter().map(|line| line["file"].as_str().unwrap().strip_prefix(&root).unwrap()).collect()
}

#[test]
fn archives_in_archives_are_hashed() {
    let library = Library::new();
    for set in ["one", "two"] {
        library.osu(&format!("sets/{set}/a.osu"), ChartSpec::default());
        library.pack(&format!("sets/{set}"), &format!("sets/{set}.osz"));
    }
    library.pack("sets", "sets.zip");
    let (code, lines, errors) = hash(&[&library.argument()]);
    assert_eq!((code, &*errors), (Some(0), ""));
    assert_eq!(
        files(&lines, &library),
        ["sets.zip/sets/one.osz/one/a.osu", "sets.zip/sets/two.osz/two/a.osu"]
    );
    assert!(lines.iter().all(|line| line["hash"] == ChartSpec::default().note_hash()), "{lines:?}");
    std::fs::create_dir(library.root().join("more")).unwrap();
    std::fs::rename(library.root().join("sets.zip"), library.root().join("more/sets.zip")).unwrap();
    library.pack("more", "more.zip");
    let (code, lines, _) = hash(&[&library.argument()]);
    let kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str()).collect();
    assert_eq!((code, kinds), (Some(0), vec![Some("nested_archive"); 2]));
}

/// The game reads no `.sm` file beside an `.ssc` file.
#[test]
fn sm_beside_ssc_is_hashed_only_if_named() {
    let library = Library::new();
    let simfile = "#BPMS:0=120;#NOTES:dance-single::Hard:1:0:1000;";
    let ssc = "#VERSION:0.83;#BPMS:0=120;#NOTEDATA:;#STEPSTYPE:dance-single;#NOTES:0100;";
    for (file, content) in [
        ("song/a.sm", simfile),
        ("song/b.SSC", ssc),
        ("song/sub/a.sm", simfile),
        ("none/a.sm", simfile),
        ("none/b.ssc", ""),
    ] {
        library.file(file, content);
    }
    let (_, lines, _) = hash(&[&library.argument()]);
    assert_eq!(files(&lines, &library), ["none/b.ssc", "song/b.SSC", "song/sub/a.sm"]);
    assert!(lines[0]["kind"].is_string(), "the `.sm` file is not read in place of this one: {}", lines[0]);
    library.pack("song", "packed.zip");
    let named = library.root().join("none/a.sm");
    let (_, lines, _) = hash(&[&library.argument(), named.to_str().unwrap()]);
    let expected = ["none/b.ssc", "packed.zip/song/b.SSC", "packed.zip/song/sub/a.sm", "none/a.sm"];
    assert_eq!(files(&lines, &library), expected);
}

#[test]
fn paths_that_cannot_be_hashed_are_errors() {
    let library = Library::new();
    library.file("notes.txt", "not a chart");
    let path = |name: &str| library.root().join(name).to_str().unwrap().to_owned();
    for (name, expected) in [("missing", "cannot read"), ("notes.txt", "neither a folder, a chart file nor")]
    {
        let (code, lines, errors) = hash(&[&path(name)]);
        assert_eq!((code, lines.len()), (Some(1), 0), "{name}: {errors}");
        assert!(errors.contains(expected) && errors.contains(name), "{name}: {errors}");
    }
}

/// The hashes are those that an ingest stores.
#[tokio::test]
async fn samples_have_the_hashes_of_the_index() {
    let database = Database::with_samples().await;
    let stored =
        database.0.psql("SELECT count(*), string_agg(encode(hash, 'hex'), '' ORDER BY hash) FROM charts");
    let (code, lines, errors) = hash(&[samples().to_str().unwrap()]);
    assert_eq!(code, Some(0), "{errors}");
    let hashes: std::collections::BTreeSet<_> =
        lines.iter().filter_map(|line| line["hash"].as_str()).collect();
    let joined: String = hashes.iter().copied().collect();
    assert_eq!(stored, format!("{}|{joined}", hashes.len()));
}
