//! Two charts side by side.

use super::*;

#[tokio::test]
async fn charts_are_compared_by_their_numbers() {
    let site = Site::new(&library()).await;
    site.set_rating("Easy", 120);
    site.set_rating("Hard", 310);
    site.set_curves(100);
    let set = site.html(&format!("/chartsets/{}", site.id_of("One").await)).await;
    let [a, b] = links(&set, "/charts/")[..] else { panic!("{set}") };
    let [a, b] = [a, b].map(|path| path.trim_start_matches("/charts/"));
    let page = site.html(&format!("/charts/{a}")).await;
    let form = between(&page, "<form class=\"find\" action=\"/compare\">", "</form>");
    assert!(form.contains(&format!("value=\"{a}\"")) && form.contains(&format!("value=\"{b}\"")), "{form}");
    let html = site.html(&format!("/compare?a={a}&b=%2Fcharts%2F{b}")).await;
    for part in [
        "<th scope=\"row\">Difficulty</th><td>1.20</td><td>3.10</td><td>+1.90</td>",
        "<th scope=\"row\">Keys</th><td>4</td><td>7</td><td>+3</td>",
        "<th scope=\"row\">Notes</th><td>60</td><td>1,000</td><td>+940</td>",
        "<th scope=\"row\">Long notes</th><td>0%</td><td>0%</td><td>=</td>",
        &format!("data-hash=\"{a}\" data-beside=\"{b}\" data-length-ms=\"59000\""),
        "noindex",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    // The second one is shorter: 49.95 of 59 seconds.
    assert!(html.contains("viewBox=\"0 0 48.00 64\"") && html.contains("viewBox=\"0 0 56.70 64\""), "{html}");
}

#[tokio::test]
async fn mistakes_name_the_chart() {
    let site = Site::empty().await;
    let zeros = "0".repeat(64);
    for (path, status, text) in [
        ("/compare".to_owned(), 400, "a: accepts a note hash of 64 digits, or the address of a chart"),
        (format!("/compare?a={zeros}&b=x"), 400, "b: accepts a note hash"),
        (format!("/compare?a={zeros}&b={zeros}"), 404, "No chart is at this address"),
    ] {
        let response = site.get(&path).await;
        assert_eq!((response.status.as_u16(), response.header("content-type")), (status, HTML), "{path}");
        let html = String::from_utf8(response.body).unwrap();
        assert!(html.contains(text), "{text}: {html}");
    }
}
