#!/usr/bin/env bash
# A note on the beat of a stop: rgc-chart plays it after the stop, rhythm-open-exchange and the game before it.
#
# At 60 BPM with a stop of five seconds on beat 1, notes on beats 0, 1 and 2. Every writer of patterns that stop
# puts a note on the beat of the stop, so this moves notes by seconds in real charts, and only these notes:
# those before and after agree.
#
# 2026-11-27: rgc-chart 0.0.12 and rhythm-open-exchange 0.8.1 of crates.io.
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
rhythm-open-exchange = { version = "=0.8.1", default-features = false, features = ["formats"] }
END
cat >src/main.rs <<'END'
use rox::codec::Decoder;

const FILE: &str = "#TITLE:Stop;
#ARTIST:Nobody;
#OFFSET:0;
#BPMS:0=60;
#STOPS:1=5;
#NOTES:
     dance-single:
     :
     Hard:
     1:
     0,0,0,0,0:
1000
0100
0010
0000
;
";

fn main() {
    let chart = rgc_chart::parse::from_sm_generic(FILE).expect("a chart");
    let times: Vec<i32> = chart.hitobjects.iter().map(|note| note.time).collect();
    println!("rgc-chart: {times:?} ms");
    let chart = rox::formats::SmDecoder::decode(FILE.as_bytes()).expect("a chart");
    let times: Vec<i64> = chart.notes.iter().map(|note| note.time_us / 1_000).collect();
    println!("rhythm-open-exchange: {times:?} ms");
}
END

cat >expected <<'END'
rgc-chart: [0, 6000, 7000] ms
rhythm-open-exchange: [0, 1000, 7000] ms
END
CARGO_TARGET_DIR=$folder/target cargo run --quiet >seen
cat seen
diff expected seen
