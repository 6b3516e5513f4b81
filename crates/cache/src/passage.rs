//! How a request comes to the outcome of a fill: it carries the fill that it began itself, and hears of every other.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

use crate::FillError;
use crate::flights::{Arrival, Outcome};

/// The way to the outcome of a fill.
pub(crate) struct Passage<E> {
    carried: Option<Carried>,
    arrival: Arrival<E>,
}

/// A fill that is polled by the request that began it.
///
/// In a task of its own it would have to wake that request when it lands, and another thread with it: more work than
/// the rest of many a fill. But it belongs to all that wait: when the request is given up, what remains goes on in a
/// task of its own after all.
struct Carried {
    fill: Option<Fill>,
    runtime: Handle,
}

type Fill = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<E> Passage<E> {
    /// Waits for a fill of somebody else.
    pub(crate) const fn with_another(arrival: Arrival<E>) -> Self {
        Self { carried: None, arrival }
    }

    /// Carries a fill that lands at this arrival. It does not run before it is waited for, or the passage dropped.
    pub(crate) fn carry(arrival: Arrival<E>, fill: impl Future<Output = ()> + Send + 'static) -> Self {
        let carried = Carried { fill: Some(Box::pin(fill)), runtime: Handle::current() };
        Self { carried: Some(carried), arrival }
    }

    /// The outcome, as soon as the fill has landed.
    pub(crate) async fn outcome(&mut self) -> Outcome<E> {
        let Self { carried, arrival } = self;
        let Some(carried) = carried else {
            return match arrival.wait_for(Option::is_some).await {
                Ok(outcome) => outcome.clone().unwrap_or(Err(FillError::Abandoned)),
                Err(_) => Err(FillError::Abandoned),
            };
        };
        poll_fn(|context| {
            let over = carried.poll(context).is_ready();
            let outcome = arrival.borrow().clone();
            match outcome {
                Some(outcome) => Poll::Ready(outcome),
                None if over => Poll::Ready(Err(FillError::Abandoned)),
                None => Poll::Pending,
            }
        })
        .await
    }
}

impl Carried {
    /// A fill that panics is over, and nobody else is taken down with it.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(mut fill) = self.fill.take() else { return Poll::Ready(()) };
        let polled = catch_unwind(AssertUnwindSafe(|| fill.as_mut().poll(context)));
        if matches!(polled, Ok(Poll::Pending)) {
            self.fill = Some(fill);
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        if let Some(fill) = self.fill.take() {
            self.runtime.spawn(fill);
        }
    }
}
