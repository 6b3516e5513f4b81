//! What is measured: servers of their own on free ports of the loopback address, pinned to the cores of the
//! servers.

mod catalogue;
mod meilisearch;
mod nginx;
mod service;

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;

use chart_index_tests::PrivateRedis;

pub(crate) use catalogue::Catalogue;
pub(crate) use meilisearch::SearchNode;
pub(crate) use nginx::{CachedFile, files};
pub(crate) use service::{ServiceForm, ServicePrograms, service};

/// What the processes of a target do. Their CPU time is reported separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Role {
    /// Receives the requests: the service or nginx.
    Server,
    /// Counts requests and caches responses.
    Redis,
    /// Has the catalogue.
    Postgres,
}

/// A running target. Dropping the value ends its processes.
pub(crate) struct Target {
    /// The name in reports.
    pub(crate) name: &'static str,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Its processes; their descendants belong to them.
    pub(crate) processes: Vec<(Role, u32)>,
    /// Whether its entity tags are its own, not those of the service.
    pub(crate) has_own_tags: bool,
    /// Its Redis, whose data can be deleted between rounds.
    pub(crate) redis: Option<PrivateRedis>,
    _running: Box<dyn Any>,
}

impl Target {
    fn new(
        name: &'static str,
        address: SocketAddr,
        processes: Vec<(Role, u32)>,
        running: Box<dyn Any>,
    ) -> Self {
        Self { name, address, processes, has_own_tags: false, redis: None, _running: running }
    }

    /// Deletes the windows of clients and the responses in Redis.
    pub(crate) fn empty_redis(&self) {
        if let Some(redis) = &self.redis {
            redis.cli(&["FLUSHALL"]);
        }
    }

    /// The processes with this role.
    pub(crate) fn processes_of(&self, role: Role) -> Vec<u32> {
        self.processes.iter().filter(|(of, _)| *of == role).map(|(_, process)| *process).collect()
    }
}

impl Role {
    /// Every role, in the order of reports.
    pub(crate) const ALL: [Self; 3] = [Self::Server, Self::Redis, Self::Postgres];

    /// The name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Redis => "redis",
            Self::Postgres => "postgres",
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("name", &self.name)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
