#!/usr/bin/env bash
# Of two stops on one beat, simfile plays the second only, and of a stop and a delay both.
#
# The engine puts the beginnings of all stops of a beat before their ends, and adds the length of a stop where
# an end follows a beginning. So two stops of 2 and 3 seconds are 3 seconds, not 5, and their order matters.
# This is what StepMania does with a second stop on the same row; nothing in the documentation of either says
# so.
#
# 2026-11-27: simfile 2.1.1 and msdparser 2.0.0 of PyPI.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check simfile==2.1.1 msdparser==2.0.0

cat >expected <<'END'
no stop: 2 s
2 s, then 3 s: 5 s
3 s, then 2 s: 4 s
a stop of 2 s and a delay of 3 s: 7 s
END
env/bin/python - >seen <<'END'
import simfile
from simfile.timing import Beat, TimingData
from simfile.timing.engine import TimingEngine

for name, tags in (
    ("no stop", ""),
    ("2 s, then 3 s", "#STOPS:1=2,1=3;"),
    ("3 s, then 2 s", "#STOPS:1=3,1=2;"),
    ("a stop of 2 s and a delay of 3 s", "#STOPS:1=2;#DELAYS:1=3;"),
):
    file = simfile.loads(f"#OFFSET:0;#BPMS:0=60;{tags}")
    print(f"{name}: {TimingEngine(TimingData(file)).time_at(Beat(2)):.0f} s")
END
cat seen
diff expected seen
