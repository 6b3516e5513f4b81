//! The list: form, filters, order, pages, and counts.

use super::*;

#[tokio::test]
async fn list_has_a_line_for_each_chart() {
    let site = Site::new(&library()).await;
    let html = site.html("/").await;
    assert!(html.contains("<p id=\"count\" role=\"status\">3 sets</p>"), "{html}");
    assert_eq!(titles(&html).len(), 3);
    assert_eq!(links(&html, "/charts/").len(), 4);
    for part in
        ["<b>7K</b> <bdi>Hard</bdi>", "20/s", "50% LN", "by <a href=\"/?creator=zoe\"><bdi>zoe</bdi></a>"]
    {
        assert!(html.contains(part), "{part}: {html}");
    }
    let id = site.id_of("One").await;
    assert!(html.contains(&format!("href=\"/go/chartset/{id}\">Download")));
    assert_eq!(links(&html, "/go/chartset/").len(), 2, "a set without a source has no download");
    let updated = site
        .database
        .psql("SELECT to_char(to_timestamp(max(updated_at_ms) / 1000.0), 'YYYY-MM-DD') FROM chartsets");
    assert_eq!(html.matches(&format!("Alpha set · {}</p>", updated.trim())).count(), 2, "{html}");
}

#[tokio::test]
async fn charts_are_ordered_by_keys_and_rating() {
    let site = Site::new(&numbered_library(4)).await;
    for (difficulty, rating) in [("0", 527), ("2", 99)] {
        site.set_rating(difficulty, rating);
    }
    let html = site.html("/").await;
    let charts = between(&html, "<ul class=\"charts\">", "</ul>");
    let lines: Vec<_> =
        charts.split("<li>").skip(1).map(|line| between(line, "", "</bdi>").replace("</b>", "")).collect();
    let pill = |colour, number| {
        format!("<b class=\"level l{colour}\"><span class=\"vh\">difficulty </span>{number}<a href=")
    };
    assert!(lines[0].starts_with(&pill(0, "0.99")) && lines[0].ends_with("<bdi>2"), "{lines:?}");
    assert!(lines[1].starts_with(&pill(6, "5.27")) && lines[1].ends_with("<bdi>0"), "{lines:?}");
    assert!(lines.len() == 4 && lines[2..].iter().all(|line| line.starts_with("<a href=")), "{lines:?}");
}

#[tokio::test]
async fn curves_are_paths() {
    let site = Site::new(&library()).await;
    site.set_curves(128);
    let html = site.html("/?q=Two").await;
    assert_eq!(html.matches("<path d=\"M0 12V5h23V12\"/>").count(), 1, "{html}");
}

#[tokio::test]
async fn four_filters_combine_and_each_can_be_removed() {
    let site = Site::new(&library()).await;
    let path = "/?creator=zoe&densityMin=5&keys=7&lengthMax=60&q=one";
    let html = site.html(path).await;
    assert_eq!(titles(&html), ["One"]);
    let chips = between(&html, "aria-label=\"Active filters\">", "</ul>");
    assert_eq!(
        links(chips, "/"),
        [
            "/?creator=zoe&#38;densityMin=5&#38;keys=7&#38;lengthMax=60",
            "/?creator=zoe&#38;densityMin=5&#38;lengthMax=60&#38;q=one",
            "/?densityMin=5&#38;keys=7&#38;lengthMax=60&#38;q=one",
            "/?creator=zoe&#38;densityMin=5&#38;keys=7&#38;q=one",
            "/?creator=zoe&#38;keys=7&#38;lengthMax=60&#38;q=one",
            "/",
        ]
    );
    for chip in links(chips, "/") {
        assert!(site.html(&chip.replace("&#38;", "&")).await.contains("<bdi>One</bdi>"), "{chip}");
    }
}

#[tokio::test]
async fn charts_that_match_all_filters_come_first() {
    let site = Site::new(&library()).await;
    let html = site.html("/?keys=7").await;
    let charts = between(&html, "<ul class=\"charts\">", "</ul>");
    let hard = charts.find("Hard").unwrap();
    assert!(hard < charts.find("Easy").unwrap(), "{charts}");
    assert_eq!(
        (html.matches("class=\"match\"").count(), html.matches("matches all filters</span>").count()),
        (1, 1)
    );
    // The 7K chart is 50 s long, the 4K chart 59 s.
    let html = site.html("/?keys=7&lengthMin=55").await;
    assert!(
        html.contains("No single chart matches all filters") && !html.contains("class=\"match\""),
        "{html}"
    );
    assert!(!site.html("/?q=one").await.contains("class=\"match\""), "the text is that of a set");
}

