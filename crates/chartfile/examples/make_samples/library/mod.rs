//! The sample library. All titles, artists and creators are fictional.

mod alpha;
mod beta;
mod pattern;
mod write;

use pattern::Pattern;
use write::Chart;

/// The files of the library: paths below its root, with contents.
pub(crate) fn files() -> Vec<(String, String)> {
    let mut files = alpha::files();
    files.extend(beta::files());
    files
}

/// The default pattern, eight measures long.
const PLAIN: Pattern = Pattern {
    seed: 0,
    keys: 4,
    measures: 8,
    step: 2,
    long_of_ten: 1,
    chords_of_ten: 2,
    mines_and_rolls: false,
};

fn chart(difficulty: &'static str, creator: &'static str, id: u32, pattern: Pattern) -> Chart {
    Chart { difficulty, creator, keys: pattern.keys, id, notes: pattern.notes() }
}
