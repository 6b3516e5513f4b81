//! What sends the requests: wrk for ceilings.

mod wrk;

pub(crate) use wrk::Wrk;
