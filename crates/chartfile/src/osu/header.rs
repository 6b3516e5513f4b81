//! The settings and the metadata of an `.osu` file.
//!
//! ppy/osu e9451fe7, `LegacyBeatmapDecoder.handleGeneral`, `handleMetadata`, `handleDifficulty`, `handleEvent`.

use chart_index_rox::Metadata;

use super::lines::{Section, key_and_value};
use super::numbers::{double, int, single};
use crate::text_encoding::TextDecoder;

/// What the sections before the notes say. A value that the game cannot read keeps the one before.
pub(super) struct Header<'a> {
    /// The mode: 0 to 3.
    pub(super) mode: u8,
    circle_size: f32,
    overall_difficulty: f32,
    slider_multiplier: f64,
    audio_lead_in_ms: i32,
    preview_ms: i32,
    beatmap_id: i32,
    set_id: i32,
    texts: Texts<'a>,
}

/// Texts in the encoding of the file.
#[derive(Default)]
struct Texts<'a> {
    title: &'a [u8],
    title_unicode: &'a [u8],
    artist: &'a [u8],
    artist_unicode: &'a [u8],
    creator: &'a [u8],
    difficulty: &'a [u8],
    source: &'a [u8],
    tags: &'a [u8],
    audio_file: &'a [u8],
    background_file: &'a [u8],
}

impl<'a> Header<'a> {
    /// The defaults of the game (`BeatmapDifficulty`, `ApplyLegacyDefaults`).
    pub(super) fn new() -> Self {
        Self {
            mode: 0,
            circle_size: 5.0,
            overall_difficulty: 5.0,
            slider_multiplier: 1.4,
            audio_lead_in_ms: 0,
            preview_ms: -1,
            beatmap_id: 0,
            set_id: 0,
            texts: Texts::default(),
        }
    }

    /// Reads a line of a section of settings.
    pub(super) fn read(&mut self, section: Section, line: &'a [u8]) {
        if section == Section::Events {
            return self.read_event(line);
        }
        let (key, value) = key_and_value(line);
        let number = |target: &mut i32| *target = int(value).unwrap_or(*target);
        let texts = &mut self.texts;
        match (section, key) {
            // A mode that the game does not have is an error.
            (Section::General, b"Mode") => {
                let mode = int(value).and_then(|mode| u8::try_from(mode).ok()).filter(|mode| *mode < 4);
                self.mode = mode.unwrap_or(self.mode);
            }
            (Section::General, b"AudioFilename") => texts.audio_file = value,
            (Section::General, b"AudioLeadIn") => number(&mut self.audio_lead_in_ms),
            (Section::General, b"PreviewTime") => number(&mut self.preview_ms),
            (Section::Metadata, b"Title") => texts.title = value,
            (Section::Metadata, b"TitleUnicode") => texts.title_unicode = value,
            (Section::Metadata, b"Artist") => texts.artist = value,
            (Section::Metadata, b"ArtistUnicode") => texts.artist_unicode = value,
            (Section::Metadata, b"Creator") => texts.creator = value,
            (Section::Metadata, b"Version") => texts.difficulty = value,
            (Section::Metadata, b"Source") => texts.source = value,
            (Section::Metadata, b"Tags") => texts.tags = value,
            (Section::Metadata, b"BeatmapID") => number(&mut self.beatmap_id),
            (Section::Metadata, b"BeatmapSetID") => number(&mut self.set_id),
            (Section::Difficulty, b"CircleSize") => {
                self.circle_size = single(value).unwrap_or(self.circle_size);
            }
            (Section::Difficulty, b"OverallDifficulty") => {
                self.overall_difficulty = single(value).unwrap_or(self.overall_difficulty);
            }
            (Section::Difficulty, b"SliderMultiplier") => {
                self.slider_multiplier = double(value).unwrap_or(self.slider_multiplier);
            }
            _ => {}
        }
    }

    /// Reads the name of the background, such as `0,0,"bg.jpg",0,0`.
    fn read_event(&mut self, line: &'a [u8]) {
        let mut fields = line.split(|&byte| byte == b',');
        if matches!(fields.next(), Some(b"0" | b"Background"))
            && let Some(file) = fields.nth(1)
        {
            self.texts.background_file = file;
        }
    }

