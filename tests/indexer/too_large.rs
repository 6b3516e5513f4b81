//! Chartsets that exceed a limit.

use super::*;

#[tokio::test]
async fn too_large_chartsets_are_refused_with_the_count() {
    let database = Database::new().await;
    let library = Library::new();
    for file in 0..1_100 {
        library.file(&format!("alpha/1 files/{file}.osu"), "no chart");
        library.file(&format!("loose {file}.osu"), "no chart");
    }
    for chart in 0..513 {
        library.osu(&format!("alpha/2 charts/{chart}.osu"), ChartSpec::numbered(chart));
    }
    for chart in 0..65 {
        let creator = format!("creator {chart}");
        library.osu(
            &format!("alpha/3 creators/{chart}.osu"),
            ChartSpec { creator, ..ChartSpec::numbered(chart) },
        );
    }
    library.pack("alpha/2 charts", "alpha/2 charts.osz");
    library.file("alpha/4 bytes/a.osu", vec![b' '; 16 << 20]);
    for file in ["b", "c", "d", "e"] {
        library.file(&format!("alpha/4 bytes/{file}.osu"), vec![b' '; 16 << 20]);
    }
    library.osu("alpha/5 fine/a.osu", ChartSpec::numbered(1));
    let (summary, _) = database.ingest_with_report(&library, &[]);
    for (path, reason) in [
        ("", "1100 chart files (limit 1024)"),
        ("alpha/1 files", "1100 chart files (limit 1024)"),
        ("alpha/2 charts", "513 charts (limit 512)"),
        ("alpha/3 creators", "65 creators (limit 64)"),
        ("alpha/4 bytes", "83886080 bytes of chart files (limit 67108864)"),
    ] {
        let expected = format!("refused: {path}: chartset too large: {reason}\n");
        assert!(summary.contains(&expected), "{expected}{summary}");
    }
    assert!(
        summary.contains("1 chartset added, 0 unchanged, 0 updated (1 chart); 5 files refused"),
        "{summary}"
    );
}
