//! Words of every script are found in the forms in which people type them, by both engines.

use chart_index_domain::search::{IndexedChartset, SearchIndex, SearchQuery};

use crate::conformance::stored;
use crate::random_catalogue::{Entry, titled};
use crate::support::{Server, fill, slow_engine, titles};

/// A title, the texts that find it, and texts that do not.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

const LATIN: &[Case] = &[
    ("Bjørn", &["bjorn", "BJØRN", "bjo", "bjørn"], &["jorn"]),
    ("Straße", &["strasse", "STRASSE", "straße", "stras", "STRAẞE"], &[]),
    ("Łódź", &["lodz", "łódź", "lo"], &[]),
    ("Þór", &["thor", "þor", "THÓR"], &[]),
    ("Đàð", &["dad", "đàð"], &[]),
    ("Œuvre", &["oeuvre", "œuvre", "ŒUV"], &[]),
    ("Ænima", &["aenima", "ænima"], &[]),
    ("Ħŧ", &["ht"], &[]),
    ("DİYARBAKIR", &["diyarbakir", "diyarbakır", "DİYARBAKIR"], &[]),
    ("Ｃａｆé Ⅳ", &["cafe iv", "cafe\u{301}", "ＣＡＦＥ"], &[]),
    ("o\u{ad}ver", &["over"], &[]),
];

const GREEK: &[Case] = &[
    ("Το φως", &["φωσ", "φως", "ΦΩΣ", "ΦΏΣ", "φω", "το φως"], &["ως"]),
    ("ΣΊΣΥΦΟΣ", &["σίσυφος", "σισυφοσ", "σίσ"], &[]),
];

const CYRILLIC: &[Case] =
    &[("Ёлка Ночь", &["елка", "ЁЛКА", "ноч", "НОЧЬ"], &["очь"]), ("Йод", &["иод", "й"], &[])];

const MARKS: &[Case] = &[
    ("שָׁלוֹם", &["שלום", "שָׁלוֹם", "שלו"], &["לום"]),
    ("مَرْحَبًا", &["مرحبا", "مرح"], &[]),
    ("नमस्ते", &["नमस्ते", "नमस"], &["ते", "नमत"]),
    ("สวัสดี", &["สวัสดี", "สวัส", "สดี"], &["สวสด"]),
];

const KOREAN: &[Case] = &[
    // Inside a word, and with a syllable that is not complete: 하느 and 한 are typed before 하늘.
    (
        "하늘연못",
        &["하늘연못", "연못", "늘", "ㅎ", "하ㄴ", "한", "하느", "하늘여", "하늘연ㅁ", "못", "연못 artist"],
        &["하눌", "늘하", "한 artist", "ㅏ", "ㄹ", "여못"],
    ),
    ("한국어", &["한국", "국어", "한구", "하", "한국어"], &["한어"]),
    ("닭갈비", &["다", "달", "닭", "닭가", "갈비", "갋"], &["담", "닭비"]),
    ("과자", &["고", "과", "괒"], &["거", "궈"]),
    ("ㅋㅋㅋ", &["ㅋ", "ㅋㅋ", "ㅋㅋㅋ", "ﾻ"], &["ㅋㅋㅋㅋ", "카"]),
    ("ﾾￂﾤￓￗ", &["하누", "한", "ﾾ"], &[]),
    ("사랑 Song", &["사랑 song", "사랑 so", "랑 song", "song 사라"], &["사라 song"]),
    ("노래OP2", &["노래 op2", "노래op", "op2", "놀"], &[]),
];

const JAPANESE: &[Case] = &[
    ("ガンダム", &["がんだむ", "ｶﾞﾝﾀﾞﾑ", "ガンダム", "ダム", "だむ"], &["かんたむ", "ｶﾝﾀﾑ"]),
    ("ひまわり", &["ヒマワリ", "ﾋﾏﾜﾘ", "マワ"], &["ビマワリ"]),
    ("ﾊﾟｰﾃｨｰ", &["パーティー", "ぱーてぃー"], &["バーティー"]),
    ("ヷヴ", &["わ\u{3099}ゔ", "ヷ", "ヴ"], &["ワ\u{309a}"]),
    ("宙のメロディOP", &["のめろ", "宙 op", "メロディop"], &["メロ宙"]),
];

const CHINESE: &[Case] = &[
    ("千本桜", &["千本", "本桜", "桜"], &["千桜"]),
    // Forms that were encoded twice, for other character sets.
    ("\u{f9f4}\u{2f00}", &["林", "一", "林一"], &[]),
    ("㈱音楽①", &["株", "音楽1", "楽"], &[]),
];

fn cases() -> impl Iterator<Item = &'static Case> {
    [LATIN, GREEK, CYRILLIC, MARKS, KOREAN, JAPANESE, CHINESE].into_iter().flatten()
}

fn entries() -> Vec<Entry> {
    (1..).zip(cases()).map(|(number, (title, ..))| titled(number, title)).collect()
}

async fn assert_found(engine: &dyn SearchIndex) {
    let mut failures = Vec::new();
    for (title, finds, misses) in cases() {
        let texts = finds.iter().map(|text| (text, true)).chain(misses.iter().map(|text| (text, false)));
        for (text, expected) in texts {
            let query = SearchQuery { text: Some((*text).into()), ..SearchQuery::default() };
            let found = titles(&engine.search(&query).await.unwrap()).iter().any(|found| found == title);
            if found != expected {
                failures.push(format!("{text:?} finds {title:?}: {found}"));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[tokio::test]
async fn postgresql_finds_words_of_every_script() {
    let (_database, postgres) = stored(&entries()).await;
    assert_found(&postgres).await;
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn meilisearch_finds_words_of_every_script() {
    let server = Server::find();
    let indexed: Vec<IndexedChartset> = entries().into_iter().map(|entry| entry.indexed).collect();
    fill(&server.config, &indexed, 1).await;
    assert_found(&slow_engine(&server.config).await).await;
    server.close().await;
}
