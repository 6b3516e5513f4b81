//! Waiting for what Meilisearch does later.

use std::time::Duration;

use meilisearch_sdk::task_info::TaskInfo;
use serde::Deserialize;
use tokio::time::{sleep, timeout};

use crate::SearchError;
use crate::node::Node;
use crate::retry::retried;

/// The first wait between two looks at a task; the next ones grow.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// The longest wait between two looks.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// How a task stands. The SDK's own type refuses tasks of a kind or state that it does not know.
#[derive(Debug, Deserialize)]
struct Task {
    status: String,
    error: Option<TaskError>,
    #[serde(default)]
    details: Option<TaskDetails>,
}

#[derive(Debug, Default, Deserialize)]
struct TaskError {
    message: String,
    code: String,
}

/// What a task says it did.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskDetails {
    pub(crate) indexed_documents: Option<usize>,
    pub(crate) provided_ids: Option<usize>,
}

impl Node {
    /// Waits until the task has succeeded.
    pub(crate) async fn finished(
        &self,
        operation: &'static str,
        task: &TaskInfo,
    ) -> Result<TaskDetails, SearchError> {
        let number = task.task_uid;
        let wait = timeout(self.config.task_timeout, self.ended(operation, number));
        let ended =
            wait.await.map_err(|source| SearchError::Unreachable { operation, source: source.into() })??;
        if ended.status == "succeeded" {
            return Ok(ended.details.unwrap_or_default());
        }
        let TaskError { message, code } = ended.error.unwrap_or_default();
        Err(SearchError::Task { operation, task: number, status: ended.status, code, message })
    }

    async fn ended(&self, operation: &'static str, number: u32) -> Result<Task, SearchError> {
        let mut pause = FIRST_PAUSE;
        loop {
            // The task goes on by itself: that it cannot be looked at for a while says nothing of it.
            let route = format!("tasks/{number}");
            let task: Task = retried(|| self.get(operation, &route)).await?;
            if !matches!(task.status.as_str(), "enqueued" | "processing") {
                return Ok(task);
            }
            sleep(pause).await;
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        }
    }
}
