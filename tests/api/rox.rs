//! `GET /api/charts/{hash}/rox` (docs/api.md, "ROX file").

use super::*;

async fn one_chart() -> (Index, String) {
    let library = Library::new();
    let chart = library.osu("alpha/1 one/a.osu", ChartSpec::default());
    (Index::new(library).await, chart.note_hash())
}

#[tokio::test]
async fn rox_file_is_an_immutable_attachment() {
    let (index, hash) = one_chart().await;
    let path = format!("/api/charts/{hash}/rox");
    let response = index.client.get_with(&path, &[("accept-encoding", "gzip, br, deflate")]).await;
    assert_eq!(response.status, 200);
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("content-disposition", &format!("attachment; filename=\"{hash}.rox\"")),
        ("cache-control", "public, max-age=31536000, immutable"),
        ("etag", &format!("\"{hash}\"")),
        ("content-length", &response.body.len().to_string()),
        ("x-content-type-options", "nosniff"),
        ("content-encoding", ""),
    ] {
        assert_eq!(response.header(name), value, "{name}");
    }
    assert_eq!(&response.body[..4], b"ROX\0");
    let chart = index.get(&format!("/api/charts/{hash}")).await.json();
    assert_eq!(chart["chart"]["roxBytes"], response.body.len());
}

/// The first file that is ingested determines the bytes permanently.
#[tokio::test]
async fn bytes_of_a_hash_never_change() {
    let (index, hash) = one_chart().await;
    let path = format!("/api/charts/{hash}/rox");
    let first = index.get(&path).await.body;
    let other = ChartSpec { title: "Another".into(), bpm: 99.0, ..ChartSpec::default() };
    index.library.osu("alpha/1 one/a.osu", other.clone());
    index.library.osu("alpha/2 two/a.osu", other);
    assert!(index.ingest().contains("1 chartset added, 0 unchanged, 1 updated"));
    assert_eq!(index.get(&path).await.body, first);
    let response = index.get(&format!("/api/charts/{hash}")).await.json();
    assert_eq!(
        (&response["chart"]["title"], &response["chart"]["bpmMain"]),
        (&"Another".into(), &150.0.into())
    );
}

/// The exception: an administrator replaces the file, whose tag is then not the hash.
#[tokio::test]
async fn replaced_file_has_another_tag() {
    let (index, hash) = one_chart().await;
    let (path, preview) = (format!("/api/charts/{hash}/rox"), format!("/api/charts/{hash}/preview"));
    let first = index.get(&path).await;
    let first_preview = index.get(&preview).await;
    let library = Library::new();
    let other = ChartSpec { title: "Another".into(), bpm: 99.0, ..ChartSpec::default() };
    library.osu("a.osu", other);
    library.osu("b.osu", ChartSpec::numbered(77));
    let file = |name: &str| library.root().join(name).to_str().unwrap().to_owned();
    let wrong = indexer(index.database.url(), &["replace-rox", &hash, "--from", &file("b.osu")]);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stderr.contains("it has no chart with these notes"), "{}", wrong.stderr);

    index.indexer(&["replace-rox", &hash, "--from", &file("a.osu")]);
    let is_new = async || Some(index.get(&path).await).filter(|response| response.body != first.body);
    let (replaced, _) = within(CHANGE_TIMEOUT, is_new).await;
    let tag = replaced.header("etag").to_owned();
    assert_ne!(tag, first.header("etag"));
    assert_eq!(replaced.header("cache-control"), "public, max-age=31536000, immutable");
    for (known, status) in [(&*tag, 304), (first.header("etag"), 200)] {
        let response = index.client.get_with(&path, &[("if-none-match", known)]).await;
        assert_eq!((response.status.as_u16(), response.header("etag")), (status, &*tag), "{known}");
    }
    let has_new = async || Some(index.get(&preview).await).filter(|new| new.body != first_preview.body);
    within(CHANGE_TIMEOUT, has_new).await;
    let known = async || {
        let known = index.get(&format!("/api/charts/{hash}")).await.json();
        (known["chart"]["bpmMain"] == 99.0).then_some(known)
    };
    let (known, _) = within(CHANGE_TIMEOUT, known).await;
    assert_eq!(known["chart"]["roxBytes"], replaced.body.len());
    assert!(index.indexer(&["verify"]).contains(", 0 findings"));

    // A ROX file is accepted as well.
    let original = library.root().join("original.rox");
    std::fs::write(&original, &first.body).unwrap();
    index.indexer(&["replace-rox", &hash, "--from", original.to_str().unwrap()]);
    let is_old = async || Some(index.get(&path).await).filter(|response| response.body == first.body);
    let (original, _) = within(CHANGE_TIMEOUT, is_old).await;
    assert_ne!(original.header("etag"), first.header("etag"), "it replaces another file");
    let unknown = indexer(
        index.database.url(),
        &["replace-rox", &ChartSpec::numbered(77).note_hash(), "--from", &file("b.osu")],
    );
    assert_eq!(
        (unknown.code, unknown.stderr.contains("is not in the index")),
        (Some(1), true),
        "{}",
        unknown.stderr
    );
}
