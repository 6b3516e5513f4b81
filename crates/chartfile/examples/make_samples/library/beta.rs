//! The packs of the second game.

use super::pattern::Pattern;
use super::write::{Chart, Song, sm, ssc};
use super::{PLAIN, chart};

const FIRST_PACK: &str = "beta/71 Kitchen Table Pack";
const SECOND_PACK: &str = "beta/72 Night Market Pack";

/// The files of the second game.
pub(super) fn files() -> Vec<(String, String)> {
    let songs = [copper_kettle(), night_bus(), midnight_express(), tea_stairs(), glass_orchard()];
    songs.into_iter().flatten().collect()
}

/// An `.sm` and an `.ssc` of the same song, with mines and rolls. The second pack contains the song, too.
fn copper_kettle() -> Vec<(String, String)> {
    let song = Song {
        title: "Copper Kettle",
        artist: "The Draughty Kitchen",
        bpms: vec![(0, 133.0)],
        ..Song::default()
    };
    let charts = [
        chart("Easy", "pan & lid", 0, Pattern { seed: 1101, step: 4, long_of_ten: 2, ..PLAIN }),
        chart("Medium", "pan & lid", 0, Pattern { seed: 1102, mines_and_rolls: true, ..PLAIN }),
        chart("Challenge", "pan & lid", 0, Pattern { seed: 1103, step: 1, mines_and_rolls: true, ..PLAIN }),
    ];
    vec![
        (format!("{FIRST_PACK}/Copper Kettle/kettle.sm"), sm(&song, &charts)),
        (format!("{FIRST_PACK}/Copper Kettle/kettle.ssc"), ssc(&song, &charts)),
        (format!("{SECOND_PACK}/Copper Kettle (again)/kettle.sm"), sm(&song, &charts)),
    ]
}

/// Every indexed key count and an unsupported one; BPM changes and stops.
fn night_bus() -> Vec<(String, String)> {
    let song = Song {
        title: "Night Bus",
        artist: "Last Stop Ensemble",
        bpms: vec![(0, 100.0), (8, 200.0), (24, 100.0)],
        stops: vec![(8, 0.5), (20, 0.125)],
        ..Song::default()
    };
    let of_keys = |keys, difficulty, creator| {
        let seed = 1200 + keys as u64;
        chart(difficulty, creator, 0, Pattern { seed, keys, measures: 6, mines_and_rolls: true, ..PLAIN })
    };
    let charts = [
        of_keys(4, "Hard", "depot"),
        of_keys(5, "Hard", "depot"),
        of_keys(6, "Medium", "conductor"),
        of_keys(7, "Challenge", "conductor"),
        of_keys(8, "Hard", "depot"),
    ];
    vec![(format!("{FIRST_PACK}/Night Bus/bus.ssc"), ssc(&song, &charts))]
}

/// Cyrillic names with transliterated ones.
fn midnight_express() -> Vec<(String, String)> {
    let song = Song {
        title: "Полночный экспресс",
        title_romanised: "Polnochny Ekspress",
        artist: "Тихая станция",
        artist_romanised: "Tikhaya Stantsiya",
        bpms: vec![(0, 160.0)],
        ..Song::default()
    };
    let charts = [chart("Hard", "snezhka", 0, Pattern { seed: 1301, chords_of_ten: 4, ..PLAIN })];
    vec![(format!("{FIRST_PACK}/Полночный экспресс/express.sm"), sm(&song, &charts))]
}

/// Two difficulties and a stop before the last measures.
fn tea_stairs() -> Vec<(String, String)> {
    let song = Song {
        title: "Tea Stairs",
        artist: "Slow Escalator",
        bpms: vec![(0, 145.75)],
        stops: vec![(24, 1.0)],
        ..Song::default()
    };
    let charts: Vec<Chart> = vec![
        chart("Beginner", "oolong", 0, Pattern { seed: 1401, step: 8, long_of_ten: 0, ..PLAIN }),
        chart("Hard", "oolong", 0, Pattern { seed: 1402, step: 1, chords_of_ten: 0, ..PLAIN }),
    ];
    vec![(format!("{SECOND_PACK}/Tea Stairs/stairs.sm"), sm(&song, &charts))]
}

/// A creator for each chart, and Japanese names.
fn glass_orchard() -> Vec<(String, String)> {
    let song = Song {
        title: "硝子の果樹園",
        title_romanised: "Garasu no Kajuen",
        artist: "夜市楽団",
        artist_romanised: "Yoichi Gakudan",
        bpms: vec![(0, 178.0), (16, 89.0), (20, 178.0)],
        ..Song::default()
    };
    let charts = [
        chart("Easy", "plum", 0, Pattern { seed: 1501, step: 4, ..PLAIN }),
        chart("Medium", "quince", 0, Pattern { seed: 1502, mines_and_rolls: true, ..PLAIN }),
        chart("Hard", "medlar", 0, Pattern { seed: 1503, chords_of_ten: 6, long_of_ten: 3, ..PLAIN }),
    ];
    vec![(format!("{SECOND_PACK}/Garasu no Kajuen/orchard.ssc"), ssc(&song, &charts))]
}
