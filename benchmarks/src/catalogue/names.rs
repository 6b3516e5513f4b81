//! Variants of song titles, extreme titles, and difficulty names.

use fastrand::Rng;

use super::random::{per_mille, pick};
use super::words::Word;

/// Suffixes of titles of cut, sped-up or remixed songs.
const VARIANTS: [&str; 10] = [
    " (Cut Ver.)",
    " (TV Size)",
    " [Remix]",
    " (Nightcore Ver.)",
    " (Sped Up Ver.)",
    " -Extended Mix-",
    " ~Piano Arrange~",
    " VIP",
    " (Game Ver.)",
    " [4K/7K]",
];

const DIFFICULTIES: [&str; 10] =
    ["Easy", "Normal", "Hard", "Hyper", "Another", "Insane", "Expert", "Extra", "Black Another", "Ω"];

/// The title of a chartset: in 20 % a variant of the title of the song, in 0.25 % an extreme title.
pub(super) fn chartset_title(title: Word, random: &mut Rng) -> Word {
    match random.u16(0..2_000) {
        0..400 => {
            let variant = pick(random, &VARIANTS);
            Word { native: title.native + variant, latin: title.latin + variant }
        }
        400..405 => {
            let native = extreme_title(random);
            Word { latin: native.clone(), native }
        }
        _ => title,
    }
}

/// A valid title that tests the robustness of programs.
fn extreme_title(random: &mut Rng) -> String {
    match random.u8(0..10) {
        0 => "Sphinx of black quartz, judge my vow ".repeat(random.usize(6..12)),
        1 => "寿限無".repeat(random.usize(70..140)),
        2 => pick(random, &["!!!", "...", "???", "-", "+", "~", "(_ _)", "[[]]"]).to_owned(),
        3 => pick(random, &["🔥💀", "✨", "👨‍👩‍👧‍👦", "🇯🇵🎵"]).to_owned(),
        4 => r#"" OR title = ""#.to_owned(),
        5 => r"100%_\".to_owned(),
        6 => "e\u{301}toile\u{200b} Z\u{351}\u{36b}alg\u{335}o".to_owned(),
        7 => "שלום עולם".to_owned(),
        8 => "  leading and   many spaces\t".to_owned(),
        _ => format!("{}", random.u64(..)),
    }
}

/// The difficulty name of chart `place` of `of` in its chartset, often with the key count or the creator.
pub(super) fn difficulty(keys: u8, place: u8, of: u8, creator: &str, random: &mut Rng) -> String {
    let step = usize::from(place) * (DIFFICULTIES.len() - 1) / usize::from(of);
    let name = DIFFICULTIES[(step + random.usize(0..2)).min(DIFFICULTIES.len() - 1)];
    if per_mille(random, 200) {
        return format!("{creator}'s {name}");
    }
    if per_mille(random, 400) { format!("[{keys}K] {name}") } else { name.to_owned() }
}
