//! What simfile 2.1.1 does in another way than StepMania 5, of what `simfiles` generates. Notes between two
//! rows are no difference here: simfile leaves them there, and `read_simfiles.py` puts them on the row of the
//! game before it asks simfile for their times.

use crate::comparison::KnownDifference;
use crate::simfile_notes::{Cell, Cells};
use crate::simfile_timing::{Change, MAX_BPM, Timing, row_beat};
use crate::simfiles::{Chart, Feature, Simfile};

/// The table.
pub(crate) const KNOWN: &[KnownDifference<Simfile>] = &[
    KnownDifference {
        reader: "reads no #FAKES",
        game: "does not judge notes in them",
        concerns: |file, index| has_note(file, index, |timing, row| is_inside(&timing.fakes, row)),
    },
    KnownDifference {
        reader: "lets time run backwards at a negative BPM",
        game: "makes it a warp in .sm, and ignores it in .ssc",
        concerns: |file, index| timing(file, index).bpms.iter().any(|bpm| bpm.value() < 0.0),
    },
    KnownDifference {
        reader: "raises ZeroDivisionError at a BPM of 0",
        game: "ignores it",
        concerns: |file, index| timing(file, index).bpms.iter().any(|bpm| bpm.value() == 0.0),
    },
    KnownDifference {
        reader: "plays BPMs above 9,999,999",
        game: "makes them warps in .sm",
        concerns: |file, index| timing(file, index).bpms.iter().any(|bpm| bpm.value() > MAX_BPM),
    },
    KnownDifference {
        reader: "lets time run backwards at a negative stop",
        game: "makes it a warp in .sm, and ignores it in .ssc",
        concerns: |file, index| timing(file, index).stops.iter().any(|stop| stop.value() < 0.0),
    },
    KnownDifference {
        reader: "lets time run backwards at a negative delay",
        game: "ignores it",
        concerns: |file, index| timing(file, index).delays.iter().any(|delay| delay.value() < 0.0),
    },
    KnownDifference {
        reader: "joins warps that intersect",
        game: "judges the notes after the end of the warp that begins last",
        concerns: |file, index| has_nested_warps(timing(file, index)),
    },
    KnownDifference {
        reader: "judges the notes where a warp ends",
        game: "does not if start and length, in single precision, add up to more than their row",
        concerns: |file, index| {
            has_note(file, index, |timing, row| {
                timing.warps.iter().any(|warp| warp.end_row() == row && row_beat(row) < warp.end())
            })
        },
    },
    KnownDifference {
        reader: "reads #WARPS of an .sm",
        game: "does not",
        concerns: |file, _| !file.is_ssc && !file.song.warps.is_empty(),
    },
    KnownDifference {
        reader: "reads lengths of warps in versions before 0.7",
        game: "reads their ends",
        concerns: |file, index| file.is_old() && !timing(file, index).warps.is_empty(),
    },
    KnownDifference {
        reader: "raises ValueError where the first BPM is not on beat 0",
        game: "has no rule; here it holds from beat 0",
        concerns: |file, index| timing(file, index).bpms.first().is_some_and(|bpm| bpm.row() != 0),
    },
    KnownDifference {
        reader: "raises IndexError without BPMs of the song, or of a chart with timing of its own",
        game: "plays 60 BPM",
        concerns: |file, index| timing(file, index).bpms.is_empty(),
    },
    KnownDifference {
        reader: "raises InvalidOperation at a number with letters after it",
        game: "reads the number",
        concerns: |file, _| file.feature == Feature::ValueWithUnit,
    },
    KnownDifference {
        reader: "reads stops in the order of the file",
        game: "orders them by beat",
        concerns: |file, index| !timing(file, index).stops.is_sorted_by_key(Change::beat),
    },
    KnownDifference {
        reader: "reads no #NOTES2 of an .sm",
        game: "reads it as #NOTES",
        concerns: |file, _| !file.is_ssc && file.feature == Feature::Notes2Tag,
    },
    KnownDifference {
        reader: "ends a hold at an automatic keysound",
        game: "does not",
        concerns: |file, index| has_keysound_in_hold(&chart(file, index).cells),
    },
    KnownDifference {
        reader: "raises ValueError at an unknown cell",
        game: "reads it as empty",
        concerns: |file, index| cells(file, index).iter().any(|cell| !"1234AMLFK".contains(cell.kind)),
    },
    KnownDifference {
        reader: "reads further columns",
        game: "cuts them",
        concerns: |file, index| {
            let keys = usize::from(chart(file, index).cells.keys);
            cells(file, index).iter().any(|cell| cell.column >= keys)
        },
    },
    KnownDifference {
        reader: "counts blank lines of a measure, and those of a comment, as rows",
        game: "does not",
        concerns: |file, index| {
            measures(file, index).any(|lines| lines.len() > 1 && lines.iter().any(is_blank))
        },
    },
    KnownDifference {
        reader: "counts a measure without a character",
        game: "does not",
        concerns: |file, index| measures(file, index).any(Vec::is_empty),
    },
    KnownDifference {
        reader: "raises IndexError if the first measure is blank",
        game: "counts it in .ssc, and cuts it off in .sm",
        concerns: |file, index| measures(file, index).next().is_some_and(|lines| lines.iter().all(is_blank)),
    },
    KnownDifference {
        reader: "plays each line of a measure of more than 192 lines",
        game: "plays the last note of those that are on one row",
        concerns: |file, index| measures(file, index).any(|lines| lines.len() > 192),
    },
];

fn chart(file: &Simfile, index: usize) -> &Chart {
    &file.charts[index]
}

fn timing(file: &Simfile, index: usize) -> &Timing {
    file.timing(chart(file, index))
}

fn measures(file: &Simfile, index: usize) -> impl Iterator<Item = &Vec<String>> {
    chart(file, index).cells.measures.iter()
}

fn cells(file: &Simfile, index: usize) -> Vec<Cell> {
    chart(file, index).cells.cells()
}

#[expect(clippy::ptr_arg, reason = "the items of an iterator")]
fn is_blank(line: &String) -> bool {
    line.trim().is_empty() || line.starts_with("//")
}

/// Whether a note begins on such a row.
fn has_note(file: &Simfile, index: usize, is_row: fn(&Timing, i64) -> bool) -> bool {
    let timing = timing(file, index);
    cells(file, index).iter().any(|cell| cell.kind != '3' && is_row(timing, cell.row))
}

/// Whether a row is in the last interval that begins before it.
fn is_inside(intervals: &[Change], row: i64) -> bool {
    let last =
        intervals.iter().filter(|interval| interval.row() <= row).max_by_key(|interval| interval.row());
    last.is_some_and(|interval| row_beat(row) < interval.end())
}

fn has_nested_warps(timing: &Timing) -> bool {
    timing.warps.windows(2).any(|pair| row_beat(pair[1].row()) < pair[0].end())
}

fn has_keysound_in_hold(cells: &Cells) -> bool {
    let mut held = vec![false; usize::from(cells.keys)];
    for cell in cells.cells() {
        let Some(held) = held.get_mut(cell.column) else { continue };
        match cell.kind {
            'K' if *held => return true,
            'K' => {}
            kind => *held = matches!(kind, '2' | '4'),
        }
    }
    false
}
