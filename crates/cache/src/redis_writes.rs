//! Queues of writes to Redis after fills.
//!
//! What is queued while a write is in flight is sent together after it. So under load one write carries many
//! responses, which saves this process and Redis a system call and a wake-up for each of them, and without load
//! a response is written at once.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::freshness::Timestamps;
use crate::sync::{Mutex, MutexGuard, PoisonError};
use crate::{CacheKey, CachedResponse};

/// The maximum number of responses that are queued or being written. When Redis or this process falls behind, a
/// dropped write costs another replica a read; a queue without a limit would cost all requests memory and time.
pub(crate) const MAX_QUEUED: usize = 1_024;
/// Up to this number of responses, a batch may queue its own: the rest is for single fills.
pub(crate) const MAX_QUEUED_OF_BATCHES: usize = MAX_QUEUED / 2;
/// The maximum number of responses in a write: Redis runs no other command until it is complete.
const MAX_RESPONSES: usize = 64;
/// The maximum number of bytes in a write of several responses, for the same reason.
const MAX_BYTES: usize = 256 * 1_024;

#[derive(Debug)]
pub(crate) struct QueuedWrite {
    pub(crate) key: CacheKey,
    pub(crate) response: CachedResponse,
    pub(crate) timestamps: Timestamps,
}

/// The writes, of which one at a time is in flight.
#[derive(Debug, Default)]
pub(crate) struct WriteQueue(Mutex<WriteQueueState>);

#[derive(Debug, Default)]
struct WriteQueueState {
    queued: VecDeque<QueuedWrite>,
    in_flight: usize,
    has_writer: bool,
}

/// The outcome of [`WriteQueue::push`].
#[derive(Debug)]
pub(crate) struct Pushed {
    /// The number of responses that were dropped because too many are queued.
    pub(crate) dropped: usize,
    /// What the caller has to run, if nothing writes the queued responses yet.
    pub(crate) writer: Option<Writer>,
}

impl WriteQueue {
    /// Queues responses, up to `max_queued` in total.
    pub(crate) fn push(
        self: &Arc<Self>,
        responses: impl IntoIterator<Item = QueuedWrite>,
        max_queued: usize,
    ) -> Pushed {
        let mut state = self.state();
        let room = max_queued.saturating_sub(state.queued.len() + state.in_flight);
        let mut rest = responses.into_iter();
        state.queued.extend(rest.by_ref().take(room));
        let needs_writer = !state.has_writer && !state.queued.is_empty();
        state.has_writer |= needs_writer;
        drop(state);
        let writer = needs_writer.then(|| Writer { queue: Arc::clone(self), is_done: false });
        Pushed { dropped: rest.count(), writer }
    }

    fn state(&self) -> MutexGuard<'_, WriteQueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes what is queued, until the queue is empty. If it is dropped before, the next [`WriteQueue::push`]
/// starts another one.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: Arc<WriteQueue>,
    is_done: bool,
}

impl Writer {
    /// The responses to write next; `None` if nothing is queued. Responses that it returned before count as
    /// written.
    pub(crate) fn next(&mut self) -> Option<Vec<QueuedWrite>> {
        let mut state = self.queue.state();
        let mut bytes = 0;
        let mut fits = |write: &QueuedWrite| {
            bytes += write.response.body_bytes();
            bytes <= MAX_BYTES
        };
        let fitting = state.queued.iter().take(MAX_RESPONSES).take_while(|write| fits(write)).count();
        let number = fitting.max(1).min(state.queued.len());
        state.in_flight = number;
        if number == 0 {
            state.has_writer = false;
            self.is_done = true;
            return None;
        }
        Some(state.queued.drain(..number).collect())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.is_done {
            let mut state = self.queue.state();
            state.in_flight = 0;
            state.has_writer = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use chart_index_domain::NoteHash;

    use super::*;
    use crate::Clock;
    use crate::version::Version;

    fn write(number: u8, bytes: usize) -> QueuedWrite {
        let timestamps = Timestamps { read_at_ms: Clock::default().now().ms, version: Version::UNKNOWN };
        QueuedWrite {
            key: CacheKey::lookup(NoteHash::from_bytes([number; 32])),
            response: CachedResponse::found(vec![0; bytes], ""),
            timestamps,
        }
    }

    fn push(queue: &Arc<WriteQueue>, responses: impl IntoIterator<Item = QueuedWrite>) -> Pushed {
        queue.push(responses, MAX_QUEUED)
    }

    fn sizes(writer: &mut Writer) -> Vec<usize> {
        std::iter::from_fn(|| writer.next()).map(|writes| writes.len()).collect()
    }

    #[test]
    fn what_is_queued_is_written_together() {
        let queue = Arc::new(WriteQueue::default());
        let mut writer = push(&queue, [write(0, 1)]).writer.unwrap();
        assert_eq!(writer.next().unwrap().len(), 1);
        assert!(push(&queue, (1..101).map(|number| write(number, 1))).writer.is_none());
        assert_eq!(sizes(&mut writer), [64, 36]);
        drop(writer);
        assert!(push(&queue, [write(0, 1)]).writer.is_some());
    }

    #[test]
    fn writes_are_bounded_in_bytes() {
        let queue = Arc::new(WriteQueue::default());
        let sizes_in_bytes = [100_000, 100_000, 100_000, 1_000_000, 1];
        let mut writer = push(&queue, sizes_in_bytes.map(|bytes| write(0, bytes))).writer.unwrap();
        assert_eq!(sizes(&mut writer), [2, 1, 1, 1]);
    }

    #[test]
    fn responses_beyond_the_limit_are_dropped() {
        let queue = Arc::new(WriteQueue::default());
        let many = |number| (0..number).map(|_| write(0, 1));
        let mut writer = push(&queue, many(MAX_QUEUED - 1)).writer.unwrap();
        assert_eq!(writer.next().unwrap().len(), MAX_RESPONSES);
        assert_eq!(push(&queue, many(3)).dropped, 2, "those in flight count");
        writer.next().unwrap();
        assert_eq!(push(&queue, many(MAX_RESPONSES + 1)).dropped, 1);
    }

    #[test]
    fn batches_leave_room_for_single_fills() {
        let queue = Arc::new(WriteQueue::default());
        let batch = || (0..1_000).map(|_| write(0, 1));
        assert_eq!(queue.push(batch(), MAX_QUEUED_OF_BATCHES).dropped, 1_000 - MAX_QUEUED / 2);
        assert_eq!(queue.push(batch(), MAX_QUEUED_OF_BATCHES).dropped, 1_000);
        assert_eq!(push(&queue, [write(0, 1)]).dropped, 0);
    }

    #[test]
    fn another_writer_continues_after_a_dropped_one() {
        let queue = Arc::new(WriteQueue::default());
        let mut writer = push(&queue, (0..70).map(|number| write(number, 1))).writer.unwrap();
        writer.next().unwrap();
        drop(writer);
        let mut writer = push(&queue, [write(70, 1)]).writer.unwrap();
        assert_eq!(sizes(&mut writer), [7]);
    }
}
