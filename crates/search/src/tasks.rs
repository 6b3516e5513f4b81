//! Waits for the tasks that Meilisearch runs asynchronously.

use std::time::Duration;

use meilisearch_sdk::task_info::TaskInfo;
use serde::Deserialize;
use tokio::time::{sleep, timeout};

use crate::SearchError;
use crate::node::Node;
use crate::retry::retry;

/// The first pause between two reads of the status of a task; later pauses are longer.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// How long to wait for a task.
const TASK_TIMEOUT: Duration = Duration::from_hours(1);
/// The longest pause between two reads.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Fails unless a task processed as many documents as were sent.
pub(crate) fn check_count(
    operation: &'static str,
    sent: usize,
    done: Option<usize>,
) -> Result<(), SearchError> {
    match done {
        Some(done) if done == sent => Ok(()),
        done => Err(SearchError::CountMismatch { operation, sent, done: done.unwrap_or(0) }),
    }
}

/// The status of a task. The SDK's own type rejects kinds and statuses that it does not know.
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

/// The number of documents that a task processed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskDetails {
    pub(crate) indexed_documents: Option<usize>,
    pub(crate) provided_ids: Option<usize>,
}

impl Node {
    /// Waits until the task has succeeded.
    ///
    /// # Errors
    /// When the task failed or was canceled, or did not end within an hour.
    pub(crate) async fn wait_for_task(
        &self,
        operation: &'static str,
        task: &TaskInfo,
    ) -> Result<TaskDetails, SearchError> {
        let number = task.task_uid;
        let wait = timeout(TASK_TIMEOUT, self.wait_until_finished(operation, number));
        let task =
            wait.await.map_err(|source| SearchError::Unreachable { operation, source: source.into() })??;
        if task.status == "succeeded" {
            return Ok(task.details.unwrap_or_default());
        }
        let TaskError { message, code } = task.error.unwrap_or_default();
        Err(SearchError::TaskFailed { operation, task: number, status: task.status, code, message })
    }

    async fn wait_until_finished(&self, operation: &'static str, number: u32) -> Result<Task, SearchError> {
        let mut pause = FIRST_PAUSE;
        loop {
            // A failed read says nothing about the task, which runs in any case.
            let route = format!("tasks/{number}");
            let task: Task = retry(|| self.get(operation, &route)).await?;
            if !matches!(task.status.as_str(), "enqueued" | "processing") {
                return Ok(task);
            }
            sleep(pause).await;
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        }
    }
}
