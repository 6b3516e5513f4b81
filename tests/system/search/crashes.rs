//! The indexer or a node is killed at a random moment; the next run repairs the index.
#![expect(clippy::print_stdout, reason = "the printed seed reproduces a failure")]

use std::time::Duration;

use chart_index_tests::Random;

use crate::support::Catalogue;

/// The number of commands that are killed per seed.
const ROUNDS: u64 = 6;
/// A command is killed after at most this time.
const MAX_DELAY_MS: u32 = 1_500;

fn seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = std::env::var("KILL_SEED").map_or(now.as_secs(), |seed| seed.parse().unwrap());
    println!("KILL_SEED={seed}");
    seed
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn killed_command_is_repaired_by_the_next_run() {
    let catalogue = Catalogue::with_nodes(1).await;
    let mut random = Random::new(seed());
    let library = catalogue.library.argument();
    let commands = [&["ingest", &library][..], &["sync"], &["rebuild"]];
    catalogue.write_sets(150, "");
    catalogue.ingest();
    for round in 0..ROUNDS {
        for _ in 0..40 {
            catalogue.write_set(random.below(200), &format!("round{round}"));
        }
        let command = *random.pick(&commands);
        let mut running = catalogue.start(command);
        // Half of the commands are killed early, when they do most of their work.
        let max_delay_ms = if random.one_in(2) { MAX_DELAY_MS / 10 } else { MAX_DELAY_MS };
        let delay = Duration::from_millis(random.below(max_delay_ms).into());
        println!("round {round}: {} is killed after {delay:?}", command[0]);
        tokio::time::sleep(delay).await;
        if !running.has_ended() {
            running.kill();
        }
        if random.one_in(4) {
            assert_repaired(&catalogue);
        }
    }
    assert_repaired(&catalogue);
}

fn assert_repaired(catalogue: &Catalogue) {
    catalogue.ingest();
    catalogue.run(&["sync"]);
    catalogue.assert_equal();
    assert!(catalogue.run(&["verify"]).contains(", 0 findings"));
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn killed_node_restarts_with_a_complete_index() {
    let catalogue = Catalogue::synced(150).await;
    let mut random = Random::new(seed());
    for round in 0..4 {
        catalogue.write_sets(150, &format!("round{round}"));
        catalogue.ingest();
        let mut running = catalogue.start(if random.one_in(2) { &["sync"] } else { &["rebuild"] });
        let delay = Duration::from_millis(random.below(MAX_DELAY_MS).into());
        println!("round {round}: the node is killed after {delay:?}");
        tokio::time::sleep(delay).await;
        catalogue.nodes[0].kill();
        catalogue.nodes[0].restart();
        // The command retries, or fails where a request is not idempotent.
        let _ = running.wait();
        catalogue.run(&["sync"]);
        catalogue.assert_equal();
    }
}
