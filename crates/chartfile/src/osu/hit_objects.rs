//! The hit objects of an `.osu` file.
//!
//! ppy/osu e9451fe7, `ConvertHitObjectParser`.

use super::numbers::{coordinate, double, int, length};
use super::slider_path::{Distance, read_distance};

/// The first format version whose coordinates have decimals, `LegacyBeatmapEncoder.FIRST_LAZER_VERSION`.
const FIRST_VERSION_WITH_DECIMALS: i32 = 128;

/// The highest number of repeats of a slider.
const MAX_REPEATS: i32 = 9000;

/// `LegacyHitObjectType`.
const CIRCLE: i32 = 1;
const SLIDER: i32 = 2;
const SPINNER: i32 = 8;
const HOLD: i32 = 128;

/// A hit object as the game reads it.
pub(super) struct HitObject<'a> {
    pub(super) x: f32,
    pub(super) start_ms: f64,
    pub(super) kind: Kind,
    pub(super) sample: Sample<'a>,
}

/// What a hit object is.
pub(super) enum Kind {
    Circle,
    Hold {
        length_ms: f64,
    },
    Slider {
        /// The distance in one direction.
        distance: Distance,
        spans: i32,
    },
    Spinner,
    /// An object of several types, which the game reads and cannot convert.
    Ambiguous,
}

/// The sound file that a hit object names, and its volume.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sample<'a> {
    pub(super) file: &'a [u8],
    pub(super) volume: i32,
}

/// A position in the playfield, in single precision.
pub(super) type Position = (f32, f32);

/// How positions and times are read.
#[derive(Clone, Copy)]
pub(super) struct ObjectFormat {
    /// What the game adds to all times of old formats.
    offset_ms: f64,
    has_decimals: bool,
}

impl ObjectFormat {
    pub(super) const fn new(version: i32, offset_ms: f64) -> Self {
        Self { offset_ms, has_decimals: version >= FIRST_VERSION_WITH_DECIMALS }
    }

    pub(super) fn position(self, x: &[u8], y: &[u8]) -> Option<Position> {
        let read = |text| coordinate(text).map(|value| if self.has_decimals { value } else { whole(value) });
        Some((read(x)?, read(y)?))
    }

    /// Reads a line; `None` where the game throws an exception: it skips the line (`Parse`).
    pub(super) fn read(self, line: &[u8]) -> Option<HitObject<'_>> {
        let mut fields = line.split(|&byte| byte == b',');
        let position = self.position(fields.next()?, fields.next()?)?;
        let start = fields.next()?;
        let start_ms = double(start)? + self.offset_ms;
        let types = int(fields.next()?)? & (CIRCLE | SLIDER | SPINNER | HOLD);
        int(fields.next()?)?;
        let (kind, sample) = if types & CIRCLE != 0 {
            (Kind::Circle, read_sample(fields.next().unwrap_or_default(), true)?)
        } else if types & SLIDER != 0 {
            (self.read_slider(fields, position)?, Sample::default())
        } else if types & SPINNER != 0 {
            double(fields.next()?)?;
            (Kind::Spinner, read_sample(fields.next().unwrap_or_default(), true)?)
        } else if types & HOLD != 0 {
            self.read_hold(start_ms, double(start)?, fields.next().unwrap_or_default())?
        } else {
            return None;
        };
        let kind = if types.count_ones() == 1 { kind } else { Kind::Ambiguous };
        Some(HitObject { x: position.0, start_ms, kind, sample })
    }

    /// A long note with its end, and its sound after a colon.
    fn read_hold(self, start_ms: f64, written_ms: f64, end: &[u8]) -> Option<(Kind, Sample<'_>)> {
        let (end_ms, sample) = match end.iter().position(|&byte| byte == b':') {
            None if end.is_empty() => (written_ms, Sample::default()),
            None => (double(end)?, Sample::default()),
            Some(colon) => (double(&end[..colon])?, read_sample(&end[colon + 1..], true)?),
        };
        // The start has its offset already when the game compares it.
        Some((Kind::Hold { length_ms: end_ms.max(start_ms) + self.offset_ms - start_ms }, sample))
    }

    fn read_slider<'a>(self, mut fields: impl Iterator<Item = &'a [u8]>, start: Position) -> Option<Kind> {
        let path = fields.next()?;
        let repeats = int(fields.next()?).filter(|&repeats| repeats <= MAX_REPEATS)?;
        let spans = repeats.max(1);
        let given = fields.next().map_or(Some(0.0), length)?;
        let _sounds = fields.next();
        let edge_samples = fields.next().unwrap_or_default();
        if !edge_samples.is_empty() {
            let edges = edge_samples.split(|&byte| byte == b'|').take(usize::try_from(spans).ok()? + 1);
            edges.map(|sample| read_sample(sample, true)).try_for_each(|sample| sample.map(drop))?;
        }
        read_sample(fields.next().unwrap_or_default(), false)?;
        let distance = read_distance(path, start, (given > 0.0).then_some(given), self)?;
        // Sliders without length have no repeats, `createSlider`.
        let spans = if matches!(distance, Distance::Known(..=1e-7)) { 1 } else { spans };
        Some(Kind::Slider { distance, spans })
    }
}

