//! Locks and atomics: those of the standard library, or of shuttle in its tests.

#[cfg(not(all(test, feature = "shuttle")))]
pub(crate) use std::sync::{
    Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, atomic::AtomicU64, atomic::Ordering,
};

#[cfg(all(test, feature = "shuttle"))]
pub(crate) use shuttle::sync::{
    Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, atomic::AtomicU64, atomic::Ordering,
};
