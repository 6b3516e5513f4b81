//! Schemathesis sends requests that the OpenAPI document describes, and others, and checks the responses
//! against it.

use std::process::Command;

use chart_index_tests::{Service, workspace_root};

use super::{limits, serve_samples};

/// Runs all checks of Schemathesis, with a number of examples for each operation.
async fn fuzz(service: &Service, examples: u32, seed: u32) {
    let base = format!("http://{}", service.address());
    let (examples, seed) = (examples.to_string(), seed.to_string());
    let run = move || {
        let arguments = ["fuzz", &base, "--max-examples", &examples, "--seed", &seed];
        Command::new(workspace_root().join("scripts/openapi"))
            .args(arguments)
            .output()
            .expect("scripts/openapi starts")
    };
    let output = tokio::task::spawn_blocking(run).await.expect("no panic");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let count = |word: &str| -> Option<u32> {
        text.split(word).next()?.rsplit([' ', ',', '\n']).next()?.parse().ok()
    };
    let (generated, passed) = (count(" generated"), count(" generated, ").and(count(" passed\n\nSeed")));
    assert!(generated.is_some_and(|generated| generated > 100) && generated == passed, "{text}");
}

#[tokio::test]
async fn schemathesis_finds_nothing() {
    let (_database, service) = serve_samples(&[]).await;
    fuzz(&service, 20, 1).await;
}

#[tokio::test]
async fn schemathesis_finds_nothing_within_limits() {
    let (_database, service) = serve_samples(&limits("20")).await;
    fuzz(&service, 10, 2).await;
}

#[tokio::test]
#[ignore = "long: minutes"]
async fn long_schemathesis_finds_nothing() {
    let (_database, service) = serve_samples(&[]).await;
    for seed in 10..12 {
        fuzz(&service, 500, seed).await;
    }
    let (_limited_database, limited) = serve_samples(&limits("240")).await;
    fuzz(&limited, 500, 20).await;
}
