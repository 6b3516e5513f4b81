//! The indexer is killed at random moments; the next run makes good.
#![expect(clippy::print_stdout, reason = "a failure can be repeated with what is printed")]

use std::time::Duration;

use crate::support::Catalogue;

/// Rounds for each seed. Each ends a command at a random moment of its run.
const ROUNDS: u64 = 16;
/// The longest that a command is left alone.
const LONGEST_MS: u64 = 1_500;

/// Random numbers that are the same for the same seed (`SplitMix64`).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

fn seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = std::env::var("KILL_SEED").map_or(now.as_secs(), |seed| seed.parse().unwrap());
    println!("KILL_SEED={seed}");
    seed
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn whatever_is_killed_the_next_run_ends_equal() {
    let catalogue = Catalogue::with_nodes(1).await;
    let mut random = Random(seed());
    let library = catalogue.library.argument();
    let commands = [&["ingest", &library][..], &["sync"], &["rebuild"]];
    catalogue.write_sets(150, "");
    catalogue.ingest();
    for round in 0..ROUNDS {
        for _ in 0..40 {
            let number = u32::try_from(random.below(200)).unwrap();
            catalogue.write_set(number, &format!("round{round}"));
        }
        let command = commands[usize::try_from(random.below(3)).unwrap()];
        let mut running = catalogue.start(command);
        // Half of the commands end early: most of what they do, they do then.
        let longest = if random.below(2) == 0 { LONGEST_MS / 10 } else { LONGEST_MS };
        let alone = Duration::from_millis(random.below(longest));
        println!("round {round}: {} is killed after {alone:?}", command[0]);
        tokio::time::sleep(alone).await;
        if !running.has_ended() {
            running.kill();
        }
        if random.below(4) == 0 {
            end_equal(&catalogue);
        }
    }
    end_equal(&catalogue);
}

fn end_equal(catalogue: &Catalogue) {
    catalogue.ingest();
    catalogue.run(&["sync"]);
    catalogue.assert_equal();
    assert!(catalogue.run(&["verify"]).contains(", 0 findings"));
}

#[tokio::test]
#[ignore = "needs a Meilisearch server: make test"]
async fn a_node_that_restarts_keeps_a_whole_index() {
    let catalogue = Catalogue::synced(150).await;
    let mut random = Random(seed());
    for round in 0..4 {
        catalogue.write_sets(150, &format!("round{round}"));
        catalogue.ingest();
        let mut running = catalogue.start(if random.below(2) == 0 { &["sync"] } else { &["rebuild"] });
        let alone = Duration::from_millis(random.below(LONGEST_MS));
        println!("round {round}: the node is killed after {alone:?}");
        tokio::time::sleep(alone).await;
        catalogue.nodes[0].kill();
        catalogue.nodes[0].restart();
        // What waits for a task goes on; what is not repeated ends the command.
        let _ = running.wait();
        catalogue.run(&["sync"]);
        catalogue.assert_equal();
    }
}
