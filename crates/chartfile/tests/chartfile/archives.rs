//! Reading ordinary, damaged and hostile archives.

use std::fs::File;
use std::io::{Cursor, Write};

use chart_index_chartfile::archive::{
    ArchiveReader, ArchivedFile, MAX_ARCHIVE_CHART_BYTES, MAX_CHART_FILES, MAX_ENTRIES,
    MAX_NESTED_ARCHIVE_BYTES, MAX_NESTED_BYTES, is_archive, read_chart_files,
};
use chart_index_chartfile::{ChartFormat, MAX_FILE_BYTES, Refusal, decode};
use encoding_rs::{EUC_KR, Encoding, SHIFT_JIS};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::support::workspace_root;

fn options() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Deflated)
}

fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    zip_with(options(), entries)
}

fn zip_with(options: SimpleFileOptions, entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        writer.start_file(*name, options).expect("a name that can be written");
        writer.write_all(content).expect("written");
    }
    writer.finish().expect("finished").into_inner()
}

fn read(archive: &[u8]) -> Result<Vec<ArchivedFile>, Refusal> {
    read_chart_files(Cursor::new(archive))
}

/// The paths, each with the content as text or the error. The path of an archive in the archive comes first,
/// with ` > `.
fn listed(archive: &[u8]) -> Vec<(String, String)> {
    let files = read(archive).expect("a readable archive");
    let text = |content: Result<Vec<u8>, Refusal>| match content {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(reason) => reason.to_string(),
    };
    files.into_iter().map(|file| (full_path(&file), text(file.content))).collect()
}

fn full_path(file: &ArchivedFile) -> String {
    file.archive.iter().map(|archive| format!("{archive} > ")).collect::<String>() + &file.path
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|&(path, content)| (path.to_owned(), content.to_owned())).collect()
}

/// Replaces every occurrence of `from`.
fn patched(archive: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = archive.to_vec();
    let offsets: Vec<usize> = bytes
        .windows(from.len())
        .enumerate()
        .filter(|(_, window)| *window == from)
        .map(|(at, _)| at)
        .collect();
    assert!(!offsets.is_empty());
    for offset in offsets {
        bytes[offset..offset + to.len()].copy_from_slice(to);
    }
    bytes
}

/// The offsets of the headers in the central directory.
fn directory_headers(archive: &[u8]) -> Vec<usize> {
    archive.windows(4).enumerate().filter(|(_, window)| window == b"PK\x01\x02").map(|(at, _)| at).collect()
}

#[test]
fn archives_are_recognised_by_extension() {
    for (path, expected) in [
        ("a.osz", true),
        ("a.olz", true),
        ("a.qp", true),
        ("a.smzip", true),
        ("a/B.ZIP", true),
        ("a.SmZip", true),
        ("a.rar", false),
        ("._a.osz", false),
        ("__MACOSX/a.zip", false),
        ("zip", false),
    ] {
        assert_eq!(is_archive(path), expected, "{path}");
    }
}

#[test]
fn only_chart_files_are_read_and_sorted() {
    let archive = zip_of(&[
        ("song b/steps.ssc", b"b"),
        ("song a/Steps.SM", b"a"),
        ("song a/._steps.sm", b"junk"),
        ("__MACOSX/song a/steps.sm", b"junk"),
        ("song a/.DS_Store", b"junk"),
        ("song a/audio.ogg", b"audio"),
        ("../../cover.png", b"image"),
        ("chart.osu", b"c"),
    ]);
    let expected = [("chart.osu", "c"), ("song a/Steps.SM", "a"), ("song b/steps.ssc", "b")];
    assert_eq!(listed(&archive), pairs(&expected));
}

/// The archive of one file, `bad`, with a name that the writer would not write, and of `good.osu`.
fn zip_with_name(name: &str) -> Vec<u8> {
    let placeholder = format!("{}.osu", "x".repeat(name.len() - 4));
    let archive = zip_of(&[(&placeholder, b"bad"), ("good.osu", b"good")]);
    patched(&archive, placeholder.as_bytes(), name.as_bytes())
}

