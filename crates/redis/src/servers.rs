//! What a connection leads to: one server, or a cluster.

use redis::{Cmd, Value};
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::error::Replies;
use crate::server::Server;
use crate::{CommandError, ConnectionState};

pub(crate) enum Servers {
    None,
    Single(Server),
    Cluster(Cluster),
}

impl Servers {
    pub(crate) fn state(&self) -> ConnectionState {
        match self {
            Self::None => ConnectionState::Unavailable,
            Self::Single(server) => server.state(),
            Self::Cluster(cluster) => cluster.state(),
        }
    }

    pub(crate) async fn run(&self, command: &Cmd, deadline: Instant) -> Result<Value, CommandError> {
        match self {
            Self::None => Err(CommandError::Unavailable),
            Self::Single(server) => server.run(command, deadline).await,
            Self::Cluster(cluster) => cluster.run(command, deadline).await,
        }
    }

    /// Sends a command to the server, or to each primary of the cluster.
    pub(crate) async fn run_on_each(&self, command: &Cmd, deadline: Instant) -> Replies {
        match self {
            Self::None => Vec::new(),
            Self::Single(server) => vec![server.run(command, deadline).await],
            Self::Cluster(cluster) => cluster.run_on_each(command, deadline).await,
        }
    }

    pub(crate) async fn run_all(&self, commands: &[Cmd], deadline: Instant) -> Replies {
        match self {
            Self::None => commands.iter().map(|_| Err(CommandError::Unavailable)).collect(),
            Self::Single(server) => server.run_all(commands.iter(), deadline).await,
            Self::Cluster(cluster) => cluster.run_all(commands, deadline).await,
        }
    }
}
