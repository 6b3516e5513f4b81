//! A reader of archives that was written from docs/formats/rox.md alone.

/// A chart, with times instead of differences.
#[derive(Debug, PartialEq)]
pub(crate) struct Chart {
    pub(crate) version: u8,
    pub(crate) keys: u8,
    pub(crate) ids: [Option<u64>; 2],
    /// Title, artist, creator, difficulty, audio file.
    pub(crate) texts: [String; 5],
    pub(crate) difficulty_value: Option<f32>,
    /// Background, source, genre, language.
    pub(crate) optional_texts: [Option<String>; 4],
    /// Audio offset, start and length of the preview.
    pub(crate) times_us: [i64; 3],
    pub(crate) tags: Vec<String>,
    pub(crate) for_two: bool,
    /// Time, BPM or scroll speed, beats in a measure of a BPM.
    pub(crate) timing_points: Vec<(i64, f32, Option<u8>)>,
    pub(crate) notes: Vec<Note>,
    pub(crate) hitsounds: Vec<(String, Option<u8>)>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Note {
    pub(crate) time_us: i64,
    pub(crate) kind: u8,
    pub(crate) duration_us: Option<i64>,
    pub(crate) hitsound: Option<u16>,
    pub(crate) column: u8,
}

/// Reads a file, which has to be valid.
pub(crate) fn chart(file: &[u8]) -> Chart {
    let frame = file.strip_prefix(b"ROX\0").expect("a ROX file");
    let bytes = zstd::decode_all(frame).expect("a zstd frame");
    let archive = Archive(&bytes);
    let at = bytes.len() - 200;
    let mut time_us = 0;
    Chart {
        version: archive.u8(at),
        keys: archive.u8(at + 1),
        ids: [8, 24].map(|offset| archive.option(at + offset, 8, Archive::u64)),
        texts: [40, 48, 56, 64, 80].map(|offset| archive.text(at + offset)),
        difficulty_value: archive.option(at + 72, 4, Archive::f32),
        optional_texts: [88, 128, 140, 152].map(|offset| archive.option(at + offset, 4, Archive::text)),
        times_us: [104, 112, 120].map(|offset| archive.i64(at + offset)),
        tags: archive.list(at + 164, 8, Archive::text),
        for_two: archive.u8(at + 172) == 1,
        timing_points: archive.list(at + 176, 24, Archive::timing_point),
        notes: archive.list(at + 184, 32, |archive, at| archive.note(at, &mut time_us)),
        hitsounds: archive
            .list(at + 192, 12, |archive, at| (archive.text(at), archive.option(at + 8, 1, Archive::u8))),
    }
}

struct Archive<'a>(&'a [u8]);

impl Archive<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0[at..at + N].try_into().expect("as many bytes")
    }

    fn u8(&self, at: usize) -> u8 {
        self.0[at]
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes(at))
    }

    fn u32(&self, at: usize) -> usize {
        u32::from_le_bytes(self.bytes(at)).try_into().expect("64 bits")
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }

    fn i64(&self, at: usize) -> i64 {
        i64::from_le_bytes(self.bytes(at))
    }

    fn f32(&self, at: usize) -> f32 {
        f32::from_le_bytes(self.bytes(at))
    }

    /// A position, whose distance from a field is in the archive.
    fn position(&self, field: usize, at: usize) -> usize {
        let distance = i32::from_le_bytes(self.bytes(at));
        field.checked_add_signed(distance.try_into().expect("64 bits")).expect("a position")
    }

    fn option<T>(&self, at: usize, offset: usize, value: impl FnOnce(&Self, usize) -> T) -> Option<T> {
        match self.u8(at) {
            0 => None,
            1 => Some(value(self, at + offset)),
            tag => panic!("{tag} is no tag of an option"),
        }
    }

    fn text(&self, at: usize) -> String {
        let bytes = if self.u8(at) >> 6 == 0b10 {
            let n = self.u32(at);
            let start = self.position(at, at + 4);
            &self.0[start..start + ((n & 0x3f) | ((n >> 8) << 6))]
        } else {
            let field = &self.0[at..at + 8];
            field.split(|byte| *byte == 0xff).next().expect("a part")
        };
        str::from_utf8(bytes).expect("UTF-8").to_owned()
    }

    fn list<T>(&self, at: usize, size: usize, mut element: impl FnMut(&Self, usize) -> T) -> Vec<T> {
        let start = self.position(at, at);
        (0..self.u32(at + 4)).map(|index| element(self, start + index * size)).collect()
    }

    fn timing_point(&self, at: usize) -> (i64, f32, Option<u8>) {
        let beats = match self.u8(at) {
            0 => Some(self.u8(at + 20)),
            1 => None,
            tag => panic!("{tag} is no kind of timing point"),
        };
        (self.i64(at + 8), self.f32(at + 16), beats)
    }

    fn note(&self, at: usize, time_us: &mut i64) -> Note {
        *time_us += self.i64(at);
        let kind = self.u8(at + 8);
        assert!(kind <= 3, "{kind} is no kind of note");
        Note {
            time_us: *time_us,
            kind,
            duration_us: matches!(kind, 1 | 2).then(|| self.i64(at + 16)),
            hitsound: self.option(at + 24, 2, Self::u16),
            column: self.u8(at + 28),
        }
    }
}
