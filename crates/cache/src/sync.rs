//! Locks, atomics and tasks: those of the standard library and Tokio, or of shuttle in its tests.

#[cfg(not(all(test, feature = "shuttle")))]
pub(crate) use std::sync::{
    Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, atomic::AtomicU64, atomic::Ordering,
};

#[cfg(not(all(test, feature = "shuttle")))]
pub(crate) use tokio::spawn;

#[cfg(all(test, feature = "shuttle"))]
pub(crate) use shuttle::future::spawn;
#[cfg(all(test, feature = "shuttle"))]
pub(crate) use shuttle::sync::{
    Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, atomic::AtomicU64, atomic::Ordering,
};
