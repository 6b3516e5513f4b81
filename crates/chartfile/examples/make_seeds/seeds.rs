//! The seeds: small inputs that together use every feature of the formats.

use std::fmt::Write as _;
use std::io::{self, Cursor, Write};

use chart_index_rox::{Hitsound, Note, RoxChart, TimingPoint, write};
use encoding_rs::{EUC_KR, SHIFT_JIS};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

const OSU: &str = "osu file format v14\n\n[General]\nMode: 3\n\n[Metadata]\nTitle:A\nTitleUnicode:あ\nArtist:B\nTags:c d\n\
                   BeatmapID:7\nBeatmapSetID:9\n\n[Difficulty]\nCircleSize:4\n\n[TimingPoints]\n0,500,4,1,0,100,1,0\n\
                   900,-50,4,1,0,100,0,0\n\n[HitObjects]\n64,192,1000,1,0,0:0:0:0:\n192,192,1500,128,0,1750:0:0:0:0:\n\
                   512,192,2000,1,0,\n";

const QUA: &str = "Mode: Keys7\nMapId: 7\nMapSetId: 9\nTitle: あ\nTags: a, b\nTimingPoints:\n- StartTime: 5\n  Bpm: 120\n  \
                   Signature: 4\nSliderVelocities:\n- StartTime: 1\n  Multiplier: 2\nHitObjects:\n- StartTime: 10\n  Lane: 1\n\
                   - StartTime: 20\n  Lane: 7\n  EndTime: 30\n";

const TIMING: &str =
    "#OFFSET:-0.5;\n#BPMS:0=120,2=240;\n#STOPS:1=0.25;\n#DELAYS:2=0.25;\n#WARPS:3=0.5;\n#FAKES:4=1;\n";

/// Paths below the seed folder, with contents.
pub(crate) fn files() -> io::Result<Vec<(String, Vec<u8>)>> {
    let charts = charts().into_iter().map(|(name, format, content)| {
        // The first byte selects the format.
        (format!("parse_to_hash/{name}"), [&[format][..], &content].concat())
    });
    let archives = archives()?.into_iter().map(|(name, content)| (format!("archive/{name}"), content));
    let rox = rox_archives()?.into_iter().map(|(name, content)| (format!("rox/{name}"), content));
    Ok(charts.chain(archives).chain(rox).collect())
}

fn sm(timing: &str, charts: &[(&str, &str)]) -> String {
    let mut text = format!("#TITLE:あ;\n#TITLETRANSLIT:A;\n#ARTIST:B;\n#CREDIT:C;\n{timing}");
    for (step_type, measures) in charts {
        _ = write!(text, "#NOTES:\n{step_type}:\nd:\nHard:\n7:\n0,0:\n{measures}\n;\n");
    }
    text
}

fn ssc(song: &str, chart: &str, measures: &str) -> String {
    format!(
        "#VERSION:0.83;\n#TITLE:A;\n{song}#NOTEDATA:;\n#STEPSTYPE:dance-single;\n#DIFFICULTY:Edit;\n#DESCRIPTION:d;\n\
         #METER:7;\n{chart}#NOTES:\n{measures}\n;\n"
    )
}

