//! Files that are hashed.

use chart_index_client::{FileError, Hashed, RefusalKind, hash_file, hash_folder};

const CHART: &str = "osu file format v14\n\n[General]\nMode: 3\n\n[Metadata]\nTitle:Test\nVersion:Hard\n\n[Difficulty]\n\
                     CircleSize:4\n\n[TimingPoints]\n0,500,4,1,0,100,1,0\n\n[HitObjects]\n64,192,1000,1,0,0:0:0:0:\n";

#[test]
fn files_are_hashed_by_their_names() {
    let found = hash_file("a/b.OSU", CHART.as_bytes()).unwrap();
    let [Hashed::Chart(chart)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&*chart.file, &*chart.title, &*chart.difficulty), ("a/b.OSU", "Test", "Hard"));
    assert_eq!((chart.keys.get(), chart.variant), (4, None));
    for (name, kind) in [("a.qua", RefusalKind::UnknownGameMode), ("a.osz", RefusalKind::UnreadableArchive)] {
        let found = hash_file(name, b"Mode: no archive").unwrap();
        let [Hashed::Refused(refused)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&*refused.file, refused.kind), (name, kind));
    }
    for name in ["a.txt", "osu", ""] {
        assert!(matches!(hash_file(name, b""), Err(FileError::OtherFile(other)) if other == name));
    }
}

#[test]
fn folders_are_read_in_the_order_of_their_names() {
    let root = tempfile::tempdir().unwrap();
    for (file, content) in [("b/2.osu", CHART), ("b/1.osu", ""), ("a.txt", CHART), ("c.osu", CHART)] {
        let file = root.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
    let found = hash_folder(root.path()).unwrap().map(|found| match found.unwrap() {
        Hashed::Chart(chart) => (chart.file, true),
        Hashed::Refused(refused) => (refused.file, false),
    });
    let path = |name: &str| root.path().join(name).display().to_string();
    let expected = [("b/1.osu", false), ("b/2.osu", true), ("c.osu", true)];
    assert_eq!(found.collect::<Vec<_>>(), expected.map(|(name, is_chart)| (path(name), is_chart)));
    assert!(matches!(hash_folder(path("a.txt")), Err(FileError::OtherFile(_))));
    assert!(matches!(hash_folder(path("none")), Err(FileError::Read { .. })));
}
