#!/usr/bin/env bash
# reamber delays a note by a stop only if the note is at least as far behind the stop as the stop is long.
#
# At 60 BPM with a stop of 1.5 seconds on beat 1, notes on beats 0 to 4. The notes on beats 3 and 4 are delayed.
# The one on beat 2, a second behind the stop, is where it would be without. A file with short stops is right,
# and one with a long stop plays the notes behind it while the music stands still.
#
# 2026-11-28: reamber 1.0.0, simfile 2.1.1 and msdparser 2.0.0 of PyPI.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check reamber==1.0.0 simfile==2.1.1 msdparser==2.0.0

write() { # STOPS
    printf '#OFFSET:0;\n#BPMS:0=60;\n#STOPS:%s;\n' "$1"
    printf '#NOTES:\n     dance-single:\n     :\n     Hard:\n     1:\n     0,0,0,0,0:\n'
    printf '1000\n1000\n1000\n1000\n,\n1000\n0000\n0000\n0000\n;\n'
}
write 1=1.5 >long.sm
write 1=0.5 >short.sm

cat >expected <<'END'
long.sm, simfile: 0 1000 3500 4500 5500 ms
long.sm, reamber: 0 1000 2000 4500 5500 ms
short.sm, simfile: 0 1000 2500 3500 4500 ms
short.sm, reamber: 0 1000 2500 3500 4500 ms
END
env/bin/python - >seen <<'END'
import simfile
from reamber.sm.SMMapSet import SMMapSet
from simfile.notes import NoteData
from simfile.notes.timed import time_notes
from simfile.timing import TimingData

for name in ("long.sm", "short.sm"):
    file = simfile.open(name)
    times = [note.time * 1000 for note in time_notes(NoteData(file.charts[0]), TimingData(file))]
    print(f"{name}, simfile:", *(f"{time:.0f}" for time in times), "ms")
    (chart,) = SMMapSet.read_file(name)
    print(f"{name}, reamber:", *(f"{time:.0f}" for time in sorted(chart.hits.offset)), "ms")
END
cat seen
diff expected seen