#[tokio::test]
async fn sorting_is_by_links_that_reverse() {
    let site = Site::new(&library()).await;
    let html = site.html("/?sort=title").await;
    assert_eq!(titles(&html), ["One", "Three", "Two"]);
    let sorts = between(&html, "aria-label=\"Sort\">", "</nav>");
    assert!(sorts.contains("<a href=\"/?order=desc&#38;sort=title\" aria-current=\"true\">Title"), "{sorts}");
    assert_eq!(titles(&site.html("/?order=desc&sort=title").await), ["Two", "Three", "One"]);
    assert!(!sorts.contains("Best match"), "without a text");
    assert!(site.html("/?q=one&sort=relevance").await.contains("Best match"));
}

#[tokio::test]
async fn pages_are_numbered_and_reach_every_set() {
    let site = Site::new(&library()).await;
    let mut seen = Vec::new();
    for page in 1..=3 {
        let html = site.html(&format!("/?page={page}&perPage=1&sort=title")).await;
        seen.extend(titles(&html).into_iter().map(str::to_owned));
        assert!(html.contains(&format!("{page}–{page} of 3 sets")), "{html}");
        assert!(html.contains("<label for=\"goto\">Go to</label>") && html.contains("max=\"3\""));
        assert_eq!((html.contains("rel=\"prev\""), html.contains("rel=\"next\"")), (page > 1, page < 3));
    }
    assert_eq!(seen, ["One", "Three", "Two"]);
    let past = site.html("/?page=9&perPage=1").await;
    assert!(past.contains("past the end of the list") && past.contains("href=\"/?page=3&#38;perPage=1\""));
}

#[tokio::test]
async fn next_page_begins_after_the_last_set_of_this_one() {
    let site = Site::new(&library()).await;
    let (mut path, mut seen) = ("/?perPage=1&sort=title".to_owned(), Vec::new());
    for page in 1..=3 {
        let html = site.html(&path).await;
        seen.extend(titles(&html).into_iter().map(str::to_owned));
        assert!(html.contains(&format!("{page}–{page} of 3 sets")), "{html}");
        assert!(html.contains(&format!("aria-current=\"page\" aria-label=\"Page {page}\"")), "{html}");
        assert_eq!(html.contains("rel=\"next\""), page < 3, "{html}");
        if page < 3 {
            path = between(&html, "rel=\"next\" href=\"", "\"").replace("&#38;", "&");
            assert!(path.starts_with("/?after="), "{path}");
        }
        if page == 1 {
            // Before this position.
            let _ = site.database.psql("UPDATE chartsets SET title_sort = 'aa' WHERE title = 'One'");
        }
    }
    assert_eq!(seen, ["One", "Three", "Two"]);
    let html = site.html("/?q=t&perPage=1").await;
    assert!(html.contains("rel=\"next\" href=\"/?page=2&#38;perPage=1&#38;q=t\""), "by number: {html}");
    let malformed = site.get("/?after=x").await;
    let html = String::from_utf8_lossy(&malformed.body);
    assert!(malformed.status == 400 && html.contains("<b>after</b> accepts start"), "{html}");
}

#[tokio::test]
async fn view_is_a_parameter() {
    let site = Site::new(&library()).await;
    for (path, view) in [("/", ""), ("/?view=cards", "cards"), ("/?view=table", "table")] {
        assert!(site.html(path).await.contains(&format!("id=\"list\" data-view=\"{view}\"")), "{path}");
    }
    assert!(links(&site.html("/?view=cards").await, "/?page").is_empty());
}

#[tokio::test]
async fn empty_result_names_filters_and_what_is_found_without_them() {
    let site = Site::new(&library()).await;
    let html = site.html("/?creator=zoe&keys=6").await;
    let empty = between(&html, "<div class=\"empty\">", "</div>");
    assert!(empty.contains("No set matches all of these filters"), "{empty}");
    assert!(
        empty.contains("<a href=\"/?creator=zoe\">without Keys <b><bdi>6K</bdi></b></a>: 2 sets"),
        "{empty}"
    );
    assert!(
        empty.contains("<a href=\"/?keys=6\">without Creator <b><bdi>zoe</bdi></b></a>: 0 sets"),
        "{empty}"
    );
    let nothing = Site::new(&Library::new()).await.html("/").await;
    assert!(nothing.contains("the index is empty") && nothing.contains(">0 sets</p>"), "{nothing}");
}