#[test]
fn unsafe_paths_are_refused() {
    let unsafe_path = "unsafe path";
    for name in [
        "../up.osu",
        "a/../../up.osu",
        "/../a.osu",
        "C:/a.osu",
        "/C:/a.osu",
        "c:a.osu",
        "..\\up.osu",
        "C:\\a.osu",
    ] {
        let mut expected = pairs(&[(name, unsafe_path), ("good.osu", "good")]);
        expected.sort();
        assert_eq!(listed(&zip_with_name(name)), expected, "{name}");
    }
    let long = format!("{}.osu", "a".repeat(5000));
    let listed = listed(&zip_of(&[(&long, b"bad")]));
    assert_eq!(listed[0].1, unsafe_path);
    assert!(listed[0].0.len() < 1000);
}

#[test]
fn other_spellings_of_a_path_are_normalised() {
    for (name, path) in [
        ("/root.osu", "root.osu"),
        ("//a.osu", "a.osu"),
        ("a//b.osu", "a/b.osu"),
        ("./a.osu", "a.osu"),
        ("a/./b.osu", "a/b.osu"),
        ("a\\b.osu", "a/b.osu"),
        (".\\a\\\\b.osu", "a/b.osu"),
        ("\\\\a\\b.osu", "a/b.osu"),
    ] {
        let mut expected = pairs(&[(path, "bad"), ("good.osu", "good")]);
        expected.sort();
        assert_eq!(listed(&zip_with_name(name)), expected, "{name}");
    }
    let duplicate = pairs(&[("good.osu", "bad"), ("good.osu", "duplicate entry name")]);
    assert_eq!(listed(&zip_with_name("./good.osu")), duplicate);
}

#[test]
fn links_are_refused() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_symlink("link.osu", "/etc/passwd", options()).expect("written");
    writer.add_symlink("link.zip", "/etc/passwd", options()).expect("written");
    writer.start_file("good.osu", options()).expect("written");
    writer.write_all(b"good").expect("written");
    let archive = writer.finish().expect("finished").into_inner();
    let not_a_file = "not a regular file";
    let expected = [("good.osu", "good"), ("link.osu", not_a_file), ("link.zip > ", not_a_file)];
    assert_eq!(listed(&archive), pairs(&expected));
}

#[test]
fn archives_in_an_archive_are_read() {
    let deepest = zip_of(&[("a.osu", b"not read")]);
    let inner = zip_of(&[("b.osu", b"b"), ("s/a.osu", b"a"), ("deep.osz", &deepest), ("c.png", b"image")]);
    let encrypted = encrypted(&zip_of(&[("a.osu", b"content")]));
    let archive = zip_of(&[
        ("z.osu", b"z"),
        ("sets/one.osz", &inner),
        ("sets/two.SMZIP", &zip_of(&[("a.sm", b"sm"), ("a.ssc", b"ssc")])),
        ("broken.zip", b"PK no archive"),
        ("empty.qp", &zip_of(&[])),
        ("encrypted.olz", &encrypted),
        ("__MACOSX/sets/one.osz", b"junk"),
        ("xx/up.zip", &inner),
    ]);
    let archive = patched(&archive, b"xx/up.zip", b"../up.zip");
    let listed = listed(&archive);
    let expected = [
        ("z.osu", "z"),
        ("../up.zip > ", "unsafe path"),
        ("broken.zip > ", "unreadable archive: "),
        ("encrypted.olz > a.osu", "cannot be read: encrypted"),
        ("sets/one.osz > b.osu", "b"),
        ("sets/one.osz > deep.osz", "archive in an archive in an archive"),
        ("sets/one.osz > s/a.osu", "a"),
        ("sets/two.SMZIP > a.ssc", "ssc"),
    ];
    assert_eq!(listed.len(), expected.len(), "{listed:#?}");
    for ((path, content), (expected_path, expected)) in listed.iter().zip(expected) {
        assert_eq!(path, expected_path);
        assert!(
            content == expected || expected.ends_with(": ") && content.starts_with(expected),
            "{content}"
        );
    }
}

