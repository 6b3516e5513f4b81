#!/usr/bin/env bash
# rhythm-open-exchange writes a chart of seven keys as .qua and .sm that it cannot read.
#
# The model of a chart has its key count, and the writers of .osu and .ssc use it. That of .qua writes `Keys4`
# in every file, with lanes up to 7; that of .sm has step types for 6 and 8 columns and writes all others as
# `dance-single`, with rows of seven cells. Both return a file and no error. Of the two writers of StepMania's
# formats in one crate, one can be used for seven keys.
#
# 2026-11-27: rhythm-open-exchange 0.8.1 of crates.io.
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
rhythm-open-exchange = { version = "=0.8.1", default-features = false, features = ["formats"] }
END
cat >src/main.rs <<'END'
use rox::codec::{Decoder, Encoder};
use rox::formats::{
    OsuDecoder, OsuEncoder, QuaDecoder, QuaEncoder, SmDecoder, SmEncoder, SscDecoder, SscEncoder,
};
use rox::{Note, RoxChart, RoxResult, TimingPoint};

fn main() -> RoxResult<()> {
    let mut chart = RoxChart::new(7);
    chart.timing_points.push(TimingPoint::bpm(0, 120.0));
    chart.notes = (0..7).map(|column| Note::tap(500_000 * i64::from(column), column)).collect();
    show(".osu", OsuDecoder::decode(&OsuEncoder::encode(&chart)?));
    show(".ssc", SscDecoder::decode(&SscEncoder::encode(&chart)?));
    show(".qua", QuaDecoder::decode(&QuaEncoder::encode(&chart)?));
    show(".sm", SmDecoder::decode(&SmEncoder::encode(&chart)?));
    Ok(())
}

fn show(format: &str, read: RoxResult<RoxChart>) {
    match read {
        Ok(chart) => println!("{format}: {} keys", chart.key_count),
        Err(error) => println!("{format}: {error}"),
    }
}
END

cat >expected <<'END'
.osu: 7 keys
.ssc: 7 keys
.qua: invalid column 4 for 4K chart
.sm: invalid format: No playable chart: chart 1: dance-single: measure 1: row `1000000` has 7 columns, expected 4
END
CARGO_TARGET_DIR=$folder/target cargo run --quiet >seen
cat seen
diff expected seen
