#!/usr/bin/env bash
# A comment on a line of its own inside a measure moves the notes of this measure in simfile.
#
# The parser removes the comment and leaves its line. The lines of a measure are counted to know how long each
# is, and the empty line counts, so four quarter notes become fifths. Before the first row of a measure, where
# editors write the number of the measure, a comment is harmless. A blank line does the same as a comment.
#
# 2026-11-27: simfile 2.1.1 and msdparser 2.0.0 of PyPI.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check simfile==2.1.1 msdparser==2.0.0

cat >expected <<'END'
comment before the rows: 0 1 2 3
comment after a row: 0 1 2 3
comment between rows: 0 4/5 12/5 16/5
blank line between rows: 0 4/5 12/5 16/5
END
env/bin/python - >seen <<'END'
import simfile
from simfile.notes import NoteData

for name, rows in (
    ("comment before the rows", "// 1\n1000\n1000\n1000\n1000"),
    ("comment after a row", "1000\n1000 // 1\n1000\n1000"),
    ("comment between rows", "1000\n1000\n// 1\n1000\n1000"),
    ("blank line between rows", "1000\n1000\n\n1000\n1000"),
):
    file = simfile.loads(f"#BPMS:0=60;\n#NOTES:\ndance-single:\n:\nHard:\n1:\n0:\n{rows}\n;\n")
    beats = (note.beat for note in NoteData(file.charts[0]))
    print(f"{name}:", *(f"{beat.numerator}/{beat.denominator}".removesuffix("/1") for beat in beats))
END
cat seen
diff expected seen
