//! A connection to one server.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Pipeline, Value};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::connection_state::{CurrentConnection, SharedConnection};
use crate::error::Replies;
use crate::supervisor::{self, Target};
use crate::{CommandError, ConnectionState};

/// A multiplexed connection to one server, behind a circuit breaker of its own. A background task connects,
/// probes and reconnects until the value is dropped.
pub(crate) struct Server {
    shared: Arc<SharedConnection>,
    _supervisor: AbortOnDropHandle<()>,
}

impl Server {
    /// Starts to connect in the background, on the current runtime.
    pub(crate) fn start(target: Target, request_timeout: Duration) -> Self {
        let shared = Arc::new(SharedConnection {
            request_timeout,
            state: watch::Sender::new(CurrentConnection::Connecting),
        });
        let supervisor = tokio::spawn(supervisor::run(Arc::clone(&shared), target));
        Self { shared, _supervisor: AbortOnDropHandle::new(supervisor) }
    }

    pub(crate) fn state(&self) -> ConnectionState {
        self.shared.state.borrow().public()
    }

    /// Sends a command and waits for its reply.
    pub(crate) async fn run(&self, command: &Cmd, deadline: Instant) -> Result<Value, CommandError> {
        let connected = self.shared.wait_for_connection(deadline).await?;
        let mut connection = connected.connection.clone();
        let reply = timeout_at(deadline, connection.send_packed_command(command)).await;
        self.shared.record(&connected, reply.map(|reply| reply.and_then(Value::extract_error)))
    }

    /// Sends commands in one pipeline: one reply for each.
    pub(crate) async fn run_all<'a>(
        &self,
        commands: impl ExactSizeIterator<Item = &'a Cmd>,
        deadline: Instant,
    ) -> Replies {
        let number = commands.len();
        let all = |error: CommandError| (0..number).map(|_| Err(error.clone())).collect();
        let connected = match self.shared.wait_for_connection(deadline).await {
            Ok(connected) => connected,
            Err(error) => return all(error),
        };
        let mut pipeline = Pipeline::with_capacity(number);
        for command in commands {
            pipeline.add_command(command.clone());
        }
        let mut connection = connected.connection.clone();
        let replies = timeout_at(deadline, connection.send_packed_commands(&pipeline, 0, number)).await;
        match self.shared.record(&connected, replies) {
            Ok(replies) => {
                let check = |reply: Value| self.shared.check(&connected, reply.extract_error());
                replies.into_iter().map(check).collect()
            }
            Err(error) => all(error),
        }
    }
}
