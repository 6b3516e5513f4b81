//! The examples of docs/snippets run and do what they show. `tests/system/clients` runs those that use
//! packages.

use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use chart_index_tests::http_server::{response, serve};
use chart_index_tests::{Service, workspace_root};
use serde_json::{Value, json};

use super::{code_blocks, read, serve_samples};

/// What a client prints.
const EXPECTED: &str = "21642f9846d39260 Harbour Lights\n7a1825cc4bacc079 Harbour Lights\nknown 900101\n";

const CLIENT: &str = "client.sh";
const NOTE_HASHES: [&str; 2] = ["note_hash.sh", "note_hash.py"];

/// The command that runs an example.
fn command(name: &str) -> Command {
    let is_shell = name.split_once('.').is_some_and(|(_, extension)| extension == "sh");
    let mut command = Command::new(if is_shell { "sh" } else { "python3" });
    command.arg(workspace_root().join("docs/snippets").join(name));
    command
}

pub(crate) fn succeeded(name: &str, output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}: {stderr}", output.status);
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Runs the client, and returns what it reports on standard error.
async fn run_client(base: String) -> String {
    let run = move || {
        let output = command(CLIENT).arg(base).output().expect("sh");
        assert_eq!(succeeded(CLIENT, &output), EXPECTED);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    tokio::task::spawn_blocking(run).await.expect("it ends")
}

/// A server in front of a service. It responds to the first request with the 429 of the service, whose time to
/// wait is replaced by a second, and forwards all others.
fn refuse_once(service: &Service) -> (String, Arc<AtomicU32>) {
    let (service, requests) = (service.address(), Arc::new(AtomicU32::new(0)));
    let counted = Arc::clone(&requests);
    let base = serve(move |request| {
        if counted.fetch_add(1, Ordering::Relaxed) > 0 {
            return request.forward(service);
        }
        let head = "429 Too Many Requests\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\n\
                    Cache-Control: no-store";
        let body =
            r#"{"type":"/problems/rate-limited","title":"Too many requests","status":429,"detail":"retry"}"#;
        response(head, body)
    });
    (base, requests)
}

#[tokio::test]
async fn client_pages_caches_and_waits_after_a_429() {
    let (_database, service) = serve_samples(&[]).await;
    let (base, requests) = refuse_once(&service);
    let start = Instant::now();
    let report = run_client(base).await;
    assert!(report.contains("not modified"), "it sends the tag: {report}");
    assert_eq!(requests.load(Ordering::Relaxed), 6, "one more than it needs");
    assert!(start.elapsed() >= Duration::from_secs(1), "it waits");
}

/// The golden vectors, and one that is longer than a chunk of BLAKE3, whose tree has an odd number of chunks.
fn vectors() -> (Value, String) {
    let golden: Value =
        serde_json::from_str(&read("crates/chartfile/golden/note_hash_v1.json")).expect("JSON");
    let mut vectors = golden["vectors"].as_array().expect("vectors").clone();
    let notes: Vec<Value> =
        (0..1_700_u64).map(|index| json!({"startUs": index * 125_000, "column": index % 4})).collect();
    let mut canonical = vec![4_u8];
    for index in 0..1_700_u32 {
        canonical.extend((index * 125).to_le_bytes());
        canonical.extend([(index % 4) as u8, 0]);
    }
    let hash = blake3::hash(&canonical).to_hex().to_string();
    vectors.push(json!({"name": "long", "keys": 4, "notes": notes, "hash": hash}));
    let line = |vector: &Value| {
        format!("{} {}\n", vector["hash"].as_str().expect("a hash"), vector["name"].as_str().expect("a name"))
    };
    let expected = vectors.iter().map(line).collect();
    (json!({"vectors": vectors}), expected)
}

#[test]
fn note_hashes_are_those_of_the_vectors() {
    let folder = tempfile::tempdir().expect("a folder");
    let (vectors, expected) = vectors();
    let file = folder.path().join("vectors.json");
    std::fs::write(&file, vectors.to_string()).expect("a file");
    for name in NOTE_HASHES {
        let output = command(name).arg(&file).output().expect("the interpreter is installed");
        assert_eq!(succeeded(name, &output), expected, "{name}");
    }
}

#[test]
fn variants_are_those_of_the_vectors() {
    let golden = "crates/chartfile/golden/variant_v1.json";
    let document: Value = serde_json::from_str(&read(golden)).expect("JSON");
    let line = |vector: &Value| {
        let variant = vector["variant"].as_str().unwrap_or("none");
        format!("{variant} {}\n", vector["name"].as_str().expect("a name"))
    };
    let expected: String = document["vectors"].as_array().expect("vectors").iter().map(line).collect();
    let name = "note_hash.py";
    let output = command(name).arg(workspace_root().join(golden)).output().expect("Python is installed");
    assert_eq!(succeeded(name, &output), expected, "{name}");
}

#[tokio::test]
async fn quick_start_runs() {
    let (_database, service) = serve_samples(&[]).await;
    let reference = read("docs/api.md");
    let script = code_blocks(reference.split_once("## Quick start").expect("the section").1, "sh")[0];
    assert_eq!(script.lines().count(), 3);
    let folder = tempfile::tempdir().expect("a folder");
    let mut shell = Command::new("sh");
    shell
        .args(["-euc", &script.replace("curl ", "curl --fail --silent --show-error ")])
        .current_dir(folder.path());
    let output = shell.env("BASE", format!("http://{}", service.address())).output().expect("sh");
    let printed = succeeded("quick start", &output);
    assert!(printed.contains("\"total\":2") && printed.contains("\"charts\":["), "{printed}");
    let files: Vec<_> = std::fs::read_dir(folder.path()).expect("the folder").flatten().collect();
    assert!(files.len() == 1 && files[0].file_name().to_string_lossy().ends_with(".rox"), "{files:?}");
}
