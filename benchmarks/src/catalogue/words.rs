//! Words in five scripts with their romanised forms.

use std::sync::LazyLock;

use fastrand::Rng;

use super::random::{Stream, generator, pick};

/// A script of titles and names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Latin,
    Japanese,
    Korean,
    Chinese,
    Cyrillic,
}

/// A word in its script and in Latin letters without accents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) native: String,
    pub(super) latin: String,
}

/// A part of a word, in its script and in Latin letters.
type Part = (&'static str, &'static str);

/// Reads parts such as `é=e`; those that are the same in both are written once.
fn parts(text: &'static str) -> Vec<Part> {
    text.split_whitespace().map(|part| part.split_once('=').unwrap_or((part, part))).collect()
}

/// The number of parts without accents, the first ones of `LATIN`.
const WITHOUT_ACCENTS: usize = 32;

/// Whole words.
static FREQUENT: LazyLock<Vec<Part>> = LazyLock::new(|| parts(include_str!("words/frequent.txt")));
static LATIN: LazyLock<Vec<Part>> = LazyLock::new(|| parts(include_str!("words/latin.txt")));
static JAPANESE: LazyLock<Vec<Part>> = LazyLock::new(|| parts(include_str!("words/japanese.txt")));
static KOREAN: LazyLock<Vec<Part>> = LazyLock::new(|| parts(include_str!("words/korean.txt")));
static CHINESE: LazyLock<Vec<Part>> = LazyLock::new(|| parts(include_str!("words/chinese.txt")));
static CYRILLIC: LazyLock<Vec<Part>> = LazyLock::new(|| parts(include_str!("words/cyrillic.txt")));

impl Script {
    /// The word of a rank, the same in every catalogue.
    pub(super) fn word(self, rank: u64) -> Word {
        if self == Self::Latin
            && let Some((native, latin)) = usize::try_from(rank).ok().and_then(|rank| FREQUENT.get(rank))
        {
            return Word { native: (*native).to_owned(), latin: (*latin).to_owned() };
        }
        let mut random = generator(self as u64, Stream::Word, rank);
        let (parts, max_parts): (&[Part], _) = match self {
            // Accents in one word of twelve.
            Self::Latin if rank.is_multiple_of(12) => (&LATIN, 4),
            Self::Latin => (&LATIN[..WITHOUT_ACCENTS], 4),
            Self::Japanese => (&JAPANESE, 4),
            Self::Korean => (&KOREAN, 3),
            Self::Chinese => (&CHINESE, 3),
            Self::Cyrillic => (&CYRILLIC, 4),
        };
        let count = if rank < 200 { random.usize(1..=2) } else { random.usize(2..=max_parts) };
        let (native, latin) = (0..count).map(|_| pick(&mut random, parts)).unzip();
        Word { native, latin }
    }

    /// The separator between words.
    pub(super) const fn separator(self) -> &'static str {
        match self {
            Self::Latin | Self::Korean | Self::Cyrillic => " ",
            Self::Japanese | Self::Chinese => "",
        }
    }
}

/// The text in one of the usual capitalisations of titles.
pub(super) fn styled(text: &str, random: &mut Rng) -> String {
    match random.u8(0..10) {
        0 => text.to_uppercase(),
        1 => text.to_owned(),
        _ => text.split(' ').map(capitalised).collect::<Vec<_>>().join(" "),
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
