//! Addresses that lead to others: searches for one thing, forms, and random choices.

use super::*;

async fn location(site: &Site, path: &str) -> (u16, String) {
    let response = site.get(path).await;
    (response.status.as_u16(), response.header("location").to_owned())
}

#[tokio::test]
async fn search_for_one_thing_leads_to_its_page() {
    let site = Site::public().await;
    let html = site.html("/?q=Two").await;
    let chart = links(&html, "/charts/")[0].to_owned();
    let (hash, id) = (chart.trim_start_matches("/charts/"), site.id_of("Two").await);
    for (q, expected) in [
        (hash.to_owned(), chart.clone()),
        (hash.to_uppercase(), chart.clone()),
        (format!("+{hash}+"), chart.clone()),
        (format!("{hash}&sort=relevance"), chart.clone()),
        (id.to_uppercase(), format!("/chartsets/{id}")),
        ("https%3A%2F%2Falpha.example%2Fsets%2F20".to_owned(), format!("/chartsets/{id}")),
        ("http://alpha.example/sets/20/?x=1%23mania/5".to_owned(), format!("/chartsets/{id}")),
        (format!("https://mirror.example/charts/{hash}?utm_source=x"), chart.clone()),
        (format!("https%3A%2F%2Fmirror.example%2Fapi%2Fcharts%2F{hash}%2Frox"), chart.clone()),
        (format!("http://127.0.0.1:8080/chartsets/{id}"), format!("/chartsets/{id}")),
        (format!("https://charts.example/go/chartset/{id}"), format!("/chartsets/{id}")),
        ("https://charts.example/packs/101".to_owned(), "/packs/101".to_owned()),
        (hash[..8].to_owned(), chart.clone()),
        (hash[..16].to_uppercase(), chart.clone()),
        (hash[..63].to_owned(), chart.clone()),
        (id.clone(), format!("/chartsets/{id}")),
    ] {
        for parameter in ["q", "query"] {
            let path = format!("/?{parameter}={q}");
            assert_eq!(location(&site, &path).await, (303, expected.clone()), "{path}");
        }
    }
    for text in [&hash[..7], "00000000", "https://other.example/packs/101", "https://other.example/charts/x"]
    {
        assert_eq!(site.get(&format!("/?q={text}")).await.status, 200, "{text} is a text");
    }
    let upper = format!("/charts/{}", hash.to_uppercase());
    assert_eq!(location(&site, &upper).await, (303, chart.clone()));
    assert_eq!(site.get(&format!("/?keys=4&q={hash}")).await.status, 200, "with another filter it is a text");
}

#[tokio::test]
async fn form_leads_to_an_address_without_empty_parameters() {
    let site = Site::of_library().await;
    for (sent, expected) in [
        ("q=&keys=4&keys=7&source=&creator=&bpmMin=&bpmMax=", "/?keys=4,7"),
        ("q=a&keys=&view=", "/?q=a"),
        ("q=&source=", "/"),
        ("q=&keys=4&sort=relevance", "/?keys=4"),
    ] {
        let sent = format!("/?{sent}");
        let (status, target) = location(&site, &sent).await;
        assert_eq!((status, target.as_str()), (303, expected));
        assert_eq!(site.get(&target).await.status, 200, "no further redirect");
    }
}

#[tokio::test]
async fn chartsets_without_an_id_is_the_list() {
    let site = Site::of_library().await;
    assert_eq!(location(&site, "/chartsets").await, (308, "/".to_owned()));
    assert_eq!(location(&site, "/chartsets?q=a&keys=4").await, (308, "/?q=a&keys=4".to_owned()));
}

#[tokio::test]
async fn random_choice_honours_the_filters() {
    let site = Site::of_library().await;
    let all = ["One", "Two", "Three"];
    let mut ids = Vec::new();
    for title in all {
        ids.push(format!("/chartsets/{}", site.id_of(title).await));
    }
    let mut chosen = std::collections::BTreeSet::new();
    while chosen.len() < 3 {
        let (status, target) = location(&site, "/random").await;
        assert_eq!(status, 303);
        assert!(ids.contains(&target), "{target}");
        chosen.insert(target);
    }
    for _ in 0..5 {
        assert_eq!(location(&site, "/random?creator=amy&page=7").await, (303, ids[2].clone()));
    }
    assert_eq!(site.get("/random?creator=nobody").await.status, 404);
    assert_eq!(site.get("/random?keys=9").await.status, 400);
    assert_eq!(site.get("/random").await.header("cache-control"), "no-store");
}
