//! The catalogue files of an export: `sqlite3`, Python and `DuckDB` read them, as docs/formats/catalogue.md
//! shows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use chart_index_tests::{ChartSpec, Library, Service, TestDatabase, indexer, workspace_root};
use serde_json::{Value, json};

use super::snippets::succeeded;
use super::{code_blocks, read};

const SQLITE: &str = "catalogue.sqlite";
const PARQUET: &str = "catalogue.parquet";

/// Exports a database, and returns the path of the export.
fn export(database: &TestDatabase, directory: &Path) -> PathBuf {
    let directory = directory.to_str().expect("UTF-8");
    let printed = indexer(database.url(), &["export", directory, "--sqlite", "--parquet"]).succeeded();
    printed.split_once(": ").expect("the path").0.into()
}

/// Runs a shell command of the document in a folder.
pub(crate) fn run_shell(folder: &Path, command: &str) {
    let output = Command::new("sh").args(["-ec", command]).current_dir(folder).output();
    succeeded(command, &output.expect("a shell"));
}

fn sqlite(file: &Path, statements: &str) -> String {
    // What begins with `-` would be an option.
    let output = Command::new("sqlite3").arg("-batch").arg(file).arg(format!(" {statements}")).output();
    succeeded("sqlite3", &output.expect("scripts/servers install sqlite3"))
}

/// Runs `DuckDB` in a folder.
fn duckdb(folder: &Path, statement: &str) -> String {
    let mut command = Command::new(workspace_root().join("scripts/readers"));
    let output = command.arg("duckdb").arg(folder).args(["-list", "-noheader", "-c", statement]).output();
    succeeded(statement, &output.expect("scripts/readers starts"))
}

#[tokio::test]
async fn queries_of_the_document_run() {
    let database = TestDatabase::with_samples().await;
    let exports = tempfile::tempdir().expect("a folder");
    export(&database, exports.path());
    let variables = [("EXPORTS_DIR", exports.path().to_str().expect("UTF-8"))];
    let service = Service::with_variables(database.url(), &variables);
    let client = service.client();
    let manifest = client.get("/api/exports/latest").await.header("location").to_owned();
    let folder = tempfile::tempdir().expect("a folder");
    for file in ["catalogue.sqlite.zst", PARQUET] {
        let path = manifest.replace("manifest.json", file);
        fs::write(folder.path().join(file), client.get(&path).await.body).expect("a file");
    }
    let document = read("docs/formats/catalogue.md");
    run_shell(folder.path(), code_blocks(&document, "sh")[0]);
    let queries = code_blocks(&document, "sql").into_iter().filter(|query| query.starts_with("-- "));
    let (queries, outputs) = (queries.collect::<Vec<_>>(), code_blocks(&document, "text"));
    assert_eq!((queries.len(), outputs.len()), (4, 4));
    for (query, expected) in queries.into_iter().zip(outputs) {
        let file = query.lines().next().and_then(|line| line.strip_prefix("-- ")).expect("the file");
        let output = match file {
            PARQUET => duckdb(folder.path(), query),
            _ => sqlite(&folder.path().join(file), query),
        };
        assert_eq!(output, expected, "{query}");
    }
}

/// The charts of an export as its lines have them, with the fields of the catalogue.
fn expected_charts(export: &Path) -> Vec<Value> {
    let text = fs::read(export.join("chartsets.ndjson.zst")).expect("a file");
    let text = String::from_utf8(zstd::decode_all(&text[..]).expect("zstd")).expect("UTF-8");
    let mut charts = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let id = &line["chartset"]["id"];
        let of_set = line["chartset"]["charts"].as_array().expect("charts").iter().map(|chart| {
            let patterns = &chart["patterns"];
            let hundredths = |value: &Value| value.as_f64().map(|value| (value * 100.0).round());
            json!({
                "id": id, "hash": chart["hash"], "title": chart["title"], "artist": chart["artist"],
                "difficulty": chart["difficulty"], "keys": chart["keys"], "lengthMs": chart["lengthMs"],
                "notes": chart["notes"], "lns": chart["lns"], "bpmMain": chart["bpmMain"].as_f64(),
                "densityPeak": chart["densityPeak"].as_f64(), "roxBytes": chart["roxBytes"],
                "variant": chart["variant"].as_str().map(|variant| &variant[..16]),
                "rating": hundredths(&chart["rating"]["value"]),
                "stream": patterns["rows"]["stream"].as_u64().unwrap_or(0), "lnTime": patterns["lnTime"],
                "p90": hundredths(&patterns["rowsPerSecond"]["p90"]),
                "declaredRef": chart["declaredSource"]["ref"],
            })
        });
        charts.extend(of_set);
    }
    charts.sort_by_key(|chart| (chart["id"].to_string(), chart["hash"].to_string()));
    charts
}

const CHARTS: &str = "
SELECT json_object(
    'id', id, 'hash', lower(hex(hash)), 'title', coalesce(charts.title, chartsets.title),
    'artist', coalesce(charts.artist, chartsets.artist), 'difficulty', difficulty, 'keys', keys,
    'lengthMs', length_ms, 'notes', notes, 'lns', lns, 'bpmMain', bpm_main, 'densityPeak', density_peak,
    'roxBytes', rox_bytes, 'variant', nullif(lower(hex(variant)), ''), 'rating', rating_hundredths * 1.0,
    'stream', stream, 'lnTime', ln_time, 'p90', rows_p90_hundredths * 1.0,
    'declaredRef', CAST(declared_ref AS TEXT)
) FROM charts JOIN chartsets ON number = chartset ORDER BY id, hash";