fn utf_16(text: &str) -> Vec<u8> {
    std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

/// Name, format as numbered in `fuzz_targets/parse_to_hash.rs`, and content.
fn charts() -> Vec<(&'static str, u8, Vec<u8>)> {
    let columns = [
        ("dance-single", "1000\n0M00\n2004\n3003\n,\n00L0\n0F0K"),
        ("pump-single", "10001\n00100"),
        ("dance-solo", "100001\n020000\n030000"),
        ("kb7-single", "1000001"),
        ("dance-double", "10000001"),
    ];
    let attributes = [("dance-single", "{1|n|0|0}000\n0{2|h|1|0}00\n0{3|n|0|0}S0\n000{M|v|0|0}")];
    let warps = "#BPMS:0=120,2=-120,3=120,5=99999999,6=60;\n#STOPS:-1=-1,1=-0.5,1.5=2;\n#DELAYS:2=-1;\n";
    let four = [("dance-single", "1000\n0100\n0010\n0001\n,\n1001\n0110")];
    let japanese = sm("#BPMS:0=120;\n", &four).replace('あ', "夜明けの表");
    vec![
        ("osu", 0, OSU.into()),
        ("osu_utf_16", 0, utf_16(OSU)),
        ("sm", 1, sm(TIMING, &columns).into()),
        ("sm_attributes", 1, sm("#BPMS:0=120;\n", &attributes).into()),
        ("sm_negative_timing", 1, sm(warps, &four).into()),
        ("sm_shift_jis", 1, SHIFT_JIS.encode(&japanese).0.into_owned()),
        ("ssc", 2, ssc(TIMING, "", "1000\n0100").into()),
        (
            "ssc_split_timing",
            2,
            ssc(TIMING, "#OFFSET:1;\n#BPMS:0=60,1=0;\n#STOPS:1=-1,2=1;\n", "2000\n3000").into(),
        ),
        ("qua", 3, QUA.into()),
        ("qua_five_keys", 3, QUA.replace("Keys7", "Keys5").replace("Lane: 7", "Lane: 5").into()),
        (
            "qua_alias",
            3,
            "Mode: Keys4\nTimingPoints: &t\n- Bpm: 120\nHitObjects: [{Lane: 1}, {Lane: 4}]\n".into(),
        ),
    ]
}

fn archives() -> io::Result<Vec<(&'static str, Vec<u8>)>> {
    let (stored, deflated) = (CompressionMethod::Stored, CompressionMethod::Deflated);
    let plain = archive(stored, &[("a.osu", OSU), ("s/b.sm", "b"), ("s/c.png", "c"), ("d.zip", "d")])?;
    let charts = [("a.osu", OSU), ("b.qua", QUA)];
    let inner = archive(deflated, &[("a.osu", OSU), ("s/a.sm", "a"), ("s/a.ssc", "b"), ("b.osz", "c")])?;
    let deflate64 = archive(deflated, &charts)?;
    let deflate64 = changed(&changed(&deflate64, b"PK\x01\x02", 10, 1), b"PK\x03\x04", 8, 1);
    let spellings = archive(stored, &[("xxa.osu", "a"), ("s/yyy/b.osu", "b"), ("zzc.osu", "c")])?;
    let spellings = renamed(&spellings, b"xx", b"./");
    let spellings = renamed(&renamed(&spellings, b"yyy/", b"\\./\\"), b"zz", b"C:");
    let encrypted = changed(&plain, b"PK\x01\x02", 8, 1);
    let method = changed(&plain, b"PK\x01\x02", 10, 14);
    let checksum = changed(&plain, b"PK\x01\x02", 16, 0xff);
    let names = archive(stored, &[("xxxxxx.osu", "a"), ("yyyyyy/a.sm", "b")])?;
    let names = renamed(
        &renamed(&names, b"xxxxxx", &SHIFT_JIS.encode("夜明表").0),
        b"yyyyyy",
        &EUC_KR.encode("별빛정").0,
    );
    let mut behind_other_bytes = b"MZ another file".to_vec();
    behind_other_bytes.extend(&plain);
    Ok(vec![
        ("empty", archive(stored, &[("", ""); 0])?),
        ("stored", plain),
        ("deflated", archive(deflated, &charts)?),
        ("deflate64", deflate64),
        ("bzip2", archive(CompressionMethod::Bzip2, &charts)?),
        ("zstd", archive(CompressionMethod::Zstd, &charts)?),
        ("nested", archive(stored, &[("s/a.osz", &inner[..]), ("c.qp", &inner)])?),
        ("spellings", spellings),
        ("encrypted", encrypted),
        ("method", method),
        ("checksum", checksum),
        ("names", names),
        ("behind_other_bytes", behind_other_bytes),
        ("link", link()?),
    ])
}

/// Archives of ROX files.
fn rox_archives() -> io::Result<Vec<(&'static str, Vec<u8>)>> {
    let mut chart = RoxChart::new(4);
    chart.metadata.title = "a title that is not inline".into();
    chart.metadata.source = Some("a".into());
    chart.metadata.tags = vec!["a".into(), "a tag that is not inline".into()];
    chart.timing_points = vec![TimingPoint::bpm(0, 180.0), TimingPoint::sv(1_000_000, 1.5)];
    chart.notes = vec![Note::tap(0, 0), Note::hold(0, 500_000, 2), Note::mine(0, 3), Note::burst(1, 1, 3)];
    chart.hitsounds = vec![Hitsound::with_volume("a", 70)];
    [("empty", RoxChart::new(7)), ("full", chart)]
        .into_iter()
        .map(|(name, mut chart)| {
            let file = write(&mut chart).map_err(io::Error::other)?;
            Ok((name, zstd::decode_all(&file[4..])?))
        })
        .collect()
}

fn archive(method: CompressionMethod, files: &[(&str, impl AsRef<[u8]>)]) -> io::Result<Vec<u8>> {
    let options = SimpleFileOptions::default().compression_method(method);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, options)?;
        writer.write_all(content.as_ref())?;
    }
    Ok(writer.finish()?.into_inner())
}

fn link() -> io::Result<Vec<u8>> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_symlink("a.osu", "b.osu", SimpleFileOptions::default())?;
    Ok(writer.finish()?.into_inner())
}

/// Flips bits of one byte of the first header that starts with `magic`.
fn changed(archive: &[u8], magic: &[u8], offset: usize, value: u8) -> Vec<u8> {
    let mut bytes = archive.to_vec();
    let header = bytes.windows(magic.len()).position(|window| window == magic);
    if let Some(byte) = header.and_then(|at| bytes.get_mut(at + offset)) {
        *byte ^= value;
    }
    bytes
}

/// Replaces every occurrence of a name: the writer accepts only UTF-8 names.
fn renamed(archive: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = archive.to_vec();
    for at in 0..bytes.len().saturating_sub(to.len()) {
        if bytes[at..].starts_with(from) && from.len() == to.len() {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
    }
    bytes
}
