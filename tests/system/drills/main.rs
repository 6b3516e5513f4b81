//! Drills: the services of docker-compose.yml on a Docker engine, with replicas and servers that are
//! replaced, killed, frozen, full or partitioned under load. The engine has namespaces of its
//! own, so it changes nothing on the machine.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a drill panics if its set-up fails, and prints what it measured"
)]

mod cdn;
mod full_disk;
mod make_up;
mod meilisearch;
mod objects;
mod redis;
mod redis_cluster;
mod replicas;
mod report;
mod site;
