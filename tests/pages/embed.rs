//! The preview of a chart for frames of other sites.

use super::*;

#[tokio::test]
async fn only_the_embedded_preview_may_be_framed() {
    let library = Library::new();
    let hash = library.osu("alpha/1 set/a.osu", ChartSpec::numbered(1)).note_hash();
    let site = Site::with(&library, &[("PUBLIC_URL", "https://charts.example")]).await;
    let path = format!("/embed/charts/{hash}");
    let policy_of = async |path: &str| site.get(path).await.header("content-security-policy").to_owned();
    let (embedded, page) = (policy_of(&path).await, policy_of(&format!("/charts/{hash}")).await);
    assert!(page.ends_with("; frame-ancestors 'none'"), "{page}");
    assert_eq!(embedded, page.replace("frame-ancestors 'none'", "frame-ancestors *"));
    assert_eq!(policy_of(&format!("/embed/charts/{}", "0".repeat(64))).await, page, "a page with an error");
    let html = site.html(&path).await;
    for part in [
        "<meta name=\"robots\" content=\"noindex\">",
        &format!("<a href=\"/charts/{hash}\" target=\"_blank\" rel=\"noopener\">"),
        &format!("data-preview=\"/api/charts/{hash}/preview\""),
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let code = format!("&#60;iframe src=&#34;https://charts.example/embed/charts/{hash}&#34;");
    assert!(site.html(&format!("/charts/{hash}")).await.contains(&code));
}

#[tokio::test]
async fn unknown_and_malformed_hashes_have_none() {
    let site = Site::new(&Library::new()).await;
    for (hash, status) in [("0".repeat(64), 404), ("x".to_owned(), 400)] {
        assert_eq!(site.get(&format!("/embed/charts/{hash}")).await.status, status, "{hash}");
    }
    let page = site.get(&format!("/embed/charts/{}", "0".repeat(64))).await;
    assert_eq!(page.header("content-type"), HTML);
}
