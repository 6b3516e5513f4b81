//! Songs, artists and creators. A few of them are in many chartsets.

use fastrand::Rng;

use super::random::{Stream, Zipf, bell, generator, per_mille, pick, pick_weighted};
use super::words::{Script, Word, styled};

/// The properties of a song, which all its chartsets share.
#[derive(Debug, Clone)]
pub(super) struct Song {
    pub(super) title: Word,
    pub(super) artist: Word,
    /// Lowest, main and highest BPM, in thousandths.
    pub(super) bpm_thousandths: [u32; 3],
    pub(super) length_ms: u32,
    pub(super) tags: Vec<String>,
}

/// The distributions of songs, artists, creators and words.
#[derive(Debug)]
pub(super) struct Library {
    seed: u64,
    songs: Zipf,
    artists: Zipf,
    creators: Zipf,
    words: Zipf,
}

const SCRIPTS: [(u32, Script); 5] = [
    (60, Script::Latin),
    (24, Script::Japanese),
    (6, Script::Korean),
    (5, Script::Chinese),
    (5, Script::Cyrillic),
];

/// Titles that many songs share.
const COMMON_TITLES: [&str; 8] =
    ["Intro", "Outro", "Untitled", "Interlude", "Prelude", "Stay", "Overture", "Alive"];

/// Tags of many songs.
const COMMON_TAGS: [&str; 20] = [
    "anime",
    "japanese",
    "electronic",
    "vocaloid",
    "video",
    "game",
    "dnb",
    "english",
    "drum",
    "bass",
    "touhou",
    "remix",
    "hardcore",
    "rock",
    "instrumental",
    "opening",
    "tv",
    "size",
    "アニメ",
    "speedcore",
];

/// Frequent BPM values in thousandths, with their weights.
const FREQUENT_BPM: [(u32, u32); 14] = [
    (16, 174_000),
    (14, 180_000),
    (14, 200_000),
    (9, 175_000),
    (9, 170_000),
    (7, 160_000),
    (7, 150_000),
    (6, 140_000),
    (6, 128_000),
    (4, 190_000),
    (3, 185_000),
    (2, 165_000),
    (2, 220_000),
    (1, 130_000),
];

impl Library {
    pub(super) fn new(seed: u64, sets: u64) -> Self {
        Self {
            seed,
            songs: Zipf::new(sets * 11 / 20, 50),
            artists: Zipf::new(sets / 8, 20),
            creators: Zipf::new(sets / 12, 20),
            words: Zipf::new(20_000, 4),
        }
    }

    /// A random song, popular ones more often.
    pub(super) fn song(&self, random: &mut Rng) -> Song {
        let number = self.songs.rank(random);
        let random = &mut generator(self.seed, Stream::Song, number);
        let script = pick_weighted(random, &SCRIPTS);
        let title = if per_mille(random, 15) {
            plain(pick(random, &COMMON_TITLES))
        } else {
            named(self.title(script, random), script, random)
        };
        Song {
            title,
            artist: self.artist(random),
            bpm_thousandths: bpm_range(main_bpm(random), random),
            length_ms: length_ms(random),
            tags: self.tags(random),
        }
    }

    /// A random creator, prolific ones more often.
    pub(super) fn creator(&self, random: &mut Rng) -> String {
        let number = self.creators.rank(random);
        let random = &mut generator(self.seed, Stream::Creator, number);
        let script = pick_weighted(
            random,
            &[(88, Script::Latin), (6, Script::Japanese), (4, Script::Korean), (2, Script::Cyrillic)],
        );
        let name = styled(&script.word(random.u64(64..20_000)).native, random);
        match random.u8(0..8) {
            0 => format!("{name}{}", random.u16(1..2_020)),
            1 => format!("[{name}]"),
            2 => format!("{name}_{}", script.word(random.u64(64..2_000)).native),
            3 => format!("xX_{name}_Xx"),
            4 => format!("{name} {}", script.word(random.u64(64..20_000)).native),
            _ => name,
        }
    }

