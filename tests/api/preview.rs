//! `GET /api/charts/{hash}/preview` (docs/api.md, "Chart preview").

use chart_index_tests::notes_of_preview;

use super::*;

/// A chart whose preview is larger than the smallest body that is sent as gzip.
fn long_chart() -> ChartSpec {
    let notes = (0..600).map(|n| (n * 97, u8::try_from(n % 4).unwrap(), (n % 5 == 0).then_some(n * 97 + 60)));
    ChartSpec { notes: notes.collect(), ..ChartSpec::default() }
}

fn library() -> Library {
    let library = Library::new();
    library.osu("alpha/1 one/a.osu", long_chart());
    library
}

async fn one_chart() -> (Index, String) {
    static ONE_CHART: Shared<Instance> = Shared::empty();
    (Index::shared(&ONE_CHART, library).await, long_chart().note_hash())
}

/// A client can rebuild the bytes of the note hash from a preview.
#[tokio::test]
async fn preview_reproduces_the_note_hash() {
    let (index, hash) = one_chart().await;
    let response = index.get(&format!("/api/charts/{hash}/preview")).await;
    assert_eq!(response.status, 200);
    let preview = response.json();
    let chart = index.get(&format!("/api/charts/{hash}")).await.json()["chart"].clone();
    assert_eq!((&preview["version"], &preview["keys"]), (&1.into(), &chart["keys"]));
    assert_eq!(preview["lengthMs"], chart["lengthMs"]);
    assert_eq!(preview["timing"][0][1], chart["bpmMain"]);
    assert_eq!(preview["scroll"], serde_json::json!([]));
    let notes = notes_of_preview(&preview);
    assert_eq!(notes.len(), 600);
    assert_eq!(ChartSpec { notes, ..long_chart() }.note_hash(), hash);
}

#[tokio::test]
async fn preview_is_immutable_json_with_gzip() {
    let (index, hash) = one_chart().await;
    let path = format!("/api/charts/{hash}/preview");
    let gzip = index.client.get_with(&path, &[("accept-encoding", "gzip")]).await;
    let plain = index.get(&path).await;
    for (response, encoding) in [(&gzip, "gzip"), (&plain, "")] {
        assert_eq!(response.status, 200);
        for (name, value) in [
            ("content-type", "application/json"),
            ("content-encoding", encoding),
            ("cache-control", "public, max-age=31536000, immutable"),
            ("vary", "Accept-Encoding"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(response.header(name), value, "{name}");
        }
        let digest = blake3::hash(&response.body).to_hex();
        assert_eq!(response.header("etag"), format!("\"{}\"", &digest[..32]));
    }
    assert!(gzip.body.len() < plain.body.len());
}