/// The archive with its first entry marked as encrypted: the lowest bit of the flags, in the directory and in
/// the header of the entry itself.
fn encrypted(archive: &[u8]) -> Vec<u8> {
    let first = directory_headers(archive)[0];
    changed(archive, &[(first + 8, archive[first + 8] | 1), (6, archive[6] | 1)])
}

fn changed(archive: &[u8], changes: &[(usize, u8)]) -> Vec<u8> {
    let mut archive = archive.to_vec();
    for &(at, value) in changes {
        archive[at] = value;
    }
    archive
}

/// `tests/cases/archives`, written from reports about archives that players have.
#[test]
fn cases_are_read() {
    for (archive, path) in [
        ("bzip2/pack.zip", "My Pack/Zip Song/song.sm"),
        ("dot-slash/pack.zip", "My Pack/Zip Song/song.sm"),
        ("extension-olz/set.olz", "chart.osu"),
        ("extension-qp/set.qp", "chart.qua"),
        ("leading-slash/pack.zip", "My Pack/Zip Song/song.sm"),
        ("osz-top-folder/set.osz", "123 Tester - Case/chart.osu"),
        ("pack-of-osz/pack.zip", "123456 Tester - Case.osz > chart.osu"),
        ("upper-ext/set.OSZ", "CHART.OSU"),
        ("zip-backslashes/pack.zip", "My Pack/Zip Song/song.sm"),
    ] {
        assert!(is_archive(archive), "{archive}");
        let location = workspace_root().join("crates/chartfile/tests/cases/archives").join(archive);
        let files = read_chart_files(File::open(location).expect("a case")).expect("a readable archive");
        let [file] = &files[..] else { panic!("{archive}: {files:?}") };
        assert_eq!(full_path(file), path, "{archive}");
        let format = ChartFormat::from_path(&file.path).expect("a chart file");
        let decoded = decode(format, file.content.as_ref().expect("content")).expect("a chart");
        assert_eq!(decoded.charts.len(), 1, "{archive}");
    }
}

#[test]
fn compression_methods_are_read() {
    let text = b"some content, some content, some other content".as_slice();
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for method in [CompressionMethod::Deflated, CompressionMethod::Bzip2, CompressionMethod::Zstd] {
        let inner = zip_with(stored.compression_method(method), &[("a.osu", text)]);
        assert!(!inner.windows(text.len()).any(|window| window == text), "{method}");
        let archive = zip_with(stored.compression_method(method), &[("a.osu", text), ("b.osz", &inner)]);
        let text = str::from_utf8(text).expect("text");
        assert_eq!(listed(&archive), pairs(&[("a.osu", text), ("b.osz > a.osu", text)]), "{method}");
    }
    // There is no writer of deflate64, which short texts like this one compress to the same bytes.
    let mut archive = zip_of(&[("a.osu", text)]);
    let first = directory_headers(&archive)[0];
    assert_eq!((archive[8], archive[first + 10]), (8, 8));
    (archive[8], archive[first + 10]) = (9, 9);
    assert_eq!(listed(&archive), pairs(&[("a.osu", str::from_utf8(text).expect("text"))]));
}

/// The paths, each with `read`, `refused` or `unreadable`.
fn outcomes(archive: &[u8]) -> Vec<(String, &'static str)> {
    let outcome = |content: &Result<Vec<u8>, Refusal>| match content {
        Ok(_) => "read",
        Err(error) if error.is_unreadable() => "unreadable",
        Err(_) => "refused",
    };
    let files = read(archive).expect("a readable archive");
    files.into_iter().map(|file| (file.path, outcome(&file.content))).collect()
}