    fn artist(&self, random: &mut Rng) -> Word {
        let number = self.artists.rank(random);
        if number == 0 {
            return plain("Various Artists");
        }
        let random = &mut generator(self.seed, Stream::Artist, number);
        let script = pick_weighted(random, &SCRIPTS);
        let name = self.phrase(script, 2, random);
        let name = match random.u8(0..12) {
            0 => joined(&name, " feat. ", &self.phrase(script, 1, random)),
            1 => joined(&name, " vs ", &self.phrase(Script::Latin, 1, random)),
            _ => name,
        };
        named(name, script, random)
    }

    fn title(&self, script: Script, random: &mut Rng) -> Word {
        let title = self.phrase(script, 5, random);
        // Titles in other scripts often have a Latin part.
        if script != Script::Latin && per_mille(random, 120) {
            return joined(&title, " ~ ", &self.phrase(Script::Latin, 2, random));
        }
        title
    }

    fn phrase(&self, script: Script, most_words: usize, random: &mut Rng) -> Word {
        let words: Vec<Word> =
            (0..random.usize(1..=most_words)).map(|_| script.word(self.words.rank(random))).collect();
        let natives: Vec<&str> = words.iter().map(|word| word.native.as_str()).collect();
        let latins: Vec<&str> = words.iter().map(|word| word.latin.as_str()).collect();
        // Both forms have the same capitalisation, so that a Latin name equals its romanised form.
        let (mut same_random, native) = (random.clone(), styled(&natives.join(script.separator()), random));
        Word { native, latin: styled(&latins.join(" "), &mut same_random) }
    }

    /// Up to twenty tags, most of them rare.
    fn tags(&self, random: &mut Rng) -> Vec<String> {
        let count = random.usize(0..=20).min(random.usize(0..=20));
        let mut tags: Vec<String> = Vec::with_capacity(count);
        while tags.len() < count {
            let tag = match random.u8(0..10) {
                0..4 => pick(random, &COMMON_TAGS).to_owned(),
                4 => Script::Japanese.word(self.words.rank(random)).native,
                _ => Script::Latin.word(self.words.rank(random)).native,
            };
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        tags
    }
}

/// A name with its romanised form where it has one: in most names of other scripts, and few Latin names with
/// accents.
fn named(name: Word, script: Script, random: &mut Rng) -> Word {
    let is_romanised = per_mille(random, if script == Script::Latin { 100 } else { 850 });
    if is_romanised { name } else { plain(&name.native) }
}

fn plain(text: &str) -> Word {
    Word { native: text.to_owned(), latin: text.to_owned() }
}

fn joined(first: &Word, between: &str, second: &Word) -> Word {
    Word {
        native: [&first.native, between, &second.native].concat(),
        latin: [&first.latin, between, &second.latin].concat(),
    }
}

/// A frequent value, or one around 160, rarely slow or very fast. One in seven has decimals.
fn main_bpm(random: &mut Rng) -> u32 {
    let whole = match random.u8(0..100) {
        0..45 => return pick_weighted(random, &FREQUENT_BPM),
        45..88 => bell(random, 110, 210),
        88..95 => random.u32(60..120),
        _ => random.u32(210..320),
    };
    match random.u8(0..100) {
        0..15 => whole * 1_000 + 500,
        15..27 => whole * 1_000 + random.u32(1..1_000),
        _ => whole * 1_000,
    }
}

/// Lowest, main and highest BPM: equal in most songs, far apart in some, extreme in a few.
fn bpm_range(main: u32, random: &mut Rng) -> [u32; 3] {
    match random.u16(0..1_000) {
        0..800 => [main; 3],
        800..940 => [main - main / random.u32(8..40), main, main + main / random.u32(8..40)],
        940..998 => [main / random.u32(2..=4), main, main * random.u32(1..=3)],
        _ => [random.u32(1..1_000), main, random.u32(2_000_000..9_999_999)],
    }
}

/// Around two minutes, with a tail up to ten minutes, few very short songs, and a few of an hour.
fn length_ms(random: &mut Rng) -> u32 {
    match random.u16(0..2_000) {
        0 => random.u32(3_300_000..4_200_000),
        1..30 => random.u32(8_000..60_000),
        30..480 => {
            // The minimum of two, so that longer songs are rarer.
            let longest = 600_000;
            random.u32(140_000..longest).min(random.u32(140_000..longest))
        }
        _ => bell(random, 60_000, 180_000),
    }
}