    /// The number of columns (`applyDifficultyRestrictions`; `ManiaBeatmapConverter`, which makes two stages of
    /// more than 10).
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is 1 to 18")]
    pub(super) fn keys(&self) -> u8 {
        let keys = self.circle_size.clamp(1.0, 18.0).round_ties_even() as u8;
        if keys > 10 { keys / 2 * 2 } else { keys }
    }

    /// The slider multiplier within its limits (`applyDifficultyRestrictions`).
    pub(super) const fn slider_multiplier(&self) -> f64 {
        self.slider_multiplier.clamp(0.4, 3.6)
    }

    /// The metadata, and the romanised title and artist. An empty original name is the romanised one.
    pub(super) fn metadata(&self, decoder: TextDecoder) -> (Metadata, [String; 2]) {
        let text = |raw| decoder.text(raw).trim().to_owned();
        let texts = &self.texts;
        let [title, artist] = [(texts.title_unicode, texts.title), (texts.artist_unicode, texts.artist)].map(
            |(original, romanised)| {
                Some(text(original)).filter(|name| !name.is_empty()).unwrap_or_else(|| text(romanised))
            },
        );
        let background = text(texts.background_file);
        let metadata = Metadata {
            chart_id: u64::try_from(self.beatmap_id).ok().filter(|&id| id > 0),
            chartset_id: u64::try_from(self.set_id).ok().filter(|&id| id > 0),
            title: title.into(),
            artist: artist.into(),
            creator: text(texts.creator).into(),
            difficulty_name: text(texts.difficulty).into(),
            difficulty_value: Some(self.overall_difficulty.clamp(0.0, 10.0)),
            audio_file: text(texts.audio_file).into(),
            background_file: non_empty(background.trim_matches('"')),
            audio_offset_us: i64::from(self.audio_lead_in_ms) * 1000,
            preview_time_us: i64::from(self.preview_ms.max(0)) * 1000,
            source: non_empty(&text(texts.source)),
            tags: text(texts.tags).split_whitespace().map(Into::into).collect(),
            ..Metadata::default()
        };
        (metadata, [text(texts.title), text(texts.artist)])
    }
}

fn non_empty<'a, T: From<&'a str>>(text: &'a str) -> Option<T> {
    (!text.is_empty()).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osu::lines::section_lines;

    fn header(text: &str) -> Header<'_> {
        let mut header = Header::new();
        section_lines(text.as_bytes()).for_each(|(section, line)| header.read(section, line));
        header
    }

    #[test]
    fn unreadable_values_keep_the_ones_before() {
        for (text, expected) in [
            ("Mode: 3", 3),
            ("Mode:3 // a", 3),
            ("Mode: 3\nMode: x", 3),
            ("Mode: 3\nMode: 4", 3),
            ("Mode: 3\nMode: -1", 3),
            ("Mode: 3\nMode: 3.0\nMode:\nMode", 3),
            ("Mode: 3\nMode: +2", 2),
            ("mode: 3", 0),
            ("[Song]\nMode: 3", 3),
            ("[Colours]\nMode: 3", 0),
        ] {
            assert_eq!(header(text).mode, expected, "{text:?}");
        }
    }

    #[test]
    fn key_count_is_rounded_half_to_even_and_clamped() {
        for (value, expected) in [
            ("7", 7),
            ("6.7", 7),
            ("4.5", 4),
            ("5.5", 6),
            (" 1E1 ", 10),
            ("0", 1),
            ("-4", 1),
            ("11", 10),
            ("17.9", 18),
            ("99", 18),
            ("", 5),
            ("4k", 5),
            ("NaN", 5),
            ("3000000000", 5),
        ] {
            assert_eq!(header(&format!("[Difficulty]\nCircleSize:{value}")).keys(), expected, "{value:?}");
        }
        assert_eq!(header("").keys(), 5);
    }

    #[test]
    fn slider_multiplier_is_clamped() {
        for (value, expected) in [("2", 2.0), ("0", 0.4), ("9", 3.6), ("x", 1.4)] {
            let multiplier = header(&format!("[Difficulty]\nSliderMultiplier:{value}")).slider_multiplier();
            assert!((multiplier - expected).abs() < f64::EPSILON, "{value}: {multiplier}");
        }
    }
}
