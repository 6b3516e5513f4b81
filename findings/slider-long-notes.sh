#!/usr/bin/env bash
# slider raises ValueError for an osu!mania file with a long note, as the game writes it.
#
# In the last field of a long note its end is followed by the samples: `2000:0:0:0:0:`. slider, which has a
# class for long notes, reads the whole field as a number. Where the samples are a field of their own, as the
# game writes them for spinners, the file is read, and `hit_objects` still leaves the note out. fosu reads both.
#
# 2026-11-27: slider 0.8.4 and fosu 0.8.0 of PyPI.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check slider==0.8.4 fosu==0.8.0

write() { # FILE END
    cat >"$1" <<END
osu file format v14

[General]
AudioFilename: audio.mp3
Mode: 3

[Metadata]
Title:Long note
Artist:Nobody
Creator:nobody
Version:Hard

[Difficulty]
HPDrainRate:5
CircleSize:4
OverallDifficulty:5
ApproachRate:5
SliderMultiplier:1.4
SliderTickRate:1

[TimingPoints]
0,500,4,1,0,100,1,0

[HitObjects]
64,192,1000,1,0,0:0:0:0:
192,192,1500,128,0,$2
END
}
write game.osu 2000:0:0:0:0:
write fields.osu 2000,0:0:0:0:

cat >expected <<'END'
game.osu, fosu: Circle, HoldNote
game.osu, slider: ValueError
fields.osu, fosu: Circle, HoldNote
fields.osu, slider: Circle
END
env/bin/python - >seen <<'END'
import fosu
from slider import Beatmap

READERS = {
    "fosu": lambda name: fosu.parse_file(name).hit_objects,
    "slider": lambda name: Beatmap.from_path(name).hit_objects(),
}
for name in ("game.osu", "fields.osu"):
    for reader, read in READERS.items():
        try:
            notes = ", ".join(type(note).__name__ for note in read(name))
        except ValueError as error:
            notes = type(error).__name__
        print(f"{name}, {reader}: {notes}")
END
cat seen
diff expected seen
