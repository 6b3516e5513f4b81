#!/usr/bin/env bash
# slider reads no osu!mania file with a long note as the game writes it.
#
# In the last field of a long note its end is followed by the samples: `2000:0:0:0:0:`. slider, which has a class
# for long notes, reads the whole field as a number and raises ValueError for the file. It reads the end only
# where the samples are a field of their own, as those of a spinner are, and then its end is a time, not a
# length. fosu reads the file of the game and refuses none of the two.
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
game.osu, fosu: HoldNote until 2000
game.osu, slider: ValueError
fields.osu, fosu: HoldNote until 2000
fields.osu, slider: HoldNote until 2000
END
env/bin/python - >seen <<'END'
import fosu
from slider import Beatmap


def fosu_note(name):
    note = fosu.parse_file(name).hit_objects[1]
    return f"{type(note).__name__} until {note.end_time:.0f}"


def slider_note(name):
    note = Beatmap.from_path(name).hit_objects()[1]
    return f"{type(note).__name__} until {note.end_time.total_seconds() * 1000:.0f}"


for name in ("game.osu", "fields.osu"):
    for reader, read in (("fosu", fosu_note), ("slider", slider_note)):
        try:
            note = read(name)
        except Exception as error:
            note = type(error).__name__
        print(f"{name}, {reader}: {note}")
END
cat seen
diff expected seen
