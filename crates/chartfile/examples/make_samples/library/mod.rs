//! The sample library. All titles, artists and creators are made up.

mod alpha;
mod beta;
mod pattern;
mod write;

use pattern::Pattern;
use write::Chart;

/// The files of the library: path below its root, and text.
pub(crate) fn files() -> Vec<(String, String)> {
    let mut files = alpha::files();
    files.extend(beta::files());
    files
}

/// A pattern of eight measures; the fields that make it what it is are set with `..`.
const PLAIN: Pattern = Pattern {
    seed: 0,
    keys: 4,
    measures: 8,
    step: 2,
    long_of_ten: 1,
    chords_of_ten: 2,
    mines_and_rolls: false,
};

/// A chart with the notes of a pattern.
fn chart(difficulty: &'static str, creator: &'static str, id: u32, pattern: Pattern) -> Chart {
    Chart { difficulty, creator, keys: pattern.keys, id, notes: pattern.notes() }
}
