//! The preview of a chart for frames of other sites.

use super::*;

#[tokio::test]
async fn only_the_embedded_preview_may_be_framed() {
    let library = Library::new();
    let hash = library.osu("alpha/1 set/a.osu", ChartSpec::numbered(1)).note_hash();
    let site = Site::with(&library, &[PUBLIC_URL]).await;
    let path = format!("/embed/charts/{hash}");
    let policy_of = async |path: &str| site.get(path).await.header("content-security-policy").to_owned();
    let (embedded, page) = (policy_of(&path).await, policy_of(&format!("/charts/{hash}")).await);
    assert!(page.ends_with("; frame-ancestors 'none'"), "{page}");
    assert_eq!(embedded, page.replace("frame-ancestors 'none'", "frame-ancestors *"));
    let html = site.html(&path).await;
    for part in [
        "<meta name=\"robots\" content=\"noindex\">",
        &format!("<a href=\"/charts/{hash}\" target=\"_blank\" rel=\"noopener\">"),
        &format!("data-hash=\"{hash}\""),
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let code = format!("&#60;iframe src=&#34;https://charts.example/embed/charts/{hash}&#34;");
    assert!(site.html(&format!("/charts/{hash}")).await.contains(&code));
}

/// Its links lead out of the frame, which no other page may be shown in.
#[tokio::test]
async fn errors_are_shown_in_the_frame() {
    let site = Site::with(&Library::new(), &[("RATE_LIMIT_PAGE", "3")]).await;
    let unknown = format!("/embed/charts/{}", "0".repeat(64));
    for (path, status) in [(unknown.as_str(), 404), ("/embed/charts/x", 400), ("/embed/charts/%FF", 404)] {
        let response = site.get(path).await;
        assert_eq!((response.status.as_u16(), response.header("content-type")), (status, HTML), "{path}");
        assert!(response.header("content-security-policy").ends_with("; frame-ancestors *"), "{path}");
        let html = String::from_utf8(response.body).unwrap();
        assert!(html.contains("<base target=\"_blank\">"), "{html}");
    }
    let refused = site.get(&unknown).await;
    assert_eq!(refused.status, 429);
    assert!(refused.header("content-security-policy").ends_with("; frame-ancestors *"));
    let page = String::from_utf8(site.get("/charts/x").await.body).unwrap();
    assert!(!page.contains("<base"), "{page}");
    let problem = site.client.get(&unknown).await;
    assert_eq!(problem.header("content-type"), "application/problem+json");
}

#[tokio::test]
async fn hash_in_upper_case_is_redirected() {
    let site = Site::empty().await;
    for folder in ["/embed/charts", "/charts"] {
        let response = site.get(&format!("{folder}/{}", "A".repeat(64))).await;
        let expected = format!("{folder}/{}", "a".repeat(64));
        assert_eq!((response.status.as_u16(), response.header("location")), (303, expected.as_str()));
    }
}