#[test]
fn unreadable_entries_are_not_refused() {
    let archive = zip_of(&[("a.osu", b"some content"), ("b.osu", b"other content"), ("xx/c.osu", b"c")]);
    let archive = patched(&archive, b"xx/c.osu", b"../c.osu");
    let first = directory_headers(&archive)[0];
    let changed = |changes: &[(usize, u8)]| changed(&archive, changes);
    for (name, archive, reason) in [
        ("encrypted", encrypted(&archive), "encrypted"),
        ("checksum", changed(&[(first + 16, archive[first + 16] ^ 1)]), "Invalid checksum"),
        ("method", changed(&[(first + 10, 14), (8, 14)]), "ompression method not supported"),
        ("content", changed(&[(35, 0xff), (36, 0xff)]), ""),
    ] {
        let expected = [("../c.osu", "refused"), ("a.osu", "unreadable"), ("b.osu", "read")];
        assert_eq!(outcomes(&archive), expected.map(|(path, outcome)| (path.to_owned(), outcome)), "{name}");
        let message = &listed(&archive)[1].1;
        assert!(message.starts_with("cannot be read: ") && message.contains(reason), "{name}: {message}");
    }
}

#[test]
fn first_of_several_entries_with_one_name_is_read() {
    let archive = patched(&zip_of(&[("a.osu", b"first"), ("b.osu", b"second")]), b"b.osu", b"a.osu");
    assert_eq!(listed(&archive), pairs(&[("a.osu", "first"), ("a.osu", "duplicate entry name")]));
}

#[test]
fn declared_sizes_are_not_trusted() {
    let bomb = vec![b'0'; usize::try_from(MAX_FILE_BYTES).expect("fits") + 1];
    let mut archive = zip_of(&[("bomb.osu", &bomb), ("good.osu", b"good")]);
    assert!(archive.len() < 64 * 1024);
    let too_large = Refusal::FileTooLarge { limit: MAX_FILE_BYTES }.to_string();
    assert_eq!(listed(&archive), pairs(&[("bomb.osu", &too_large), ("good.osu", "good")]));
    // The directory declares 10 bytes.
    let first = directory_headers(&archive)[0];
    archive[first + 24..first + 28].copy_from_slice(&10_u32.to_le_bytes());
    let listed = listed(&archive);
    assert!(listed[0].1.len() < 1000, "refused");
    assert_eq!(listed[1].1, "good");
}

#[test]
fn total_size_of_chart_files_is_limited() {
    let bytes = vec![b'0'; usize::try_from(MAX_FILE_BYTES).expect("fits")];
    let count = MAX_ARCHIVE_CHART_BYTES / MAX_FILE_BYTES + 2;
    let names: Vec<String> = (0..count).map(|number| format!("{number:03}.osu")).collect();
    let entries: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &bytes[..])).collect();
    let refusal = Refusal::ArchiveTooLarge { what: "chart files", limit: MAX_ARCHIVE_CHART_BYTES };
    assert_eq!(read(&zip_of(&entries)), Err(refusal.clone()));
    let within = usize::try_from(MAX_ARCHIVE_CHART_BYTES / MAX_FILE_BYTES).expect("fits");
    assert_eq!(read(&zip_of(&entries[..within])).map(|files| files.len()), Ok(within));
    // In two archives in one.
    let (some, others) = entries.split_at(within / 2);
    assert_eq!(read(&zip_of(&[("a.zip", &zip_of(some)), ("b.zip", &zip_of(others))])), Err(refusal));
}

#[test]
fn size_of_archives_in_an_archive_is_limited() {
    let chart = zip_of(&[("a.osu", b"a")]);
    let within = usize::try_from(MAX_NESTED_ARCHIVE_BYTES).expect("fits");
    // Other bytes may precede an archive.
    let of_size = |size: usize| [vec![0; size - chart.len()], chart.clone()].concat();
    let archive = zip_of(&[("large.zip", &of_size(within)), ("larger.zip", &of_size(within + 1))]);
    let too_large = Refusal::FileTooLarge { limit: MAX_NESTED_ARCHIVE_BYTES }.to_string();
    assert_eq!(listed(&archive), pairs(&[("large.zip > a.osu", "a"), ("larger.zip > ", &too_large)]));

    let mut reader = ArchiveReader::default();
    for _ in 0..MAX_NESTED_BYTES / MAX_NESTED_ARCHIVE_BYTES / 2 {
        assert!(reader.read(Cursor::new(&archive)).is_ok());
    }
    let refusal = Refusal::ArchiveTooLarge { what: "archives in it", limit: MAX_NESTED_BYTES };
    assert_eq!(reader.read(Cursor::new(&archive)), Err(refusal));
}