/// Metadata of the file as JSON Lines.
const SCHEMA_VERSION: &str = "SELECT decode(value) AS version FROM parquet_kv_metadata('catalogue.parquet') WHERE decode(key) = 'schema_version'";

/// The rows of the Parquet file are compared with those of `SQLite` by the tests of readers.
#[tokio::test]
async fn catalogue_has_what_the_chartsets_of_the_export_have() {
    let database = TestDatabase::with_samples().await;
    let removed = database.psql("SELECT encode(chart_hash, 'hex') FROM chartset_charts ORDER BY 1 LIMIT 1");
    indexer(database.url(), &["remove", "chart", &removed]).succeeded();
    let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let [first, second] = [0, 1].map(|index| export(&database, folders[index].path()));
    for file in ["catalogue.sqlite.zst", PARQUET] {
        let [one, other] = [&first, &second].map(|export| fs::read(export.join(file)).expect("a file"));
        assert!(one == other, "{file} depends on the snapshot only");
    }
    run_shell(&first, "zstd -q -d catalogue.sqlite.zst");
    let file = first.join(SQLITE);
    assert_eq!(sqlite(&file, "PRAGMA integrity_check; PRAGMA user_version"), "ok\n2\n");
    let printed = sqlite(&file, CHARTS);
    let charts: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let expected = expected_charts(&first);
    assert!(expected.len() > 20 && expected.iter().any(|chart| chart["declaredRef"].is_string()));
    assert_eq!(charts, expected);

    assert_eq!(duckdb(&first, SCHEMA_VERSION), "2\n");
    let columns = duckdb(&first, "SELECT column_name FROM (DESCRIBE FROM 'catalogue.parquet')");
    assert_eq!(columns.lines().collect::<Vec<_>>(), parquet_columns(&first));
}

/// The columns that the Parquet file of an export has, by its file for SQLite.
fn parquet_columns(export: &Path) -> Vec<String> {
    let columns = sqlite(
        &export.join(SQLITE),
        "SELECT name FROM pragma_table_info('chartsets') WHERE name <> 'number' UNION ALL
         SELECT name FROM pragma_table_info('charts') WHERE name NOT IN ('chartset', 'title', 'artist', 'creator')",
    );
    columns.lines().map(str::to_owned).collect()
}

/// The rows that the Parquet file of an export has, by its file for SQLite.
pub(crate) fn parquet_rows(export: &Path) -> Value {
    let values = parquet_columns(export).into_iter().map(|column| {
        let value = match &*column {
            "title" | "artist" | "creator" => format!("coalesce(charts.{column}, chartsets.{column})"),
            "hash" | "variant" => format!("nullif(lower(hex({column})), '')"),
            column => column.to_owned(),
        };
        format!("'{column}', {value}")
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let rows = sqlite(
        &export.join(SQLITE),
        &format!(
            "SELECT json_group_array(json_object({values}))
             FROM (SELECT * FROM charts ORDER BY chartset, hash) AS charts JOIN chartsets ON number = chartset"
        ),
    );
    serde_json::from_str(&rows).expect("JSON")
}

/// Titles, and queries that find them.
const TITLES: [(&str, &[&str]); 7] = [
    ("Ёлка", &["ёлка", "Елка", "елк"]),
    ("\u{418}\u{306}од \u{3b1}\u{301}", &["йод", "иод ά"]),
    ("Φῶς", &["ΦΩΣ", "φῶς", "φως"]),
    ("Phở Bjørn Straße", &["pho", "bjorn STRASSE", "bjørn straße"]),
    ("ガラス ＣＯＯＬ", &["がらす cool", "カ\u{3099}ラス", "ｶﾞﾗｽ ＣＯ"]),
    ("Re:Zero AC/DC", &["re:zero", "ac/dc", "\"zero ac\" -", "dc re:"]),
    ("NOT hip-hop", &["hip-hop", "not", "hop (hip"]),
];

#[tokio::test]
async fn words_are_found_as_the_document_shows() {
    let library = Library::new();
    for ((title, _), number) in TITLES.into_iter().zip(1..) {
        let chart = ChartSpec { title: title.to_owned(), ..ChartSpec::numbered(number) };
        library.osu(&format!("alpha/{number} set/a.osu"), chart);
    }
    let database = TestDatabase::migrated().await;
    indexer(database.url(), &["ingest", &library.argument()]).succeeded();
    let exports = tempfile::tempdir().expect("a folder");
    let folder = export(&database, exports.path());
    run_shell(&folder, "zstd -q -d catalogue.sqlite.zst");
    let document = read("docs/formats/catalogue.md");
    let [program] = code_blocks(&document, "python")[..] else { panic!("a program") };
    for (title, queries) in TITLES {
        for query in queries {
            let output = Command::new("python3").args(["-c", program, query]).current_dir(&folder).output();
            let printed = succeeded(query, &output.expect("Python"));
            let found: Vec<&str> = printed.lines().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
            assert_eq!(found, [title], "{query}");
        }
    }
    // What is in lower case and has its accents is found without folding.
    for (word, number) in [("ёлка", 1), ("йод", 2), ("φῶς", 3), ("ガラス", 5)] {
        let statement = format!("SELECT count(*) FROM chartset_words WHERE chartset_words MATCH '{word}'");
        assert_eq!(sqlite(&folder.join(SQLITE), &statement), "1\n", "{word} of title {number}");
    }
}
