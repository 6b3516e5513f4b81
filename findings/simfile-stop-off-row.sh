#!/usr/bin/env bash
# simfile plays a note that is written on the beat of a stop after the stop, if the beat is on no row.
#
# The note is on line 2 of a measure of 20 lines, the stop is on the same beat, 0.4. A note on the beat of a
# stop comes before it, and simfile documents that. But it rounds the beats of timing changes to 1/48 and leaves
# the beats of notes as they are: the stop is on 19/48, the note on 19.2/48, so the note is 5 seconds late. On
# beat 0.2, which is rounded up, the note is in time.
#
# 2026-11-27: simfile 2.1.1 and msdparser 2.0.0 of PyPI.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check simfile==2.1.1 msdparser==2.0.0

cat >expected <<'END'
note on beat 0.400, stop on beat 0.4: 5.4 s
note on beat 0.200, stop on beat 0.2: 0.2 s
END
env/bin/python - >seen <<'END'
import simfile
from simfile.notes import NoteData
from simfile.notes.timed import time_notes
from simfile.timing import TimingData

for line in (2, 1):
    beat = line / 5
    rows = ["1000" if row == line else "0000" for row in range(20)]
    notes = "#NOTES:\ndance-single:\n:\nHard:\n1:\n0:\n" + "\n".join(rows) + "\n;\n"
    file = simfile.loads(f"#OFFSET:0;\n#BPMS:0=60;\n#STOPS:{beat}=5;\n{notes}")
    (timed,) = time_notes(NoteData(file.charts[0]), TimingData(file))
    print(f"note on beat {timed.note.beat}, stop on beat {beat}: {timed.time:.1f} s")
END
cat seen
diff expected seen
