//! `chart-hash --lookup`.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Mutex;

use chart_index_tests::http_server::{self, response};
use chart_index_tests::{Service, ServiceOptions};
use serde_json::{Value, json};

use super::*;

fn lines(run: &IndexerRun) -> Vec<Value> {
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A batch has at most 1,000 charts. The lines and their order are those without a lookup.
#[tokio::test]
async fn lines_have_what_the_instance_knows() {
    let database = Database::new().await;
    let library = Library::new();
    let known = library.osu("alpha/1 one/a.osu", ChartSpec::numbered(500)).note_hash();
    database.ingest(&library);
    let mine = Library::new();
    for number in 0..1_001 {
        mine.osu(&format!("alpha/song/{number:04}.osu"), ChartSpec::numbered(number));
    }
    mine.file("alpha/song/0700.qua", "Mode: Keys9\n");
    // A third request would be refused.
    let options = ServiceOptions { variables: &[("RATE_LIMIT_BULK", "2")], ..ServiceOptions::default() };
    let service = Service::start_with(database.0.url(), &options);
    let base = format!("http://{}", service.address());

    let run = IndexerRun::run(&mut hash_command(&[&mine.argument(), "--lookup", &base]));
    assert_eq!((run.code, &*run.stderr), (Some(0), ""));
    let mut found = lines(&run);
    let mut lookups = Vec::new();
    for line in &mut found {
        lookups.extend(line.as_object_mut().unwrap().remove("lookup"));
    }
    assert_eq!(found, lines(&IndexerRun::run(&mut hash_command(&[&mine.argument()]))));
    assert_eq!((found.len(), lookups.len()), (1_002, 1_001));
    assert_eq!(lookups.iter().filter(|lookup| lookup["status"] == "known").count(), 1);
    for (lookup, hash) in [(&lookups[500], known), (&lookups[1_000], ChartSpec::numbered(1_000).note_hash())]
    {
        let single = service.client().get(&format!("/api/charts/{hash}")).await.json();
        assert_eq!((lookup, &single["chartHash"]), (&single, &json!(hash)));
    }

    let mut refused = hash_command(&[&mine.argument(), "--lookup", &base]);
    let mut refused = refused.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let message = BufReader::new(refused.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    refused.kill().unwrap();
    refused.wait().unwrap();
    assert!(
        message.contains("refuses requests with 429") && message.contains(": continues in "),
        "{message}"
    );
}

/// A chart of 64 rows, converted to a rate as converters do.
fn at_rate(percent: i64) -> ChartSpec {
    let note = |number: i64| {
        let column = u8::try_from((number * number + number / 3 + number / 8) % 4).unwrap();
        ((12_500 * number + percent / 2) / percent, column, None)
    };
    ChartSpec { notes: (0..64).map(note).collect(), ..ChartSpec::default() }
}

/// docs/formats/variant.md.
#[tokio::test]
async fn conversions_have_their_original() {
    let (database, library, mine) = (Database::new().await, Library::new(), Library::new());
    let original = library.osu("alpha/1 one/a.osu", at_rate(100)).note_hash();
    database.ingest(&library);
    mine.osu("alpha/song/a.osu", at_rate(110));
    let service = Service::start(database.0.url());
    let base = format!("http://{}", service.address());
    let run = IndexerRun::run(&mut hash_command(&[&mine.argument(), "--lookup", &base]));
    let lookup = &lines(&run)[0]["lookup"];
    assert_eq!((&lookup["status"], &lookup["variants"][0]["hash"]), (&json!("unknown"), &json!(original)));
}

/// Four charts, of which the client sends one alone after two timeouts.
#[test]
fn known_lines_are_printed_although_a_later_batch_fails() {
    let library = Library::new();
    let hashes: Vec<String> = (1..=4)
        .map(|number| library.osu(&format!("alpha/{number}.osu"), ChartSpec::numbered(number)).note_hash())
        .collect();
    let known = json!({"chartHash": hashes[0], "status": "known", "sources": [], "ttlMs": 300_000});
    let timeout = response("408 Request Timeout", r#"{"detail": "too slow"}"#);
    let known = response("200 OK", json!({ "items": [known] }).to_string());
    let responses = Mutex::new(vec![timeout.clone(), timeout.clone(), known, timeout].into_iter());
    let base = http_server::serve(move |_| responses.lock().unwrap().next().unwrap());
    let run = IndexerRun::run(&mut hash_command(&[&library.argument(), "--lookup", &base]));
    assert!(run.code == Some(1) && run.stderr.contains("408 Request Timeout: too slow"), "{}", run.stderr);
    let printed = lines(&run);
    assert_eq!(printed.iter().map(|line| line["hash"].as_str().unwrap()).collect::<Vec<_>>(), hashes);
    let known: Vec<bool> = printed.iter().map(|line| line.get("lookup").is_some()).collect();
    assert_eq!(known, [true, false, false, false]);
}

#[test]
fn unreachable_instances_and_other_addresses_are_errors() {
    let library = Library::new();
    library.osu("alpha/a.osu", ChartSpec::numbered(1));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for (base, code, expected) in [
        (&*closed, 1, format!("cannot look up at {closed}/api/charts/lookup: ")),
        ("charts.example", 2, "relative URL without a base".to_owned()),
        ("ftp://charts.example", 2, "must begin with http:// or https://".to_owned()),
        ("https://charts.example/?q=1", 2, "must have no query".to_owned()),
    ] {
        let run = IndexerRun::run(&mut hash_command(&[&library.argument(), "--lookup", base]));
        assert_eq!(run.code, Some(code), "{base}: {}", run.stderr);
        assert!(run.stderr.contains(&expected), "{base}: {}", run.stderr);
    }
}