#[tokio::test]
async fn malformed_parameter_is_400_at_its_field() {
    let site = Site::new(&library()).await;
    for (query, parameter) in [
        ("bpmMin=fast&q=one", "bpmMin"),
        ("keys=9", "keys"),
        ("lengthMin=9&lengthMax=1", "lengthMin"),
        ("densityMin=x", "densityMin"),
        ("source=osu", "source"),
        ("ratingMin=hard", "ratingMin"),
        ("ratingMin=5&ratingMax=4", "ratingMin"),
        ("ratingMax=x", "ratingMax"),
    ] {
        let response = site.get(&format!("/?{query}")).await;
        assert_eq!((response.status.as_u16(), response.header("content-type")), (400, HTML), "{query}");
        assert_eq!(response.header("cache-control"), "no-store");
        let html = String::from_utf8(response.body).unwrap();
        assert!(html.contains(&format!("id=\"{parameter}-error\"")), "{query}: {html}");
        assert!(html.contains("name=\"robots\" content=\"noindex\""));
    }
    let html = String::from_utf8(site.get("/?bpmMin=fast&q=one").await.body).unwrap();
    assert!(
        html.contains("value=\"fast\"") && html.contains("value=\"one\""),
        "what was sent is kept: {html}"
    );
    let html = String::from_utf8(site.get("/?sort=best").await.body).unwrap();
    assert!(html.contains("<b>sort</b> accepts updated"), "{html}");
}

/// What was typed gets parameters of its own; only exclusions and hints stay in the field.
#[tokio::test]
async fn typed_filters_become_chips() {
    let site = Site::new(&library()).await;
    let response = site.get("/?query=a+keys%3D4+rating%3E5").await;
    assert_eq!((response.status.as_u16(), response.header("location")), (303, "/?keys=4&q=a&ratingMin=5.01"));
    let html = site.html("/?query=a+-tag:nothing+keys%3D9").await;
    assert!(html.contains("value=\"a keys=9 -tag:nothing\""), "{html}");
    assert!(html.contains("Without tag <b><bdi>nothing</bdi></b>"), "{html}");
    assert!(html.contains("<bdi>keys=9</bdi></b> accepts key counts from 4 to 7"), "{html}");
}

#[tokio::test]
async fn form_is_complete_without_script() {
    let site = Site::new(&library()).await;
    let html = site.html("/?keys=4&sort=title&view=table").await;
    let form = between(&html, "<form id=\"filters\"", "</form>");
    for name in [
        "query",
        "keys",
        "source",
        "creator",
        "ratingMin",
        "ratingMax",
        "bpmMin",
        "bpmMax",
        "lengthMin",
        "lengthMax",
        "densityMin",
    ] {
        assert_eq!(
            form.matches(&format!("name=\"{name}\"")).count(),
            if name == "keys" { 4 } else { 1 },
            "{name}"
        );
    }
    assert!(form.contains("value=\"4\" checked") && form.contains("type=\"submit\""));
    for hidden in ["name=\"sort\" value=\"title\"", "name=\"view\" value=\"table\""] {
        assert!(form.contains(hidden), "{hidden}");
    }
    assert!(
        !html.contains(" style=\"") && !html.contains("<style") && !html.contains("onclick"),
        "the policy forbids it"
    );
}

#[tokio::test]
async fn large_sets_show_twelve_charts_and_a_link() {
    let site = Site::new(&numbered_library(15)).await;
    let html = site.html("/").await;
    assert_eq!(links(&html, "/charts/").len(), 12);
    assert!(html.contains("3 more</a>"), "{html}");
    let id = site.id_of("Title").await;
    assert_eq!(links(&site.html(&format!("/chartsets/{id}")).await, "/charts/").len(), 15);
}

#[tokio::test]
async fn large_sets_with_ratings_show_a_spectrum() {
    let site = Site::new(&numbered_library(50)).await;
    for number in 0..49 {
        site.set_rating(&number.to_string(), 120 + 10 * number);
    }
    let html = site.html("/").await;
    let spectrum = between(&html, "<li class=\"spectrum\">", "</li>");
    assert!(spectrum.starts_with("50 charts, 1.20 to 6.00<p><b>4K</b> <a href=\"/charts/"), "{spectrum}");
    assert!(
        spectrum.contains(
            "title=\"0\" class=\"level l1\"><span class=\"vh\">difficulty </span>1.20</a> <a href="
        ),
        "{spectrum}"
    );
    assert!(links(spectrum, "/charts/").len() == 48 && spectrum.contains(">2 more</a>"), "{spectrum}");
    assert_eq!(links(&html, "/charts/").len(), 48, "no chart has a line");
    let html = site.html("/?ratingMin=5.9").await;
    assert_eq!(html.matches("<li class=\"match\">").count(), 2, "only the charts that match have one");
}

/// A set of charts that are named by their numbers, too short for a rating.
fn numbered_library(charts: u32) -> Library {
    let library = Library::new();
    for number in 0..charts {
        let spec = ChartSpec { difficulty: number.to_string(), ..ChartSpec::numbered(number) };
        library.osu(&format!("alpha/1 many/{number}.osu"), spec);
    }
    library
}
