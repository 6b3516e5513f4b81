//! The settings and the metadata of an `.osu` file.
//!
//! ppy/osu e9451fe7, `LegacyBeatmapDecoder.handleGeneral`, `handleMetadata`, `handleDifficulty`, `handleEvent`.

use std::collections::HashMap;

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
    /// Texts by their keys, in the encoding of the file.
    texts: HashMap<&'static str, &'a [u8]>,
}

/// The keys of texts. That of a background is its own.
const TEXTS: [&str; 9] = [
    "Title",
    "TitleUnicode",
    "Artist",
    "ArtistUnicode",
    "Creator",
    "Version",
    "Source",
    "Tags",
    "AudioFilename",
];

const BACKGROUND: &str = "Background";

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
            texts: HashMap::new(),
        }
    }

    /// Reads a line of a section of settings.
    pub(super) fn read(&mut self, section: Section, line: &'a [u8]) {
        if section == Section::Events {
            return self.read_event(line);
        }
        let (key, value) = key_and_value(line);
        let number = |target: &mut i32| *target = int(value).unwrap_or(*target);
        match (section, key) {
            // A mode that the game does not have is an error.
            (Section::General, b"Mode") => {
                let mode = int(value).and_then(|mode| u8::try_from(mode).ok()).filter(|mode| *mode < 4);
                self.mode = mode.unwrap_or(self.mode);
            }
            (Section::General, b"AudioLeadIn") => number(&mut self.audio_lead_in_ms),
            (Section::General, b"PreviewTime") => number(&mut self.preview_ms),
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
            (Section::General | Section::Metadata, _) => {
                let known = TEXTS.iter().find(|known| known.as_bytes() == key);
                self.texts.extend(known.map(|known| (*known, value)));
            }
            _ => {}
        }
    }

    /// Reads the name of the background, such as `0,0,"bg.jpg",0,0`.
    fn read_event(&mut self, line: &'a [u8]) {
        let mut fields = line.split(|&byte| byte == b',');
        if matches!(fields.next(), Some(b"0" | b"Background")) {
            self.texts.extend(fields.nth(1).map(|file| (BACKGROUND, file)));
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
        let text = |key| decoder.text(self.texts.get(key).unwrap_or(&&[][..])).trim().to_owned();
        let name = |original, romanised| {
            Some(text(original)).filter(|name| !name.is_empty()).unwrap_or_else(|| text(romanised))
        };
        let optional = |text: &str| (!text.is_empty()).then(|| text.into());
        let id = |id| u64::try_from(id).ok().filter(|&id| id > 0);
        let metadata = Metadata {
            chart_id: id(self.beatmap_id),
            chartset_id: id(self.set_id),
            title: name("TitleUnicode", "Title").into(),
            artist: name("ArtistUnicode", "Artist").into(),
            creator: text("Creator").into(),
            difficulty_name: text("Version").into(),
            difficulty_value: Some(self.overall_difficulty.clamp(0.0, 10.0)),
            audio_file: text("AudioFilename").into(),
            background_file: optional(text(BACKGROUND).trim_matches('"')),
            audio_offset_us: i64::from(self.audio_lead_in_ms) * 1000,
            preview_time_us: i64::from(self.preview_ms.max(0)) * 1000,
            source: optional(&text("Source")),
            tags: text("Tags").split_whitespace().map(Into::into).collect(),
            ..Metadata::default()
        };
        (metadata, ["Title", "Artist"].map(text))
    }
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
