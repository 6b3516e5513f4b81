//! `chart-hash --lookup`.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chart_index_tests::{Service, ServiceOptions};
use serde_json::{Value, json};

use super::fake_http::response;
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

/// The request lines and bodies that a server has received.
type Received = Arc<Mutex<Vec<(String, Value)>>>;

/// Gives these responses one after the other.
fn respond(responses: Vec<Vec<u8>>) -> (String, Received) {
    let (received, responses) = (Received::default(), Mutex::new(responses.into_iter()));
    let base = fake_http::serve({
        let received = Arc::clone(&received);
        move |request| {
            let body = serde_json::from_slice(&request.body).unwrap();
            received.lock().unwrap().push((request.head[0].clone(), body));
            responses.lock().unwrap().next().unwrap()
        }
    });
    (base, received)
}

#[test]
fn refused_batch_is_repeated_after_the_pause() {
    let library = Library::new();
    let hash = library.osu("alpha/a.osu", ChartSpec::numbered(1)).note_hash();
    let items = json!({"items": [{"chartHash": hash, "status": "unknown", "ttlMs": 300_000}]}).to_string();
    let (base, received) = respond(vec![
        response("429 Too Many Requests\r\nretry-after: 1", "{}"),
        response("503 Service Unavailable\r\nretry-after: 1", "{}"),
        response("200 OK", &items),
    ]);
    let started = Instant::now();
    let run = IndexerRun::run(&mut hash_command(&[
        &library.argument(),
        "--lookup",
        &format!("{base}/charts-of-mine/"),
    ]));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(started.elapsed() >= Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!(run.stderr.matches("continues in 1 s").count(), 2, "{}", run.stderr);
    assert_eq!(lines(&run)[0]["lookup"], json!({"chartHash": hash, "status": "unknown", "ttlMs": 300_000}));
    let request = ("POST /charts-of-mine/api/charts/lookup HTTP/1.1".to_owned(), json!({ "hashes": [hash] }));
    assert_eq!(*received.lock().unwrap(), vec![request; 3]);
}

/// A batch that is received too slowly is halved, and what is known is printed although a later one fails.
#[test]
fn slow_batch_is_halved_and_what_is_known_is_printed() {
    let library = Library::new();
    let hashes: Vec<String> = (1..=4)
        .map(|number| library.osu(&format!("alpha/{number}.osu"), ChartSpec::numbered(number)).note_hash())
        .collect();
    let item = |hash: &String| json!({"chartHash": hash, "status": "known", "sources": [], "ttlMs": 300_000});
    let items = json!({"items": hashes[..1].iter().map(item).collect::<Vec<_>>()}).to_string();
    let timeout = response("408 Request Timeout", r#"{"detail": "too slow"}"#);
    let (base, received) =
        respond(vec![timeout.clone(), timeout.clone(), response("200 OK", &items), timeout]);
    let run = IndexerRun::run(&mut hash_command(&[&library.argument(), "--lookup", &base]));
    assert!(run.code == Some(1) && run.stderr.contains("408 Request Timeout: too slow"), "{}", run.stderr);
    let printed = lines(&run);
    assert_eq!(printed.iter().map(|line| line["hash"].as_str().unwrap()).collect::<Vec<_>>(), hashes);
    let known: Vec<bool> = printed.iter().map(|line| line.get("lookup").is_some()).collect();
    assert_eq!(known, [true, false, false, false]);
    let received = received.lock().unwrap();
    let sent = received.iter().map(|(_, body)| body["hashes"].as_array().unwrap().len());
    assert_eq!(sent.collect::<Vec<_>>(), [4, 2, 1, 1]);
}

#[test]
fn responses_of_no_index_are_errors() {
    let library = Library::new();
    let hash = library.osu("alpha/a.osu", ChartSpec::numbered(1)).note_hash();
    let other = json!({"items": [{"chartHash": "0".repeat(64), "status": "unknown"}]}).to_string();
    let no_status = json!({"items": [{"chartHash": hash}]}).to_string();
    for (response, expected) in [
        (response("200 OK", "<!doctype html>"), "is not that of a chart index"),
        (response("200 OK", r#"{"items": []}"#), "0 items for 1 charts"),
        (response("200 OK", &other), "no item for"),
        (response("200 OK", &no_status), "no item for"),
        (response("404 Not Found", r#"{"detail": "no such endpoint"}"#), "404 Not Found: no such endpoint"),
        (
            response("301 Moved Permanently\r\nlocation: https://charts.example/", ""),
            "redirected to https://charts.example/",
        ),
        (response("500 Internal Server Error", "<h1>500</h1>"), "500 Internal Server Error"),
        (response("429 Too Many Requests\r\nretry-after: 86400", ""), "for 86400 s; try again later"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{".to_vec(), "cannot look up at"),
    ] {
        let (base, _) = respond(vec![response]);
        let run = IndexerRun::run(&mut hash_command(&[&library.argument(), "--lookup", &base]));
        let printed: Vec<Value> = lines(&run).iter().map(|line| line["hash"].clone()).collect();
        assert_eq!((run.code, printed), (Some(1), vec![json!(hash)]), "{expected}: {}", run.stderr);
        assert!(!run.stdout.contains("lookup"), "{}", run.stdout);
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
    }
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
