//! The notes of generated simfiles.

use chart_index_tests::Random;

use crate::simfiles::Feature;

const USUAL_SIZES: [usize; 9] = [4, 8, 12, 16, 24, 32, 48, 64, 192];
const ODD_SIZES: [usize; 12] = [1, 2, 3, 5, 6, 7, 9, 10, 20, 28, 100, 128];

/// The value of `#NOTES`.
pub(crate) fn notes(random: &mut Random, keys: u8, feature: Feature) -> String {
    let mut held = vec![false; usize::from(keys)];
    let count = 1 + random.below(8);
    let mut measures = Vec::new();
    for _ in 0..count {
        // A measure of blanks counts; simfile fails if it is the first.
        if !measures.is_empty() && random.one_in(12) {
            measures.push(" ".to_owned());
        }
        let sizes = if random.one_in(2) { &ODD_SIZES[..] } else { &USUAL_SIZES[..] };
        let size = *random.pick(sizes);
        measures.push(measure(random, size, &mut held, feature));
    }
    // Most holds that are still open end here.
    if held.contains(&true) && !random.one_in(8) {
        measures.push(held.iter().map(|held| if *held { '3' } else { '0' }).collect());
    }
    format!("\n{}\n", measures.join("\n,\n"))
}

fn measure(random: &mut Random, size: usize, held: &mut [bool], feature: Feature) -> String {
    // At most one row in `gap` has notes.
    let gap = if size > 64 { 6 } else { 2 };
    let mut lines = Vec::new();
    for _ in 0..size {
        let is_empty = !random.one_in(gap);
        let line = |held: &mut bool| if is_empty { "0".to_owned() } else { cell(random, held, feature) };
        let mut line: String = held.iter_mut().map(line).collect();
        if feature == Feature::Comments && random.one_in(8) {
            line.push_str(" // 0110");
        }
        lines.push(line);
    }
    lines.join("\n")
}

/// A cell. Tails of holds are missing in one of 30 cases, and heads.
fn cell(random: &mut Random, held: &mut bool, feature: Feature) -> String {
    let kind = if *held { held_cell(random) } else { free_cell(random) };
    *held = match kind {
        '2' | '4' => true,
        '0' | 'K' => *held,
        _ => false,
    };
    if feature == Feature::KeysoundIndexes && kind != '0' && random.one_in(4) {
        return format!("{kind}[{}]", random.below(20));
    }
    kind.to_string()
}

fn held_cell(random: &mut Random) -> char {
    match random.below(60) {
        0 => '2',
        1 => *random.pick(&['1', 'M', 'L', 'F', '4']),
        2..20 => '3',
        _ => '0',
    }
}

fn free_cell(random: &mut Random) -> char {
    match random.below(60) {
        0 => '3',
        1..16 => '1',
        16..20 => '2',
        20 => '4',
        21 | 22 => 'M',
        23 => *random.pick(&['L', 'F', 'K']),
        _ => '0',
    }
}
