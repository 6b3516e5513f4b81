//! Chart files in encodings other than UTF-8.

use chart_index_chartfile::{ChartFormat, decode};
use chart_index_domain::ChartDraft;
use encoding_rs::{BIG5, EUC_KR, Encoding, GBK, SHIFT_JIS, WINDOWS_1252};

use crate::support::osu;

const MEASURE: &str = "1000\n0100\n0010\n0001\n";

fn simfile(title: &str, artist: &str) -> String {
    format!(
        "#TITLE:{title};\n#ARTIST:{artist};\n#CREDIT:Author;\n#BPMS:0=120;\n#NOTES:\ndance-single:\n:\nHard:\n7:\n0:\n\
         {MEASURE};\n"
    )
}

fn only(format: ChartFormat, bytes: &[u8]) -> ChartDraft {
    decode(format, bytes).expect("a chart").charts.remove(0)
}

fn encoded(text: &str, encoding: &'static Encoding) -> Vec<u8> {
    let (bytes, _, unmappable) = encoding.encode(text);
    assert!(!unmappable, "{text}");
    bytes.into_owned()
}

#[test]
fn encoding_does_not_change_the_hash() {
    for (title, artist, encoding) in [
        ("夜明けの航路", "灯火ノート", SHIFT_JIS),
        ("별빛 정원", "하늘연못", EUC_KR),
        ("南山南的雨夜", "灯火乐队的朋友", GBK),
        ("黎明的航線與星空", "燈火樂團", BIG5),
        ("Déjà vu", "Söng", WINDOWS_1252),
    ] {
        let text = simfile(title, artist);
        let plain = only(ChartFormat::Sm, text.as_bytes());
        let chart = only(ChartFormat::Sm, &encoded(&text, encoding));
        assert_eq!((chart.metadata.title.as_str(), chart.metadata.artist.as_str()), (title, artist));
        assert_eq!((chart.hash, chart.numbers), (plain.hash, plain.numbers));
    }
}

#[test]
fn utf_16_is_decoded_in_both_byte_orders() {
    let utf_16 = |text: &str| -> [Vec<u8>; 2] {
        let units = || std::iter::once(0xfeff).chain(text.encode_utf16());
        [units().flat_map(u16::to_le_bytes).collect(), units().flat_map(u16::to_be_bytes).collect()]
    };
    let text = osu(4, "0,500,4,1,0,100,1,0", "64,192,1000,1,0,").replace("Title:Test", "Title:旋律");
    let plain = only(ChartFormat::Osu, text.as_bytes());
    for bytes in utf_16(&text) {
        let chart = only(ChartFormat::Osu, &bytes);
        assert_eq!((chart.hash, chart.metadata.title.as_str()), (plain.hash, "旋律"));
    }
    // The second game reads bytes.
    for bytes in utf_16(&simfile("旋律", "夜市楽団")) {
        assert!(decode(ChartFormat::Sm, &bytes).is_err());
    }
}

/// In Shift-JIS the second byte of some characters equals a backslash, which in a simfile escapes the next
/// character.
#[test]
fn backslash_as_second_byte_does_not_escape() {
    let text = simfile("夜明けの表", "灯火のソ");
    let chart = only(ChartFormat::Sm, &encoded(&text, SHIFT_JIS));
    assert_eq!((chart.metadata.title.as_str(), chart.metadata.artist.as_str()), ("夜明けの表", "灯火のソ"));
    // On one line the stop is lost, as in the game.
    let one_line = simfile("夜明けの表;#STOPS:0.5=1", "灯火");
    let without = only(ChartFormat::Sm, simfile("a", "b").as_bytes());
    assert_eq!(only(ChartFormat::Sm, &encoded(&one_line, SHIFT_JIS)).hash, without.hash);
}

#[test]
fn wrong_byte_order_mark_is_harmless() {
    let text = simfile("Title", "Artist");
    let chart = only(ChartFormat::Sm, &[b"\xff\xfe", text.as_bytes()].concat());
    assert_eq!(
        (chart.hash, chart.metadata.title.as_str()),
        (only(ChartFormat::Sm, text.as_bytes()).hash, "Title")
    );
}

#[test]
fn invalid_byte_does_not_change_the_encoding() {
    let mut bytes = simfile("夜明けの航路", "灯火").into_bytes();
    let at = bytes.windows(6).position(|window| window == b"Author").expect("the creator");
    bytes[at] = 0xff;
    let chart = only(ChartFormat::Sm, &bytes);
    assert_eq!(
        (chart.metadata.title.as_str(), chart.metadata.creator.as_str()),
        ("夜明けの航路", "\u{fffd}uthor")
    );
}