#[test]
fn number_of_chart_files_is_limited() {
    let names: Vec<String> = (0..=MAX_CHART_FILES).map(|number| format!("{number}.osu")).collect();
    let mut entries: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
    assert_eq!(read(&zip_of(&entries)), Err(Refusal::ArchiveChartFiles { limit: MAX_CHART_FILES }));
    // Other files do not count.
    entries[0].0 = "audio.mp3";
    assert_eq!(read(&zip_of(&entries)).map(|files| files.len()), Ok(MAX_CHART_FILES));
    // Those in archives do.
    let archive = zip_of(&[("a.osz", &zip_of(&entries)), ("b.osz", &zip_of(&[("a.osu", b"a")]))]);
    assert_eq!(read(&archive), Err(Refusal::ArchiveChartFiles { limit: MAX_CHART_FILES }));
}

/// An archive with names in this encoding, as tools wrote them before UTF-8.
fn zip_with_names(names: &[&str], encoding: &'static Encoding) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let raw: Vec<Vec<u8>> = names.iter().map(|name| encoding.encode(name).0.into_owned()).collect();
    for (number, name) in raw.iter().enumerate() {
        writer.start_file(format!("{number:0>width$}", width = name.len()), options()).expect("written");
    }
    let mut archive = writer.finish().expect("finished").into_inner();
    for (number, name) in raw.iter().enumerate() {
        let placeholder = format!("{number:0>width$}", width = name.len());
        archive = patched(&archive, placeholder.as_bytes(), name);
    }
    archive
}

#[test]
fn names_of_other_encodings_are_decoded() {
    let japanese = ["夜明けの航路/表紙.osu", "夜明けの航路/能力.osu"];
    let korean = ["별빛 정원/가나다라.sm"];
    for (names, encoding) in [(&japanese[..], SHIFT_JIS), (&korean, EUC_KR)] {
        let paths: Vec<String> =
            listed(&zip_with_names(names, encoding)).into_iter().map(|file| file.0).collect();
        let mut expected = names.to_vec();
        expected.sort_unstable();
        assert_eq!(paths, expected, "{}", encoding.name());
    }
    // Code page 437, the default of the ZIP format.
    let archive = patched(&zip_of(&[("caf0.osu", b"a")]), b"caf0.osu", b"caf\x82.osu");
    assert_eq!(listed(&archive), pairs(&[("café.osu", "a")]));
}

#[test]
fn number_of_entries_is_limited() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for number in 0..=MAX_ENTRIES {
        writer.start_file(format!("{number}.osu"), stored).expect("written");
    }
    let archive = writer.finish().expect("finished").into_inner();
    assert_eq!(read(&archive), Err(Refusal::ArchiveEntries { limit: MAX_ENTRIES }));
    let archive = zip_of(&[("a.zip", &archive)]);
    assert_eq!(read(&archive), Err(Refusal::ArchiveEntries { limit: MAX_ENTRIES }));
}

#[test]
fn damaged_archives_are_refused() {
    let archive = zip_of(&[("a.osu", b"some content"), ("b.osu", b"other content")]);
    for damaged in [&b""[..], b"PK", b"not an archive at all", &archive[..archive.len() / 2]] {
        assert!(matches!(read(damaged), Err(Refusal::UnreadableArchive { .. })), "{damaged:?}");
    }
}

#[test]
fn damaged_archives_do_not_cause_panics() {
    let nested = zip_of(&[("d.osu", b"content")]);
    let archive = zip_of(&[
        ("a.osu", b"some content"),
        ("song/b.sm", b"other content"),
        ("c.qua", b""),
        ("d.osz", &nested),
    ]);
    for at in 0..archive.len() {
        for value in [0x00, 0xff, archive[at] ^ 0x01, archive[at] ^ 0x80] {
            let mut bytes = archive.clone();
            bytes[at] = value;
            assert_ne!(read(&bytes), Err(Refusal::DecoderPanicked), "byte {at} set to {value}");
        }
        _ = read(&archive[..at]);
    }
}
