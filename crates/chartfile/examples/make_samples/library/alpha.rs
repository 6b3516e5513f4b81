//! The sets of the first game.

use super::pattern::Pattern;
use super::write::{Chart, Song, osu, qua};
use super::{PLAIN, chart};

/// The files of the first game.
pub(super) fn files() -> Vec<(String, String)> {
    let sets = [
        harbour_lights(),
        yoake_no_kouro(),
        slow_glass(),
        severny_veter(),
        key_sampler(),
        byeolbit_jeongwon(),
        workshop_drafts(),
        borrowed_umbrella(),
    ];
    sets.into_iter().flatten().collect()
}

fn osu_file(folder: &str, song: &Song, chart: &Chart) -> (String, String) {
    (format!("alpha/{folder}/{} ({}).osu", chart.difficulty, chart.creator), osu(song, chart))
}

fn qua_file(folder: &str, song: &Song, chart: &Chart) -> (String, String) {
    (format!("alpha/{folder}/{}.qua", chart.difficulty), qua(song, chart))
}

/// A chart that set `900105` also contains, in the other format.
fn harbour_normal(difficulty: &'static str, creator: &'static str, id: u32) -> Chart {
    chart(difficulty, creator, id, Pattern { seed: 101, step: 4, ..PLAIN })
}

fn harbour_song() -> Song {
    Song {
        title: "Harbour Lights",
        artist: "Paper Lanterns",
        tags: "ambient piano calm instrumental",
        bpms: vec![(0, 128.0)],
        set_id: 900_101,
        ..Song::default()
    }
}

/// Several difficulties and creators.
fn harbour_lights() -> Vec<(String, String)> {
    let (folder, song) = ("900101 Paper Lanterns - Harbour Lights", harbour_song());
    [
        harbour_normal("4K Normal", "mossgrove", 9_001_011),
        chart("4K Hard", "mossgrove", 9_001_012, Pattern { seed: 102, ..PLAIN }),
        chart(
            "4K tin owl's Expert",
            "tin owl",
            9_001_013,
            Pattern { seed: 103, step: 1, chords_of_ten: 1, ..PLAIN },
        ),
    ]
    .iter()
    .map(|chart| osu_file(folder, &song, chart))
    .collect()
}

/// Japanese names with romanised ones, 7 keys, and BPM changes.
fn yoake_no_kouro() -> Vec<(String, String)> {
    let song = Song {
        title: "夜明けの航路",
        title_romanised: "Yoake no Kouro",
        artist: "灯火ノート",
        artist_romanised: "Tomoshibi Note",
        tags: "japanese vocal 航海 dawn",
        bpms: vec![(0, 150.0), (16, 75.0), (20, 174.5)],
        set_id: 900_102,
        ..Song::default()
    };
    let seven = Pattern { keys: 7, chords_of_ten: 5, ..PLAIN };
    [
        chart("7K 入門", "kawara", 9_001_021, Pattern { seed: 201, step: 4, ..seven }),
        chart("7K Voyage", "kawara", 9_001_022, Pattern { seed: 202, long_of_ten: 4, ..seven }),
    ]
    .iter()
    .map(|chart| osu_file("900102 Tomoshibi Note - Yoake no Kouro", &song, chart))
    .collect()
}

/// `.qua` files, with comma-separated tags.
fn slow_glass() -> Vec<(String, String)> {
    let song = Song {
        title: "Slow Glass",
        artist: "Weaver's Knot",
        tags: "electronic, slow jam, glass",
        bpms: vec![(0, 92.5)],
        set_id: 900_103,
        ..Song::default()
    };
    [
        chart("Drift", "tin owl", 9_001_031, Pattern { seed: 301, long_of_ten: 3, ..PLAIN }),
        chart("Refraction", "oriel", 9_001_032, Pattern { seed: 302, keys: 7, chords_of_ten: 6, ..PLAIN }),
    ]
    .iter()
    .map(|chart| qua_file("900103 Weaver's Knot - Slow Glass", &song, chart))
    .collect()
}

/// Cyrillic names; 5 and 6 keys.
fn severny_veter() -> Vec<(String, String)> {
    let song = Song {
        title: "Северный ветер",
        title_romanised: "Severny Veter",
        artist: "Лесной хор",
        artist_romanised: "Lesnoy Khor",
        tags: "folk choir winter зима",
        bpms: vec![(0, 140.0), (24, 210.0)],
        set_id: 900_104,
        ..Song::default()
    };
    [
        chart("5K Иней", "snezhka", 9_001_041, Pattern { seed: 401, keys: 5, ..PLAIN }),
        chart("6K Метель", "snezhka", 9_001_042, Pattern { seed: 402, keys: 6, chords_of_ten: 4, ..PLAIN }),
    ]
    .iter()
    .map(|chart| osu_file("900104 Lesnoy Khor - Severny Veter", &song, chart))
    .collect()
}

/// A compilation with a chart of another set, in another format.
fn key_sampler() -> Vec<(String, String)> {
    let song = Song { set_id: 900_105, tags: "compilation, calm", ..harbour_song() };
    let folder = "900105 Various Artists - Key Sampler";
    vec![
        qua_file(folder, &song, &harbour_normal("Harbour Lights", "mossgrove", 9_001_051)),
        qua_file(
            folder,
            &song,
            &chart("Harbour Lights again", "oriel", 9_001_052, Pattern { seed: 501, step: 3, ..PLAIN }),
        ),
    ]
}

/// Korean names; mostly long notes.
fn byeolbit_jeongwon() -> Vec<(String, String)> {
    let song = Song {
        title: "별빛 정원",
        title_romanised: "Byeolbit Jeongwon",
        artist: "하늘연못",
        artist_romanised: "Haneul Yeonmot",
        tags: "korean ballad starlight",
        bpms: vec![(0, 168.0)],
        set_id: 900_106,
        ..Song::default()
    };
    let chart = chart("7K 은하", "baram", 9_001_061, Pattern { seed: 601, keys: 7, long_of_ten: 8, ..PLAIN });
    vec![osu_file("900106 Haneul Yeonmot - Byeolbit Jeongwon", &song, &chart)]
}

/// A folder without a set id, with charts that declare none: no public source.
fn workshop_drafts() -> Vec<(String, String)> {
    let song = Song {
        title: "Untitled Sketch",
        artist: "mossgrove",
        tags: "wip",
        bpms: vec![(0, 120.0)],
        ..Song::default()
    };
    let chart = chart("4K draft", "mossgrove", 0, Pattern { seed: 701, measures: 4, ..PLAIN });
    vec![osu_file("workshop drafts", &song, &chart)]
}

/// A folder without a set id, with a chart that declares one.
fn borrowed_umbrella() -> Vec<(String, String)> {
    let song = Song {
        title: "Borrowed Umbrella",
        artist: "Rain Office",
        tags: "jazz rain",
        bpms: vec![(0, 184.0)],
        set_id: 900_108,
        ..Song::default()
    };
    let chart = chart("4K Downpour", "tin owl", 9_001_081, Pattern { seed: 801, chords_of_ten: 7, ..PLAIN });
    vec![osu_file("borrowed umbrella", &song, &chart)]
}
