//! Finds the primaries of a Redis Cluster, instead of the cluster client of the crate, which does not find the
//! replica of a primary that hangs, and lets it delay the commands for all others (decision 0067).

use std::error::Error;
use std::ops::RangeInclusive;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, select_ok};
use redis::{Cmd, ErrorKind, RedisResult, ServerErrorKind, Value};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::error::Replies;
use crate::server::Server;
use crate::slots::{ALL_SLOTS, assigned_slots, slot_of};
use crate::{CommandError, ConnectionState, RedisConfig, RedisEndpoint, RedisUrl};

/// How often a node is asked which primary serves which slots: after a failover, replicas use the new primary
/// after this time at most.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// The same where a node has replied that it does not serve a slot (any more).
const MIN_REFRESH_INTERVAL: Duration = Duration::from_millis(50);

/// The primaries, which fail and recover independently. A single server is one that has all slots.
pub(crate) struct Servers {
    shared: Arc<SharedServers>,
    /// Keeps the primaries of a cluster up to date.
    refresh: Option<AbortOnDropHandle<()>>,
}

struct SharedServers {
    config: RedisConfig,
    /// Some of the nodes of a cluster.
    seeds: Vec<RedisUrl>,
    /// `None` until the end of the first attempt to find the primaries.
    primaries: watch::Sender<Option<Vec<Primary>>>,
    /// Wakes the background task when a slot has moved.
    moved: Notify,
}

/// A server and a range of slots that it serves. In the order of the slots.
#[derive(Clone)]
struct Primary {
    slots: RangeInclusive<u16>,
    host: String,
    port: u16,
    server: Arc<Server>,
}

impl Servers {
    /// Starts to connect, and in a cluster to look for the primaries, in the background on the current runtime.
    pub(crate) fn start(config: &RedisConfig) -> RedisResult<Self> {
        let (primaries, seeds) = match &config.endpoint {
            RedisEndpoint::None => (Some(Vec::new()), Vec::new()),
            RedisEndpoint::Single(url) => (Some(vec![Primary::single(config, url)?]), Vec::new()),
            RedisEndpoint::Cluster(seeds) => (None, seeds.clone()),
        };
        let is_cluster = primaries.is_none();
        let (primaries, moved) = (watch::Sender::new(primaries), Notify::new());
        let shared = Arc::new(SharedServers { config: config.clone(), seeds, primaries, moved });
        let refresh = is_cluster.then(|| AbortOnDropHandle::new(tokio::spawn(Arc::clone(&shared).refresh())));
        Ok(Self { shared, refresh })
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        self.refresh.is_some()
    }

    pub(crate) fn state(&self) -> ConnectionState {
        use ConnectionState::{Connected, Connecting, Unavailable};
        let primaries = self.shared.primaries.borrow();
        let Some(primaries) = primaries.as_ref() else { return Connecting };
        let all = |state| primaries.iter().all(|primary| primary.server.state() == state);
        if all(Unavailable) {
            return Unavailable;
        }
        if all(Connected) { Connected } else { Connecting }
    }

    /// Sends a command to the primary of its key, and waits for its reply.
    pub(crate) async fn run(&self, command: &Cmd, deadline: Instant) -> Result<Value, CommandError> {
        let primary = self.primary_of(command, deadline).await.ok_or(CommandError::Unavailable)?;
        self.shared.check(primary.run(command, deadline).await)
    }

    /// Sends a command without a key to each primary that is known.
    pub(crate) async fn run_on_each(&self, command: &Cmd, deadline: Instant) -> Replies {
        let primaries = self.shared.primaries.borrow().clone().unwrap_or_default();
        join_all(primaries.iter().map(|primary| primary.server.run(command, deadline))).await
    }

    /// Sends commands to the primaries of their keys, in a pipeline to each.
    pub(crate) async fn run_all(&self, commands: &[Cmd], deadline: Instant) -> Replies {
        let mut pipelines: Vec<(Arc<Server>, Vec<usize>)> = Vec::new();
        for (index, command) in commands.iter().enumerate() {
            let Some(server) = self.primary_of(command, deadline).await else { continue };
            match pipelines.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &server)) {
                Some((_, indexes)) => indexes.push(index),
                None => pipelines.push((server, vec![index])),
            }
        }
        let sent = pipelines
            .iter()
            .map(|(server, indexes)| server.run_all(indexes.iter().map(|index| &commands[*index]), deadline));
        let received = join_all(sent).await;
        let mut replies: Replies = commands.iter().map(|_| Err(CommandError::Unavailable)).collect();
        for ((_, indexes), received) in pipelines.iter().zip(received) {
            for (index, reply) in indexes.iter().zip(received) {
                replies[*index] = self.shared.check(reply);
            }
        }
        replies
    }

    /// The server with the key of a command. Waits for the first attempt to find the primaries.
    async fn primary_of(&self, command: &Cmd, deadline: Instant) -> Option<Arc<Server>> {
        if self.shared.primaries.borrow().is_none() {
            let mut primaries = self.shared.primaries.subscribe();
            // Boxed, so that the future of a command that need not wait is no larger.
            let _ = Box::pin(timeout_at(deadline, primaries.wait_for(Option::is_some))).await;
        }
        let slot = if self.is_cluster() { slot_of(command) } else { 0 };
        let primaries = self.shared.primaries.borrow();
        let primaries = primaries.as_ref()?;
        let after = primaries.partition_point(|primary| *primary.slots.end() < slot);
        let primary = primaries.get(after).filter(|primary| primary.slots.contains(&slot));
        primary.map(|primary| Arc::clone(&primary.server))
    }
}

