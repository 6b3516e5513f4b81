//! The identity of charts (docs/formats/note-hash.md).

use super::*;

/// The hash depends on the notes only, not on format, file name, audio or metadata. Mines do not count.
#[tokio::test]
async fn same_notes_are_one_chart_in_all_formats_and_folders() {
    let library = Library::new();
    let notes = vec![(0, 0, None), (500, 1, None), (1000, 2, Some(1500))];
    let chart = library.osu("alpha/1 one/a.osu", ChartSpec { notes, bpm: 120.0, ..ChartSpec::default() });
    library.osu("alpha/1 one/b.osu", ChartSpec { difficulty: "again".into(), ..chart.clone() });
    library.file(
        "beta/2 pack/song/song.sm",
        "#TITLE:Other;\n#ARTIST:Someone;\n#CREDIT:else;\n#OFFSET:-1.234;\n#BPMS:0.000=120.000;\n\
         #NOTES:\n dance-single:\n :\n Hard:\n 9:\n 0:\n1000\n0100\n0020\n0M30\n;\n",
    );
    library.file(
        "alpha/3 three/three.qua",
        "AudioFile: b.mp3\nMode: Keys4\nTitle: Third\nTimingPoints:\n- StartTime: 7000\n  Bpm: 60\nHitObjects:\n\
         - StartTime: 7000\n  Lane: 1\n- StartTime: 7500\n  Lane: 2\n- StartTime: 8000\n  Lane: 3\n  EndTime: 8500\n",
    );
    let index = Index::new(library).await;
    let response = index.get(&format!("/api/charts/{}", chart.note_hash())).await.json();
    assert_eq!(response["status"], "known");
    let sources: Vec<_> =
        response["sources"].as_array().unwrap().iter().map(|source| source["ref"].as_str()).collect();
    assert_eq!(sources, [Some("1"), Some("3"), Some("2")]);
    assert_eq!(response["chart"]["noteHashVersion"], 1);
    // docs/formats/records.md, "Chartsets and ids".
    assert_eq!(index.list("set=1").await["items"][0]["chartCount"], 1);
}
