#!/usr/bin/env bash
# rgc-chart counts lanes from 0 in charts that it reads from .osu files, and from 1 in those from .sm and .qua.
#
# All three become one type, so the same notes in two formats are not equal, and nothing says which count a
# chart has. Of rows with seven columns it reads the first four, and calls the chart one of four keys.
#
# 2026-11-28: rgc-chart 0.0.12 of crates.io.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

mkdir src
cat >Cargo.toml <<'END'
[package]
name = "finding"
version = "0.0.0"
edition = "2024"

[dependencies]
rgc-chart = "=0.0.12"
END
cat >src/main.rs <<'END'
use std::error::Error;

use rgc_chart::GenericManiaChart;
use rgc_chart::parse::{from_osu_generic, from_qua_generic, from_sm_generic};

const OSU: &str = "osu file format v14

[General]
Mode: 3

[Metadata]
Title:Lanes

[Difficulty]
CircleSize:4

[TimingPoints]
0,1000,4,1,0,100,1,0

[HitObjects]
64,192,0,1,0,0:0:0:0:
192,192,1000,1,0,0:0:0:0:
320,192,2000,1,0,0:0:0:0:
448,192,3000,1,0,0:0:0:0:
";

const QUA: &str = "AudioFile: audio.mp3
SongPreviewTime: 0
BackgroundFile: ''
Mode: Keys4
Title: Lanes
Artist: Nobody
Source: ''
Tags: ''
Creator: nobody
DifficultyName: Hard
Description: ''
EditorLayers: []
CustomAudioSamples: []
SoundEffects: []
TimingPoints:
- StartTime: 0
  Bpm: 60
SliderVelocities: []
HitObjects:
- StartTime: 0
  Lane: 1
  KeySounds: []
- StartTime: 1000
  Lane: 2
  KeySounds: []
- StartTime: 2000
  Lane: 3
  KeySounds: []
- StartTime: 3000
  Lane: 4
  KeySounds: []
";

fn sm(steps: &str, rows: &[&str]) -> String {
    let fields = format!("     {steps}:\n     :\n     Hard:\n     1:\n     0,0,0,0,0:\n");
    format!("#TITLE:Lanes;\n#OFFSET:0;\n#BPMS:0=60;\n#STOPS:;\n#NOTES:\n{fields}{}\n;\n", rows.join("\n"))
}

fn show(name: &str, chart: Result<GenericManiaChart, Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
    let chart = chart?;
    let lanes: Vec<u8> = chart.hitobjects.iter().map(|note| note.lane).collect();
    println!("{name}: {} keys, lanes {lanes:?}", chart.chartinfo.key_count);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    show(".osu", from_osu_generic(OSU))?;
    show(".qua", from_qua_generic(QUA))?;
    show(".sm", from_sm_generic(&sm("dance-single", &["1000", "0100", "0010", "0001"])))?;
    let rows = ["1000001", "0100010", "0010100", "0001000"];
    show(".sm with 7 columns", from_sm_generic(&sm("kb7-single", &rows)))
}
END

cat >expected <<'END'
.osu: 4 keys, lanes [0, 1, 2, 3]
.qua: 4 keys, lanes [1, 2, 3, 4]
.sm: 4 keys, lanes [1, 2, 3, 4]
.sm with 7 columns: 4 keys, lanes [1, 2, 3, 4]
END
CARGO_TARGET_DIR=$folder/target cargo run --quiet >seen
cat seen
diff expected seen
