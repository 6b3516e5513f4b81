//! Rate limits of pages.

use super::*;

#[tokio::test]
async fn pages_have_their_own_limit_and_assets_none() {
    let site = Site::with(&Library::new(), &[("RATE_LIMIT_PAGE", "3")]).await;
    let html = site.html("/").await;
    let style = links(&html, "/assets/style.")[0].to_owned();
    assert_eq!(site.get("/about").await.status, 200);
    assert_eq!(site.get("/chartsets").await.status, 308);
    let refused = site.get("/").await;
    assert_eq!((refused.status.as_u16(), refused.header("content-type")), (429, HTML));
    let seconds = refused.header("retry-after").to_owned();
    assert!((1..=60).contains(&seconds.parse::<u32>().unwrap()));
    assert_eq!(refused.header("ratelimit-policy"), "\"page\";q=3;w=60");
    let html = String::from_utf8(refused.body).unwrap();
    assert!(html.contains(&format!("data-retry-after=\"{seconds}\"")), "{html}");
    for _ in 0..10 {
        assert_eq!(site.get(&style).await.status, 200);
    }
    assert_eq!(site.get("/api/chartsets").await.status, 200, "another group");
    let problem = site.client.get("/").await;
    assert_eq!((problem.status.as_u16(), problem.header("content-type")), (429, "application/problem+json"));
}
