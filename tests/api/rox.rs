//! `GET /api/charts/{hash}/rox`.

use super::*;

async fn one_chart() -> (Index, String) {
    let library = Library::new();
    let chart = library.osu("alpha/1 one/a.osu", ChartSpec::default());
    (Index::over(library).await, chart.note_hash())
}

/// Decisions, "ROX": every header of the file.
#[tokio::test]
async fn a_rox_file_is_an_immutable_attachment() {
    let (index, hash) = one_chart().await;
    let path = format!("/api/charts/{hash}/rox");
    let answer = index.client.get_with(&path, &[("accept-encoding", "gzip, br, deflate")]).await;
    assert_eq!(answer.status, 200);
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("content-disposition", &format!("attachment; filename=\"{hash}.rox\"")),
        ("cache-control", "public, max-age=31536000, immutable"),
        ("etag", &format!("\"{hash}\"")),
        ("content-length", &answer.body.len().to_string()),
        ("x-content-type-options", "nosniff"),
        ("content-encoding", ""),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    assert_eq!(&answer.body[..4], b"ROX\0");
    let chart = index.get(&format!("/api/charts/{hash}")).await.json();
    assert_eq!(chart["chart"]["roxBytes"], answer.body.len());
}

/// "Written once per note hash and never rewritten: the first file ingested wins."
#[tokio::test]
async fn the_bytes_behind_a_hash_never_change() {
    let (index, hash) = one_chart().await;
    let path = format!("/api/charts/{hash}/rox");
    let first = index.get(&path).await.body;
    let other = ChartSpec { title: "Another".into(), bpm: 99.0, ..ChartSpec::default() };
    index.library.osu("alpha/1 one/a.osu", other.clone());
    index.library.osu("alpha/2 two/a.osu", other);
    assert!(index.ingest().contains("1 chartset added, 0 unchanged, 1 updated"));
    assert_eq!(index.get(&path).await.body, first);
    let answer = index.get(&format!("/api/charts/{hash}")).await.json();
    assert_eq!((&answer["chart"]["title"], &answer["chart"]["bpmMain"]), (&"Another".into(), &150.0.into()));
}

/// "404 for unknown and removed, with `Cache-Control: public, max-age=60`; a removed chart is 404 even when the
/// client sends `If-None-Match`."
#[tokio::test]
async fn unknown_and_removed_charts_have_no_rox_file() {
    let (index, hash) = one_chart().await;
    let missing = |answer: Response| {
        assert_eq!(answer.status, 404);
        assert_eq!(answer.header("cache-control"), "public, max-age=60");
        assert_eq!(answer.header("content-type"), "application/problem+json");
    };
    missing(index.get(&format!("/api/charts/{}/rox", "0".repeat(64))).await);
    let (path, tag) = (format!("/api/charts/{hash}/rox"), format!("\"{hash}\""));
    assert_eq!(index.client.get_with(&path, &[("if-none-match", &tag)]).await.status, 304);
    index.indexer(&["remove", "chart", &hash]);
    missing(index.answers(&path, 404).await);
    missing(index.client.get_with(&path, &[("if-none-match", &tag)]).await);
    missing(index.client.get_with(&path, &[("if-none-match", "*")]).await);
    assert_eq!(index.get(&format!("/api/charts/{hash}")).await.json()["status"], "unknown");
    index.indexer(&["restore", "chart", &hash]);
    index.answers(&path, 200).await;
}
