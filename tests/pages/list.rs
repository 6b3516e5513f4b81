//! The list: form, filters, order, pages, and counts.

use super::*;

#[tokio::test]
async fn list_has_a_line_for_each_chart() {
    let site = Site::of_library().await;
    let html = site.html("/").await;
    assert!(html.contains("<p id=\"count\" role=\"status\">3 sets</p>"), "{html}");
    assert_eq!(titles(&html).len(), 3);
    assert_eq!(links(&html, "/charts/").len(), 4);
    for part in [
        "<i class=\"k k7\">7K</i> <bdi>Hard</bdi>",
        "<span class=\"vh\">peak </span>20/s",
        "<i>LN 50%</i>",
        "charted by </span><a href=\"/creators/zoe\"><bdi>zoe</bdi></a>",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(
        html.contains("<bdi>Only</bdi>") && !html.contains("4K</i> <bdi>Only</bdi>"),
        "one key count: {html}"
    );
    let by_notes = site.html("/?sort=notes").await;
    assert!(
        by_notes.contains("<span class=\"vh\"> notes</span>") && !by_notes.contains("20/s"),
        "{by_notes}"
    );
    let id = site.id_of("One").await;
    assert!(
        html.contains(&format!(
            "href=\"/go/chartset/{id}\"><span class=\"vh\">Source of <bdi>One</bdi></span>"
        ))
    );
    assert_eq!(links(&html, "/go/chartset/").len(), 2, "a set without a source has no download");
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
        charts.split("<li class=\"").skip(1).map(|line| between(line, "", "</bdi>")).collect();
    let pill = |colour: u8, meaning, number| {
        format!("l{colour}\"><b class=\"level\"><span class=\"vh\">{meaning} </span>{number}</b><a href=")
    };
    for (line, (pill, name)) in lines.iter().zip([
        (pill(0, "difficulty", "0.99"), "2"),
        (pill(6, "difficulty", "5.27"), "0"),
        (pill(0, "peak", "2/s"), "1"),
        (pill(0, "peak", "2/s"), "3"),
    ]) {
        assert!(line.starts_with(&pill) && line.ends_with(&format!("<bdi>{name}")), "{pill} {name}: {line}");
    }
    assert_eq!(lines.len(), 4);
}

#[tokio::test]
async fn difficulties_of_all_charts_are_above_their_fields() {
    let site = Site::new(&library()).await;
    assert!(!site.html("/").await.contains("class=\"histogram\""), "too few charts");
    site.set_percentiles();
    let html = site.html("/?ratingMin=2&ratingMax=4").await;
    let histogram = between(&html, "<div class=\"histogram\">", "</div>");
    assert!(histogram.contains("<path class=\"l0\" d=\"M0 48V0h4V48\"/>"), "{histogram}");
    let range = "<rect width=\"8\" height=\"100%\"/><rect x=\"16\" width=\"100%\" height=\"100%\"/>";
    assert!(histogram.contains(range), "{histogram}");
}

#[tokio::test]
async fn difficulties_of_the_sets_of_a_filter_are_a_part_of_a_page() {
    let site = Site::new(&library()).await;
    site.set_percentiles();
    for (difficulty, rating) in [("Easy", 120), ("Hard", 310), ("Only", 130), ("Other", 800)] {
        site.set_rating(difficulty, rating);
    }
    let list = site.html("/?q=one&ratingMin=3").await;
    let of_all = "<small aria-hidden=\"true\">all charts</small></legend><div class=\"histogram\" data-src=\"/ratings?q=one\">";
    assert!(list.contains(of_all), "{list}");
    let all = &["M4 48V0h2V48", "M12 48V0h1V48", "M25 48V0h1V48"][..];
    for (query, expected) in [
        ("", all),
        ("ratingMin=7&ratingMax=8&sort=title&page=9&view=cards", all),
        ("keys=4", &all[..1]),
        ("q=one", &["M4 48V0h1V48", "M12 48V0h1V48"]),
        ("keys=7&q=one", &["M12 48V0h1V48"]),
        ("keys=4,5", &["M4 48V0h2V48", "M25 48V0h1V48"]),
        ("creator=amy", &["M25 48V0h1V48"]),
        ("q=nothing", &[]),
    ] {
        let html = site.html(&format!("/ratings?{query}")).await;
        assert!(html.starts_with("<svg ") && html.contains(">matching sets</small>"), "{html}");
        let bars = html.split(" d=\"").skip(1).filter_map(|rest| rest.split('"').next());
        assert_eq!(bars.collect::<Vec<_>>(), expected, "{query}: {html}");
    }
    assert_eq!(site.get("/ratings?keys=9").await.status, 400);
}

#[tokio::test]
async fn curves_are_bars() {
    let site = Site::new(&library()).await;
    site.set_curves(128);
    let html = site.html("/?q=Two").await;
    assert_eq!(html.matches(" d=\"M0 16V0h48V16\"/>").count(), 1, "{html}");
}

#[tokio::test]
async fn filters_combine_and_each_can_be_removed() {
    let site = Site::of_library().await;
    let html = site.html("/?creator=zoe&densityMin=5&keys=7&lengthMax=60&q=one").await;
    assert_eq!(titles(&html), ["One"]);
    let chips = between(&html, "aria-label=\"Active filters\">", "</ul>");
    assert!(html.contains("value=\"1:00\""), "{html}");
    let removals = links(chips, "/");
    assert_eq!(
        removals,
        [
            "/?densityMin=5&#38;keys=7&#38;lengthMax=60&#38;q=one",
            "/?creator=zoe&#38;densityMin=5&#38;keys=7&#38;q=one",
            "/?creator=zoe&#38;keys=7&#38;lengthMax=60&#38;q=one",
        ]
    );
    for removal in removals {
        assert!(site.html(&removal.replace("&#38;", "&")).await.contains("<bdi>One</bdi>"), "{removal}");
    }
    assert!(html.contains("<a href=\"/?keys=7\">Clear 4 filters</a>"), "{html}");
    assert!(site.html("/?keys=7").await.contains("<a href=\"/\">Clear the filter</a>"));
}

#[tokio::test]
async fn lengths_are_entered_as_minutes_and_seconds() {
    let site = Site::of_library().await;
    for sent in ["lengthMin=0:55&lengthMax=1%3A00", "lengthMin=0:55&lengthMax=60"] {
        let response = site.get(&format!("/?{sent}")).await;
        assert_eq!(
            (response.status.as_u16(), response.header("location")),
            (303, "/?lengthMax=60&lengthMin=55"),
            "{sent}"
        );
    }
    let wrong = site.get("/?lengthMin=1:75").await;
    let html = String::from_utf8(wrong.body).unwrap();
    assert!(html.contains("<b>Length</b> accepts a length such as 1:40, or a number of seconds."), "{html}");
}

#[tokio::test]
async fn charts_that_match_all_filters_are_marked_in_their_place() {
    let site = Site::of_library().await;
    let html = site.html("/?keys=7").await;
    let charts = between(&html, "<ul class=\"charts\">", "</ul>");
    assert!(charts.find("Easy").unwrap() < charts.find("Hard").unwrap(), "by keys: {charts}");
    assert_eq!((html.matches(" match\"").count(), html.matches(">Match: </span>").count()), (1, 1));
    // The 7K chart is 50 s long, the 4K chart 59 s.
    let html = site.html("/?keys=7&lengthMin=55").await;
    assert!(html.contains("No single chart matches all filters") && !html.contains(" match\""), "{html}");
    assert!(!site.html("/?q=one").await.contains(" match\""), "the text is that of a set");
}

#[tokio::test]
async fn sets_with_the_same_charts_are_folded() {
    let library = library();
    library.osu("alpha/50 same/same.osu", ChartSpec { title: "Same".into(), ..ChartSpec::numbered(1) });
    library.osu("alpha/60 again/same.osu", ChartSpec { title: "Again".into(), ..ChartSpec::numbered(1) });
    let site = Site::new(&library).await;
    let html = site.html("/?sort=title").await;
    assert_eq!(titles(&html), ["Again", "One", "Three", "Two"]);
    assert!(html.contains("role=\"status\">5 sets</p>"), "{html}");
    assert!(
        html.contains("<p class=\"by\">1 set is listed with another that has the same charts.</p>"),
        "{html}"
    );
    let same = site.id_of("Same").await;
    let also = between(&html, "<p class=\"also\">", "</p>");
    assert_eq!(
        also,
        format!(
            "The same charts are also in <a href=\"/chartsets/{same}\"><bdi>Same</bdi> (Alpha set 50)</a>"
        )
    );
    // Each on a page of its own.
    for (page, title, other) in [(1, "Again", "Same"), (3, "Same", "Again")] {
        let html = site.html(&format!("/?page={page}&perPage=1&sort=title")).await;
        assert_eq!(titles(&html), [title]);
        assert!(html.contains(&format!("role=\"status\">{page}–{page} of 5 sets</p>")), "{html}");
        let link = links(between(&html, "<p class=\"also\">", "</p>"), "/chartsets/")[0];
        assert!(site.html(link).await.contains(&format!("<bdi>{other}</bdi>")), "{link}");
    }
    assert!(!site.html("/?page=2&perPage=1&sort=title").await.contains("class=\"also\""));
}

#[tokio::test]
async fn search_without_a_result_names_the_closest_titles() {
    let library = library();
    library
        .osu("alpha/50 a/a.osu", ChartSpec { title: "Valkyrie dimension".into(), ..ChartSpec::numbered(1) });
    library.osu("alpha/60 b/b.osu", ChartSpec { title: "Valley".into(), ..ChartSpec::numbered(2) });
    let site = Site::new(&library).await;
    let html = site.html("/?q=valkyre+dimention").await;
    let empty = between(&html, "<div class=\"empty\"", "</div>");
    assert!(empty.contains("The closest titles"), "{empty}");
    assert_eq!(links(empty, "/chartsets/").len(), 1, "{empty}");
    assert!(empty.contains("<bdi>Valkyrie dimension</bdi></a> – <bdi>Artist</bdi>"), "{empty}");
    assert!(!site.html("/?q=nothing+similar").await.contains("The closest titles"));
}

#[tokio::test]
async fn sorting_is_by_links_that_reverse() {
    let site = Site::of_library().await;
    let html = site.html("/?sort=title").await;
    assert_eq!(titles(&html), ["One", "Three", "Two"]);
    let sorts = between(&html, "aria-label=\"Sort\">", "</nav>");
    assert!(sorts.contains("<a href=\"/?order=desc&#38;sort=title\" aria-current=\"true\">Title"), "{sorts}");
    assert_eq!(titles(&site.html("/?order=desc&sort=title").await), ["Two", "Three", "One"]);
    assert!(!sorts.contains("Best match"), "without a text");
    assert!(site.html("/?q=one&sort=relevance").await.contains("Best match"));
}

#[tokio::test]
async fn bpm_is_the_main_one_that_is_shown() {
    let library = library();
    let plain = |number, title: &str| ChartSpec { title: title.into(), ..ChartSpec::numbered(number) };
    library.osu("alpha/50 fast/fast.osu", ChartSpec { bpm: 200.0, ..plain(1, "Fast") });
    let effect = ChartSpec { bpm: 100.0, effect_bpm: Some(900.0), ..plain(2, "Effect") };
    library.osu("alpha/60 effect/effect.osu", effect);
    let site = Site::new(&library).await;
    let html = site.html("/").await;
    let sorts = between(&html, "aria-label=\"Sort\">", "</nav>");
    assert_eq!(links(sorts, "/?sort=mainBpm"), ["/?sort=mainBpm"], "{sorts}");
    assert!(!sorts.contains("sort=bpm"), "{sorts}");
    let html = site.html("/?sort=mainBpm").await;
    assert_eq!((titles(&html)[0], titles(&html).last()), ("Fast", Some(&"Effect")));
    assert!(html.contains("<b>100</b> BPM (100–900)"), "{html}");
    let earlier = site.get("/?sort=bpm&order=asc&keys=4").await;
    assert_eq!(
        (earlier.status.as_u16(), earlier.header("location")),
        (303, "/?keys=4&order=asc&sort=mainBpm")
    );
    // The number that a row shows is the one that the filter compares.
    for (range, number) in
        [("mainBpmMin=100&mainBpmMax=110", 1), ("mainBpmMin=500", 0), ("query=bpm%3E500", 0)]
    {
        let response = site.get(&format!("/?{range}")).await;
        let path = if response.status == 303 {
            response.header("location").to_owned()
        } else {
            format!("/?{range}")
        };
        assert_eq!(titles(&site.html(&path).await).len(), number, "{range}");
    }
    let earlier = site.get("/?bpmMin=500&keys=4").await;
    assert_eq!((earlier.status.as_u16(), earlier.header("location")), (303, "/?keys=4&mainBpmMin=500"));
    let api = site.client.get("/api/chartsets?bpmMin=500").await.json();
    assert_eq!(api["total"], 1, "the range of the contract overlaps");
}

/// A form sends each pattern that is checked.
#[tokio::test]
async fn patterns_are_joined() {
    let site = Site::of_library().await;
    let response = site.get("/?pattern=stream%3A20&pattern=jack%3A20&keys=").await;
    let path = "/?pattern=jack%3A20,stream%3A20";
    assert_eq!((response.status.as_u16(), response.header("location")), (303, path));
    let html = site.html(path).await;
    let form = between(&html, "<form id=\"filters\"", "</form>");
    assert_eq!(form.matches("name=\"pattern\" value=\"stream:20\" checked").count(), 1, "{form}");
    assert!(form.contains("<summary>Filters (1)</summary>"), "{form}");
}

#[tokio::test]
async fn pages_are_numbered_and_reach_every_set() {
    let site = Site::of_library().await;
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
    let site = Site::of_library().await;
    for (path, view) in [("/", ""), ("/?view=cards", "cards"), ("/?view=table", "")] {
        assert!(site.html(path).await.contains(&format!("id=\"list\" data-view=\"{view}\"")), "{path}");
    }
    assert!(links(&site.html("/?view=cards").await, "/?page").is_empty());
}

#[tokio::test]
async fn empty_result_names_filters_and_what_is_found_without_them() {
    let site = Site::of_library().await;
    let html = site.html("/?creator=zoe&keys=6").await;
    let empty = between(&html, "<div class=\"empty\"", "</div>");
    assert!(empty.contains("No set matches all of these filters"), "{empty}");
    assert!(
        empty.contains("<a href=\"/?creator=zoe\">without Keys <b><bdi>6K</bdi></b></a>: 2 sets"),
        "{empty}"
    );
    assert!(!empty.contains("without Creator"), "there is no 6K chart of anyone: {empty}");
    assert!(empty.contains("<a href=\"/\">without any filter</a>: 3 sets"), "{empty}");
    let html = site.html("/?keys=6").await;
    assert!(!between(&html, "<div class=\"empty\"", "</div>").contains("without any filter"), "{html}");
    let nothing = Site::empty().await.html("/").await;
    assert!(nothing.contains("the index is empty") && nothing.contains(">0 sets</p>"), "{nothing}");
}

#[tokio::test]
async fn malformed_parameter_is_400_at_its_field() {
    let site = Site::of_library().await;
    for (query, parameter) in [
        ("mainBpmMin=fast&q=one", "mainBpmMin"),
        ("bpmMin=fast&q=one", "mainBpmMin"),
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
    let html = String::from_utf8(site.get("/?bpmMin=fast&bpmMax=9&q=one").await.body).unwrap();
    assert!(
        html.contains("value=\"fast\"") && html.contains("value=\"one\""),
        "what was sent is kept: {html}"
    );
    assert!(html.contains("without <b>BPM</b>") && html.contains(">1 set</p>"), "the rest is found: {html}");
    let html = site.html("/?q=one").await;
    assert!(!html.contains("class=\"error\""), "the list of the rest has no error: {html}");
    let html = String::from_utf8(site.get("/?sort=best").await.body).unwrap();
    assert!(html.contains("<b>sort</b> accepts updated"), "{html}");
}

/// What was typed gets parameters of its own; only exclusions and hints stay in the field.
#[tokio::test]
async fn typed_filters_become_chips() {
    let site = Site::of_library().await;
    let response = site.get("/?query=a+keys%3D4+rating%3E5").await;
    assert_eq!((response.status.as_u16(), response.header("location")), (303, "/?keys=4&q=a&ratingMin=5.01"));
    let html = site.html("/?query=a+-tag:nothing+keys%3D9").await;
    assert!(html.contains("value=\"a keys=9 -tag:nothing\""), "{html}");
    assert!(html.contains("Without tag <b><bdi>nothing</bdi></b>"), "{html}");
    assert!(html.contains("<bdi>keys=9</bdi></b> accepts key counts from 4 to 7"), "{html}");
}

#[tokio::test]
async fn form_is_complete_without_script() {
    let site = Site::of_library().await;
    let html = site.html("/?keys=4&sort=title&view=cards").await;
    let form = between(&html, "<form id=\"filters\"", "</form>");
    for name in [
        "keys",
        "pattern",
        "source",
        "creator",
        "ratingMin",
        "ratingMax",
        "mainBpmMin",
        "mainBpmMax",
        "lengthMin",
        "lengthMax",
        "densityMin",
    ] {
        assert_eq!(
            form.matches(&format!("name=\"{name}\"")).count(),
            match name {
                "keys" => 4,
                "pattern" => 9,
                _ => 1,
            },
            "{name}"
        );
    }
    assert!(form.contains("value=\"4\" checked"));
    let search = between(&html, "role=\"search\"", "</div>");
    assert!(
        search.contains("name=\"query\" form=\"filters\"")
            && search.contains("type=\"submit\" form=\"filters\"")
    );
    for hidden in ["name=\"sort\" value=\"title\"", "name=\"view\" value=\"cards\""] {
        assert!(form.contains(hidden), "{hidden}");
    }
    assert!(
        !html.contains(" style=\"") && !html.contains("<style") && !html.contains("onclick"),
        "the policy forbids it"
    );
}

#[tokio::test]
async fn large_sets_show_a_spectrum() {
    let site = Site::new(&numbered_library(50)).await;
    for number in 0..49 {
        site.set_rating(&number.to_string(), 120 + 10 * number);
    }
    let html = site.html("/").await;
    let spectrum = between(&html, "<li class=\"spectrum\">", "</li>");
    assert!(spectrum.starts_with("50 charts, 1.20 to 6.00<p><b>4K</b> <a href=\"/charts/"), "{spectrum}");
    assert!(
        spectrum.contains(
            "title=\"0\" class=\"level l1\"><span class=\"vh\">difficulty </span>1.20<span class=\"vh\"> 0</span></a> <a href="
        ),
        "{spectrum}"
    );
    assert!(links(spectrum, "/charts/").len() == 48 && spectrum.contains(">2 more</a>"), "{spectrum}");
    assert_eq!(links(&html, "/charts/").len(), 48, "no chart has a line");
    let html = site.html("/?ratingMin=5.9").await;
    assert_eq!(html.matches(" match\"").count(), 2, "only the charts that match have one");
    let id = site.id_of("Title").await;
    assert_eq!(links(&site.html(&format!("/chartsets/{id}")).await, "/charts/").len(), 50);
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
