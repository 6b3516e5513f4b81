//! The tables of docs/formats that say which public readers give back what an index writes.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use chart_index_tests::{Service, TestDatabase, indexer, workspace_root};
use minisign_verify::{PublicKey, Signature};
use ruzstd::decoding::StreamingDecoder;

use super::catalogues::{parquet_rows, run_shell};
use super::read;
use super::snippets::succeeded;

/// The sections of documents with these tables.
const SECTIONS: [(&str, &str); 2] = [
    ("docs/formats/catalogue.md", "Readers of catalogue files"),
    ("docs/formats/readers.md", "Readers of exports and feeds"),
];

/// Writes the files of an index, and those with which readers compare them, into a folder.
async fn write_files(folder: &Path) {
    let database = TestDatabase::with_samples().await;
    let run = |command: &str| run_shell(folder, command);
    run("minisign -G -W -p export.pub -s export.key >/dev/null");
    let (exports, key) = (folder.join("exports"), folder.join("export.key"));
    let arguments = ["--sqlite", "--parquet", "--sign-key", key.to_str().expect("UTF-8")];
    let arguments = [&["export", exports.to_str().expect("UTF-8")], &arguments[..]].concat();
    let printed = indexer(database.url(), &arguments).succeeded();
    let export = Path::new(printed.split_once(": ").expect("the path").0);
    let name = export.file_name().and_then(|name| name.to_str()).expect("a name");
    run("mv exports/*Z-*/* . && zstd -q -d catalogue.sqlite.zst chartsets.ndjson.zst");
    // As docs/formats/exports.md shows.
    run("minisign -Vm manifest.json -p export.pub >/dev/null");
    let variables = [("PUBLIC_URL", "https://charts.example")];
    let service = Service::with_variables(database.url(), &variables);
    let body = async |path: &str| service.client().get(path).await.body;
    for (file, content) in [
        ("name", name.as_bytes().to_vec()),
        ("charts.json", parquet_rows(folder).to_string().into_bytes()),
        ("feed.atom", body("/feed.atom").await),
        ("openapi.json", body("/docs/openapi.json").await),
    ] {
        fs::write(folder.join(file), content).expect("a file");
    }
}

/// The rows of the tables, without those at their heads.
fn documented_rows() -> BTreeSet<String> {
    let mut rows = BTreeSet::new();
    for (document, heading) in SECTIONS {
        let text = read(document);
        let (_, section) = text.split_once(&format!("\n## {heading}\n")).expect("the section");
        let section = section.split("\n## ").next().unwrap_or_default();
        let of_tables =
            section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Reader "));
        rows.extend(of_tables.map(str::to_owned));
    }
    rows
}

/// The row of a crate, with the version that the tests have.
fn row_of_crate(name: &str, cells: &[bool]) -> String {
    let lock = read("Cargo.lock");
    let version = lock
        .split(&format!("name = \"{name}\"\nversion = \""))
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let cells = cells.iter().map(|is_right| if *is_right { "yes" } else { "no" });
    let cells: Vec<&str> = [name, version.expect("a version")].into_iter().chain(cells).collect();
    format!("| {} |", cells.join(" | "))
}

/// The rows of crates, for the files of a folder.
fn rows_of_crates(folder: &Path) -> Vec<String> {
    let read = |file: &str| fs::read(folder.join(file)).expect("a file");
    let text = |file: &str| String::from_utf8(read(file)).expect("UTF-8");
    let (mut lines, compressed) = (Vec::new(), read("chartsets.ndjson.zst"));
    let mut decoder = StreamingDecoder::new(&compressed[..]).expect("a frame");
    let is_read = decoder.read_to_end(&mut lines).is_ok() && lines == read("chartsets.ndjson");

    let key = PublicKey::from_file(folder.join("export.pub")).expect("a key");
    let signature = Signature::decode(&text("manifest.json.minisig")).expect("a signature");
    let manifest = read("manifest.json");
    let is_verified = key.verify(&manifest, &signature, false).is_ok()
        && signature.trusted_comment() == format!("export {}", text("name"));
    let is_refused = key.verify(&[&manifest[..], b" "].concat(), &signature, false).is_err();
    vec![row_of_crate("ruzstd", &[is_read]), row_of_crate("minisign-verify", &[is_verified, is_refused])]
}

#[tokio::test]
async fn readers_give_back_what_the_tables_say() {
    let folder = tempfile::tempdir().expect("a folder");
    write_files(folder.path()).await;
    let mut command = Command::new(workspace_root().join("scripts/readers"));
    let output = command.arg("read").arg(folder.path()).output().expect("scripts/readers starts");
    let printed = succeeded("scripts/readers", &output);
    let rows = printed.lines().map(str::to_owned).chain(rows_of_crates(folder.path()));
    assert_eq!(rows.collect::<BTreeSet<_>>(), documented_rows());
}