/// A coordinate without its decimals.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "coordinates are small")]
const fn whole(value: f32) -> f32 {
    value as i32 as f32
}

/// The sample of a hit object, such as `0:0:0:0:file.wav`; nothing if it is empty. Without `is_whole`, only
/// the first two numbers are read (`readCustomSampleBanks`).
fn read_sample(text: &[u8], is_whole: bool) -> Option<Sample<'_>> {
    let mut sample = Sample::default();
    if text.is_empty() {
        return Some(sample);
    }
    let mut fields = text.split(|&byte| byte == b':');
    int(fields.next()?)?;
    int(fields.next()?)?;
    if is_whole {
        fields.next().map_or(Some(0), int)?;
        sample.volume = fields.next().map_or(Some(0), int)?.max(0);
        sample.file = fields.next().unwrap_or_default();
    }
    Some(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of a long note after its start, 0 for a circle; `None` for a line that is skipped.
    fn length_ms(format: ObjectFormat, line: &str) -> Option<f64> {
        Some(match format.read(line.as_bytes())?.kind {
            Kind::Circle => 0.0,
            Kind::Hold { length_ms } => length_ms,
            Kind::Slider { distance: Distance::Known(distance), spans } => distance * f64::from(spans),
            Kind::Slider { .. } | Kind::Spinner => f64::INFINITY,
            Kind::Ambiguous => f64::NEG_INFINITY,
        })
    }

    /// `ConvertHitObjectParser.Parse`, `readCustomSampleBanks`.
    #[test]
    fn lines_are_read_or_skipped_as_in_the_game() {
        for (line, expected) in [
            ("64,192,1000,1,0", Some(0.0)),
            ("64,192,1000,1,0,", Some(0.0)),
            ("64, 192, 1E3, 1, 0, 0:0:0:0:", Some(0.0)),
            ("64.5,-192.5,1000.5,5,300,0:0:0:0:a.wav:b", Some(0.0)),
            ("64,192,1000,117,0,0:0", Some(0.0)),
            ("64,192,1000,257,0,3:-5:7", Some(0.0)),
            // Missing or unreadable fields.
            ("64,192,1000,1", None),
            ("64,192,1000,,0", None),
            ("64,,1000,1,0", None),
            ("64,192,x,1,0", None),
            ("64,192,2147483648,1,0", None),
            ("131073,192,1000,1,0", None),
            ("64,192,1000,1.0,0", None),
            ("64,192,1000,1,x", None),
            ("64,192,1000,1,0,0", None),
            ("64,192,1000,1,0,0:", None),
            ("64,192,1000,1,0,0:0:x", None),
            ("64,192,1000,1,0,0:0:0:", None),
            // Types: the first that is set is read.
            ("64,192,1000,0,0", None),
            ("64,192,1000,4,0", None),
            ("64,192,1000,256,0", None),
            ("64,192,1000,12,0,2000", Some(f64::INFINITY)),
            ("64,192,1000,8,0", None),
            ("64,192,1000,8,0,2000,0", None),
            ("64,192,1000,129,0,0:0", Some(f64::NEG_INFINITY)),
            ("64,192,1000,129,0,2000", None),
            ("64,192,1000,-1,0", Some(f64::NEG_INFINITY)),
            // Long notes.
            ("64,192,1000,128,0", Some(0.0)),
            ("64,192,1000,128,0,", Some(0.0)),
            ("64,192,1000,128,0,1500.5", Some(500.5)),
            ("64,192,1000,128,0,1500:", Some(500.0)),
            ("64,192,1000,128,0,1500:0:0:0:0:", Some(500.0)),
            ("64,192,1000,128,0,500:0:0:0:0:", Some(0.0)),
            ("64,192,1000,128,0,:0:0", None),
            ("64,192,1000,128,0,1500:0", None),
            ("64,192,1000,128,0,1500:0:x", None),
            // Sliders.
            ("64,192,1000,2,0,L|164:192,1,140", Some(140.0)),
            ("64,192,1000,6,0,L|164:192,3,140", Some(420.0)),
            ("64,192,1000,2,0,L|164:192,0,140", Some(140.0)),
            ("64,192,1000,2,0,L|164:192,-7,140", Some(140.0)),
            ("64,192,1000,2,0,L|164:192,9000,1", Some(9000.0)),
            ("64,192,1000,2,0,L|164:192,1,-5", Some(f64::INFINITY)),
            ("64,192,1000,2,0,L|164:192,1", Some(f64::INFINITY)),
            ("64,192,1000,2,0,L,9,140", Some(0.0)),
            ("64,192,1000,2,0,L|164:192,1,140,x|y,0:0|1:2:3:4:,0:0:x", Some(140.0)),
            ("64,192,1000,2,0,L|164:192,1,140,,,", Some(140.0)),
            ("64,192,1000,2,0,L|164:192,1,140,0,0:0|0:0|x", Some(140.0)),
            ("64,192,1000,2,0,L|164:192,2,140,0,0:0|0:0|x", None),
            ("64,192,1000,2,0,L|164:192,1,140,0,0:0,0", None),
            ("64,192,1000,2,0,L|164:192,9001,1", None),
            ("64,192,1000,2,0,L|164:192,x,1", None),
            ("64,192,1000,2,0,L|164:192,1,", None),
            ("64,192,1000,2,0,L|164:192,1,131073", None),
            ("64,192,1000,2,0,L|164:192", None),
        ] {
            assert_eq!(length_ms(ObjectFormat::new(14, 0.0), line), expected, "{line}");
        }
    }

    /// `ConvertHitObjectParser.Parse`: the start has the offset when it is compared with the end.
    #[test]
    fn old_formats_are_later() {
        for (line, start_ms, length) in [
            ("64,192,1000,1,0", 1024.0, 0.0),
            ("64,192,1000,128,0,1500", 1024.0, 500.0),
            ("64,192,1000,128,0,1010", 1024.0, 24.0),
            ("64,192,1000,128,0", 1024.0, 24.0),
        ] {
            let format = ObjectFormat::new(3, 24.0);
            let object = format.read(line.as_bytes()).expect(line);
            assert_eq!(
                (Some(object.start_ms), length_ms(format, line)),
                (Some(start_ms), Some(length)),
                "{line}"
            );
        }
    }

    #[test]
    fn decimals_of_positions_are_cut_in_old_formats() {
        for (version, x, expected) in [(14, "127.99", 127.0), (127, "-0.9", 0.0), (128, "127.99", 127.99_f32)]
        {
            let line = format!("{x},0,0,1,0");
            let read = ObjectFormat::new(version, 0.0).read(line.as_bytes()).expect("an object").x;
            assert!((read - expected).abs() < f32::EPSILON, "{x} in version {version}: {read}");
        }
    }

    #[test]
    fn sounds_are_read() {
        for (line, file, volume) in [
            ("64,192,0,1,0,0:0:0:50:a.wav", "a.wav", 50),
            ("64,192,0,128,0,9:0:0:0:-5:a.wav", "a.wav", 0),
            ("64,192,0,2,0,L|9:9,1,1,0,0:0,0:0:0:50:a.wav", "", 0),
        ] {
            let sample = ObjectFormat::new(14, 0.0).read(line.as_bytes()).expect(line).sample;
            assert_eq!(sample, Sample { file: file.as_bytes(), volume }, "{line}");
        }
    }
}
