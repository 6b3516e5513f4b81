"""Prints the notes of the simfiles below a folder as the package simfile reads them, a JSON object for each chart.

Times are in microseconds from beat 0. A file or a chart that cannot be read has the name of the exception.
"""

import json
import multiprocessing
import struct
import sys
from pathlib import Path

import simfile
from simfile.notes import Note, NoteData, NoteType
from simfile.notes.group import NoteWithTail, OrphanedNotes, group_notes
from simfile.timing import Beat, TimingData
from simfile.timing.engine import TimingEngine

KEYS = {
    "dance-single": 4,
    "techno-single4": 4,
    "pump-single": 5,
    "dance-solo": 6,
    "kb7-single": 7,
    "ez2-real": 7,
}
# Lifts are judged; fakes and automatic keysounds are not.
TAPS = (NoteType.TAP, NoteType.LIFT)


def single(number):
    """The number in single precision."""
    return struct.unpack("f", struct.pack("f", number))[0]


def on_row(note):
    """The note on a row: simfile leaves it between two, StepMania does not."""
    if 48 % note.beat.denominator == 0:
        return note
    measure, part = divmod(note.beat, 4)
    beat = single(single(int(measure) + single(part / 4)) * 4)
    return note._replace(beat=Beat(round(single(beat * 48)), 48))


def timed(chart, engine):
    notes = map(on_row, NoteData(chart))
    grouped = group_notes(
        notes,
        join_heads_to_tails=True,
        orphaned_head=OrphanedNotes.DROP_ORPHAN,
        orphaned_tail=OrphanedNotes.DROP_ORPHAN,
    )
    for (note,) in grouped:
        if not engine.hittable(note.beat):
            continue
        start = engine.time_at(note.beat) * 1e6
        if isinstance(note, NoteWithTail):
            if note.note_type == NoteType.HOLD_HEAD:
                yield start, note.column, engine.time_at(note.tail_beat) * 1e6
        elif note.note_type in TAPS:
            yield start, note.column, None


def read(path):
    lines = []
    try:
        file = simfile.open(str(path), strict=False)
    except Exception as error:
        return [{"file": str(path), "error": type(error).__name__}]
    for chart in file.charts:
        line = {"file": str(path), "chart": chart.difficulty}
        try:
            timing = TimingData(file, chart)
            timing.offset = 0
            line["keys"] = KEYS[chart.stepstype]
            line["notes"] = list(timed(chart, TimingEngine(timing)))
        except Exception as error:
            line["error"] = type(error).__name__
        lines.append(line)
    return lines


if __name__ == "__main__":
    paths = sorted(Path(sys.argv[1]).glob("*/song.*"))
    with multiprocessing.Pool() as pool:
        for lines in pool.imap(read, paths, chunksize=20):
            for line in lines:
                print(json.dumps(line))
