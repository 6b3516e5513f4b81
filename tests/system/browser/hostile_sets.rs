//! Chartsets with names and numbers that a page must survive.

use chart_index_tests::{ChartSpec, Library};

/// Titles, each with what it could break.
const TITLES: &[&str] = &[
    "<script>document.title = 'injected'</script>",
    "\"><img src=x onerror=\"document.title='injected'\">",
    "{{7*7}} ${7*7} <%= 7*7 %>",
    "\u{202e}desrever si siht",
    "e\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}\u{309}\u{30a}\u{30b}\u{30c}\u{30d}\u{30e} marks",
    "🎹🏳️‍🌈👩‍👩‍👧‍👦 emoji",
    "control\u{1}\u{7}\u{1b}[31m characters\u{85}\u{fffe}",
    "]]> <![CDATA[ &amp; &lt; &#0; <!-- -->",
    "夜明けの航路 별빛 정원 南山南",
    "مرحبا بالعالم",
];

/// Writes a chartset for each hostile title, and for other hostile properties. Their creator is `hostile`.
pub(crate) fn write(library: &Library) {
    let mut number = 0;
    let mut write = |chart: ChartSpec| {
        number += 1;
        let notes = vec![(0, 0, None), (100 + number, 1, None), (45_000, 2, Some(46_000))];
        let notes = if chart.notes.len() == 1 { chart.notes.clone() } else { notes };
        library.osu(&format!("alpha/{} hostile/a.osu", 7_000_000 + number), ChartSpec { notes, ..chart });
    };
    let hostile = || ChartSpec { creator: "hostile".into(), set_id: 1, ..ChartSpec::default() };
    for title in TITLES {
        let [artist, difficulty, tags] = [*title; 3].map(str::to_owned);
        write(ChartSpec { title: (*title).into(), artist, difficulty, tags, ..hostile() });
    }
    let long = "Wort".repeat(75);
    write(ChartSpec { title: long.clone(), artist: long.clone(), difficulty: long, ..hostile() });
    write(ChartSpec { title: "Empty artist".into(), artist: String::new(), ..hostile() });
    write(ChartSpec { title: "Fast".into(), bpm: 1e6, ..hostile() });
    write(ChartSpec { title: "One note".into(), notes: vec![(0, 0, None)], ..hostile() });
    let creator = "<b>'\"&hostile creator</b>";
    write(ChartSpec { title: "Hostile creator".into(), creator: creator.into(), ..hostile() });
}
