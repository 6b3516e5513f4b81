//! The page of a pack.

use super::*;

fn library() -> Library {
    let library = Library::new();
    let chart = |title: &str, number: u32| ChartSpec {
        title: title.to_owned(),
        creator: "zoe".to_owned(),
        ..ChartSpec::numbered(number)
    };
    library.osu("beta/101 Pack/Song B/b.osu", chart("B", 1));
    library.osu("beta/101 Pack/Song A/a.osu", chart("A", 2));
    library.osu("beta/102 Other/Song C/c.osu", chart("C", 3));
    library
}

async fn packs() -> Site {
    static SITE: Shared<Instance> = Shared::empty();
    Site::shared(&SITE, library, &[]).await
}

#[tokio::test]
async fn pack_lists_its_sets_by_title() {
    let site = packs().await;
    let html = site.html("/packs/101").await;
    assert_eq!(titles(&html), ["A", "B"]);
    for part in ["<h1>Beta pack 101</h1>", "2 sets, 2 charts", "href=\"https://beta.example/packs/101\""] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let set = site.html(links(&html, "/chartsets/")[0]).await;
    assert_eq!(links(&set, "/packs/"), ["/packs/101"], "{set}");
}

#[tokio::test]
async fn pack_has_the_levels_of_its_charts() {
    let site = Site::new(&library()).await;
    site.database.psql("UPDATE charts SET rating = 310");
    let html = site.html("/packs/101").await;
    let histogram = between(&html, "<div class=\"histogram still\">", "</div>");
    assert!(histogram.contains("<path class=\"l4\" d=\"M12 48V0h1V48\"/></svg>"), "{histogram}");
    assert!(!site.html("/packs/102").await.contains("histogram"), "it has one chart");
}

#[tokio::test]
async fn search_for_the_page_of_a_pack_leads_to_its_sets() {
    let site = packs().await;
    let response = site.get("/?q=https%3A%2F%2Fbeta.example%2Fpacks%2F101").await;
    assert_eq!((response.status.as_u16(), response.header("location")), (303, "/packs/101"));
}

#[tokio::test]
async fn unknown_pack_is_404() {
    let site = packs().await;
    for pack in ["103", "0101", "x", "0"] {
        let response = site.get(&format!("/packs/{pack}")).await;
        assert_eq!((response.status.as_u16(), response.header("content-type")), (404, HTML), "{pack}");
    }
}
