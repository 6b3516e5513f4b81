//! Callers under random schedules of their threads:
//! `cargo test -p chart-index-cache --features shuttle --lib shuttle_tests`.

#![expect(clippy::unwrap_used, reason = "a function of a test fails the test")]

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use shuttle::future::block_on;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

use super::*;

const SCHEDULES: usize = 5_000;

/// Runs callers of a queue at the same time. Afterwards nobody is in it, and every permit is free.
fn check(permits: usize, max_queued: usize, callers: &'static [fn(&Arc<PermitQueue>)]) {
    // For timeouts, which do not expire.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _entered = runtime.enter();
    let (max_wait, max_burst) = (Duration::from_mins(1), Duration::from_mins(1));
    let test = move || {
        let queue = Arc::new(PermitQueue::new(QueueLimits { permits, max_queued, max_wait, max_burst }));
        let threads = callers.iter().map(|caller| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || caller(&queue))
        });
        for thread in threads.collect::<Vec<_>>() {
            thread.join().unwrap();
        }
        assert_eq!(queue.in_flight(), 0);
        let state = queue.state();
        assert_eq!((state.queued, state.last_empty_at), (0, None));
    };
    shuttle::check_random(test, SCHEDULES);
}

/// Waits for a permit, and holds it for a moment.
fn acquire(queue: &Arc<PermitQueue>) {
    let permit = block_on(queue.acquire()).unwrap();
    thread::yield_now();
    drop(permit);
}

/// Gives up if it would have to wait.
fn give_up(queue: &Arc<PermitQueue>) {
    let mut caller = pin!(queue.acquire());
    if let Poll::Ready(Some(permit)) = caller.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        thread::yield_now();
        drop(permit);
    }
}

#[test]
fn no_more_callers_have_a_permit_than_there_are() {
    static HOLDERS: AtomicUsize = AtomicUsize::new(0);
    fn hold(queue: &Arc<PermitQueue>) {
        let permit = block_on(queue.acquire()).unwrap();
        assert!(HOLDERS.fetch_add(1, Ordering::SeqCst) < 2);
        thread::yield_now();
        HOLDERS.fetch_sub(1, Ordering::SeqCst);
        drop(permit);
    }
    check(2, 2, &[hold, hold, hold, hold]);
}

#[test]
fn callers_that_give_up_take_no_permit_from_others() {
    check(1, 3, &[acquire, give_up, give_up, acquire]);
}