impl Primary {
    fn single(config: &RedisConfig, url: &RedisUrl) -> RedisResult<Self> {
        let server = Arc::new(Server::start(config.target(url)?, config.request_timeout));
        Ok(Self { slots: ALL_SLOTS, host: url.host().to_owned(), port: 0, server })
    }
}

impl SharedServers {
    /// Has the primaries looked up again if another node serves the slot now.
    fn check(&self, reply: Result<Value, CommandError>) -> Result<Value, CommandError> {
        if reply.as_ref().is_err_and(CommandError::is_moved) {
            self.moved.notify_one();
        }
        reply
    }

    /// Keeps the primaries up to date until the task is aborted.
    async fn refresh(self: Arc<Self>) {
        let mut unavailable = false;
        for attempt in 0.. {
            match self.look_up(attempt).await {
                Ok(()) => {
                    if std::mem::take(&mut unavailable) {
                        tracing::info!("redis is available again");
                    }
                }
                Err(error) => {
                    if !std::mem::replace(&mut unavailable, true) {
                        tracing::warn!(error = &error as &dyn Error, "redis is unavailable");
                    }
                }
            }
            sleep(MIN_REFRESH_INTERVAL).await;
            let _ = timeout(REFRESH_INTERVAL, self.moved.notified()).await;
        }
    }

    /// Looks the primaries up. If that fails, the known ones are kept: each of them reconnects by itself.
    async fn look_up(&self, attempt: usize) -> RedisResult<()> {
        let mut found = pin!(self.find(attempt));
        let in_time = timeout(self.config.request_timeout, &mut found).await;
        if !matches!(in_time, Ok(Ok(_))) {
            // Requests do not wait for the first attempt any longer.
            self.primaries.send_modify(|primaries| _ = primaries.get_or_insert_default());
        }
        let primaries = match in_time {
            Ok(found) => found?,
            Err(_) => found.await?,
        };
        self.primaries.send_replace(Some(primaries));
        Ok(())
    }

    /// Asks a connected primary, another one each time, or else all seeds.
    async fn find(&self, attempt: usize) -> RedisResult<Vec<Primary>> {
        let known = self.primaries.borrow().clone().unwrap_or_default();
        let connected = known.iter().filter(|primary| primary.server.state() == ConnectionState::Connected);
        let connected: Vec<_> = connected.collect();
        for index in 0..connected.len() {
            let primary = connected[(attempt + index) % connected.len()];
            let deadline = Instant::now() + self.config.request_timeout;
            if let Ok(reply) = primary.server.run(&cluster_slots(), deadline).await {
                return self.primaries(&reply, &primary.host, &known);
            }
        }
        let asked = self.seeds.iter().map(|seed| Box::pin(self.ask(seed)));
        let ((reply, host), _) = select_ok(asked).await?;
        self.primaries(&reply, host, &known)
    }

    async fn ask<'a>(&self, seed: &'a RedisUrl) -> RedisResult<(Value, &'a str)> {
        let mut connection = self.config.target(seed)?.open().await?;
        let command = cluster_slots();
        let reply = timeout(self.config.connect_timeout, connection.send_packed_command(&command)).await;
        Ok((reply.map_err(std::io::Error::from)??.extract_error()?, seed.host()))
    }

    /// The primaries in a reply. Servers that are known stay connected.
    fn primaries(&self, reply: &Value, replied: &str, known: &[Primary]) -> RedisResult<Vec<Primary>> {
        let mut primaries: Vec<Primary> = Vec::new();
        for assigned in assigned_slots(reply, replied) {
            let (slots, host, port) = (assigned.slots, assigned.host, assigned.port);
            let mut all = known.iter().chain(&primaries);
            let found = all.find(|primary| primary.host == host && primary.port == port);
            let server = if let Some(primary) = found {
                Arc::clone(&primary.server)
            } else {
                let Some(url) = self.seeds[0].with_address(&host, port) else { continue };
                Arc::new(Server::start(self.config.target(&url)?, self.config.request_timeout))
            };
            primaries.push(Primary { slots, host, port, server });
        }
        if primaries.is_empty() {
            let error = ErrorKind::Server(ServerErrorKind::ClusterDown);
            return Err((error, "no primary serves a slot").into());
        }
        primaries.sort_unstable_by_key(|primary| *primary.slots.start());
        Ok(primaries)
    }
}

fn cluster_slots() -> Cmd {
    redis::cmd("CLUSTER").arg("SLOTS").take()
}
