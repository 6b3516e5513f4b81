//! Locks and atomics.

pub(crate) use std::sync::{
    Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, atomic::AtomicU64, atomic::Ordering,
};
