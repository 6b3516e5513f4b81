//! What osu-parsers 4.1.7 and osu-mania-stable 5.0.1 do in another way than osu!, of what `osu_files`
//! generates.

use crate::comparison::KnownDifference;
use crate::osu_files::OsuFile;

/// The table.
pub(crate) const KNOWN: &[KnownDifference<OsuFile>] = &[
    KnownDifference {
        reader: "reads sliders as taps",
        game: "plays long notes of their duration",
        concerns: |file, _| objects(file).any(|object| object.kind() & 0b1011 == 2),
    },
    KnownDifference {
        reader: "reads spinners as taps",
        game: "draws their column at random, so the chart is refused",
        concerns: |file, _| objects(file).any(|object| object.kind() & 0b1011 == 8),
    },
    KnownDifference {
        reader: "reads an object of several types as a slider or a long note, or not at all",
        game: "cannot convert the chart, so it is refused",
        concerns: |file, _| {
            objects(file).any(|object| object.kind() & 1 == 1 && object.kind() & 0b1000_1010 != 0)
        },
    },
    KnownDifference {
        reader: "cuts the decimals of x in version 128",
        game: "does not since that version",
        concerns: |file, _| {
            file.version >= 128
                && objects(file).any(|object| file.column(object.x()) != file.column(object.x().trunc()))
        },
    },
    KnownDifference {
        reader: "reads 1 where x is 1e2",
        game: "reads 100",
        concerns: |file, _| objects(file).any(|object| object.field(0).contains('e')),
    },
    KnownDifference {
        reader: "reads an object whose hit sound or sample bank is not a whole number",
        game: "skips the line",
        concerns: |file, _| objects(file).any(Object::has_unreadable_sounds),
    },
    KnownDifference {
        reader: "adds no 24 ms to times of versions before 5",
        game: "adds them to the start before it compares it with the end, and again to the end",
        concerns: |file, _| file.version < 5 && objects(file).any(Object::is_shorter_than_24_ms),
    },
];

/// A line of an object, as far as it has fields.
#[derive(Debug, Clone, Copy)]
struct Object<'a>(&'a str);

fn objects(file: &OsuFile) -> impl Iterator<Item = Object<'_>> {
    file.objects.iter().map(|line| Object(line))
}

impl<'a> Object<'a> {
    fn field(self, index: usize) -> &'a str {
        self.0.split(',').nth(index).unwrap_or_default().trim()
    }

    fn x(self) -> f32 {
        self.field(0).parse().unwrap_or(0.0)
    }

    fn kind(self) -> u32 {
        self.field(3).parse().unwrap_or(0)
    }

    fn has_unreadable_sounds(self) -> bool {
        let bank = self.field(5).split(':').next().unwrap_or_default();
        self.field(4).contains('x') || self.kind() & 1 == 1 && bank.contains('.')
    }

    fn is_shorter_than_24_ms(self) -> bool {
        let start: f64 = self.field(2).parse().unwrap_or(0.0);
        let end: f64 = self.field(5).split(':').next().unwrap_or_default().parse().unwrap_or(start);
        self.kind() & 128 != 0 && end < start + 24.0
    }
}
