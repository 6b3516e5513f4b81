"""Writes charts as .sm and .ssc with the package simfile, at 125 BPM.

Reads a JSON object for each line: a folder, a step type, a number of keys, and notes as row, column and end.
"""

import json
import sys
from pathlib import Path

from simfile.notes import Note, NoteData, NoteType
from simfile.sm import SMChart, SMSimfile
from simfile.ssc import SSCChart, SSCSimfile
from simfile.timing import Beat


def note_data(chart):
    notes = []
    for row, column, end in chart["notes"]:
        head = NoteType.TAP if end is None else NoteType.HOLD_HEAD
        notes.append(Note(Beat(row, 48), column, head))
        if end is not None:
            notes.append(Note(Beat(end, 48), column, NoteType.TAIL))
    return str(NoteData.from_notes(sorted(notes), chart["keys"]))


def write(path, file, step, chart):
    file.bpms = "0.000=125.000"
    file.offset = "-0.321"
    step.stepstype = chart["stepType"]
    step.notes = note_data(chart)
    file.charts.append(step)
    path.mkdir()
    name = "song.sm" if isinstance(file, SMSimfile) else "song.ssc"
    with open(path / name, "w") as output:
        file.serialize(output)


for line in sys.stdin:
    chart = json.loads(line)
    folder = Path(chart["folder"])
    write(folder / "sm", SMSimfile.blank(), SMChart.blank(), chart)
    write(folder / "ssc", SSCSimfile.blank(), SSCChart.blank(), chart)
