//! The CPU time of each class of requests, with the limiter in Redis.

use anyhow::{Context, Result};
use chart_index_tests::Client;
use fastrand::Rng;
use serde::Serialize;

use crate::Effort;
use crate::catalogue::{Catalogue, Database};
use crate::lists::{ListRow, QUERIES};
use crate::replica::{Cost, Replica, ReplicaOptions, median};
use crate::requests::{Distribution, client, get, get_as, unknown_hash};

/// Different requests of a run, repeated if it is longer. Each comes from a random client.
const REQUESTS: usize = 100_000;
/// Charts that are requested by classes whose responses are cached.
const HOT_CHARTS: usize = 1_000;

/// The CPU time of a class of requests.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ClassRow {
    pub(crate) class: &'static str,
    /// Per request in microseconds.
    pub(crate) cost: Cost,
    /// Over 16 connections of wrk; `None` for lists that are not cached, which were requested one after the other.
    pub(crate) per_second: Option<f64>,
}

/// A class of requests to a replica.
struct Class {
    name: &'static str,
    requests: Vec<String>,
    refused: bool,
}

/// Measures all classes, by turns.
pub(crate) async fn measure(
    catalogue: &Catalogue,
    database: &Database,
    lists: &[ListRow],
    effort: Effort,
) -> Result<Vec<ClassRow>> {
    let cached = ReplicaOptions { redis: true, meilisearch: true, ..ReplicaOptions::default() };
    let cached = Replica::start(catalogue, database, cached);
    let uncached = ReplicaOptions { redis: true, uncached: true, ..ReplicaOptions::default() };
    let uncached = Replica::start(catalogue, database, uncached);
    let mut random = Rng::with_seed(4);
    let miss =
        Class::new("lookup, miss", Distribution::Uniform.lookups(&database.hashes, REQUESTS, &mut random));
    let mut classes = vec![(&uncached, miss)];
    classes.extend(
        cached_classes(&cached, database, &mut random).await?.into_iter().map(|class| (&cached, class)),
    );

    for (replica, class) in classes[1..].iter().filter(|(_, class)| class.refused || !effort.short) {
        replica.wrk(16, effort.seconds).run(&class.requests)?;
    }
    let mut rounds = vec![Vec::new(); classes.len()];
    for _ in 0..effort.rounds {
        for ((replica, class), rounds) in classes.iter().zip(&mut rounds) {
            rounds.push(class.run(replica, effort)?);
        }
    }
    let mut rows: Vec<_> = classes
        .iter()
        .zip(&rounds)
        .map(|((_, class), rounds)| ClassRow::median(class.name, rounds))
        .collect();
    rows.extend(lists.iter().filter(|row| row.total_cached).map(ClassRow::list_miss));
    Ok(rows)
}

/// Classes whose responses are in the memory of the replica.
async fn cached_classes(replica: &Replica<'_>, database: &Database, random: &mut Rng) -> Result<Vec<Class>> {
    let hot = &database.hashes[..HOT_CHARTS.min(database.hashes.len())];
    let unknown: Vec<_> = (0..HOT_CHARTS).map(|_| unknown_hash(random)).collect();
    let tagged = tagged_lookups(&replica.service.client(), &hot[..100.min(hot.len())]).await?;
    let rox = |bytes| {
        database.with_rox_bytes(bytes).into_iter().map(|hash| format!("/api/charts/{hash}/rox")).collect()
    };
    let rox: [Vec<String>; 2] = [rox(6_000), rox(60_000)];
    let refused = get_as(&format!("/api/charts/{}", hot[0]), "", client(u32::MAX));
    let mut many = |paths: &[String], headers: &str| -> Vec<String> {
        paths.iter().cycle().take(REQUESTS).map(|path| get(path, headers, random)).collect()
    };
    let lists: Vec<_> = QUERIES.iter().map(|query| format!("/api/chartsets?{query}")).collect();
    let mut classes = vec![
        Class::new("ROX, 6 KB", many(&rox[0], "")),
        Class::new("ROX, 60 KB", many(&rox[1], "")),
        Class::new("list, hit", many(&lists, "")),
        Class::new("list, hit, gzip", many(&lists, "Accept-Encoding: gzip\r\n")),
        Class { name: "refused", requests: vec![refused], refused: true },
    ];
    let mut lookups = |hashes: &[String]| Distribution::Uniform.lookups(hashes, REQUESTS, random);
    classes.push(Class::new("lookup, hit", lookups(hot)));
    classes.push(Class::new("lookup, unknown", lookups(&unknown)));
    let conditional = tagged.iter().cycle().take(REQUESTS);
    classes.push(Class::new("lookup, 304", conditional.map(|(path, tag)| get(path, tag, random)).collect()));
    Ok(classes)
}

/// The path of each lookup, and a header with the tag of its response.
async fn tagged_lookups(client: &Client, hashes: &[String]) -> Result<Vec<(String, String)>> {
    let mut tagged = Vec::new();
    for hash in hashes {
        let path = format!("/api/charts/{hash}");
        let response = client.get(&path).await;
        let tag = response.headers.get("etag").context("a lookup has no ETag")?.to_str()?.to_owned();
        tagged.push((path, format!("If-None-Match: {tag}\r\n")));
    }
    Ok(tagged)
}

impl Class {
    fn new(name: &'static str, requests: Vec<String>) -> Self {
        Self { name, requests, refused: false }
    }

    /// The CPU time per request, and requests per second.
    fn run(&self, replica: &Replica<'_>, effort: Effort) -> Result<(Cost, f64)> {
        if self.name == "lookup, miss" {
            flush(replica);
        }
        let (run, cost) = replica.load(replica.wrk(16, effort.seconds), &self.requests)?;
        let run = if self.refused { run.refused() } else { run.successful() };
        Ok((cost, run.context(self.name)?.per_second))
    }
}

/// Removes all responses from the Redis of a replica.
fn flush(replica: &Replica<'_>) {
    if let Some(redis) = &replica.redis {
        redis.cli(&["FLUSHALL"]);
    }
}

impl ClassRow {
    fn median(class: &'static str, rounds: &[(Cost, f64)]) -> Self {
        let costs: Vec<_> = rounds.iter().map(|(cost, _)| *cost).collect();
        Self {
            class,
            cost: Cost::median(&costs),
            per_second: Some(median(rounds.iter().map(|(_, rate)| *rate))),
        }
    }

    fn list_miss(row: &ListRow) -> Self {
        let class =
            if row.engine == "postgres" { "list, miss, PostgreSQL" } else { "list, miss, Meilisearch" };
        Self { class, cost: row.cost, per_second: None }
    }
}
