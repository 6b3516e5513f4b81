//! What several tests of a program use.

use std::sync::{Arc, Weak};

use tokio::sync::Mutex;

/// Something expensive that tests only read, such as a service with its database. It ends with the last test
/// that has it; a later one starts it again.
#[derive(Debug)]
pub struct Shared<T>(Mutex<Weak<T>>);

impl<T> Shared<T> {
    /// What no test has yet.
    pub const fn empty() -> Self {
        Self(Mutex::const_new(Weak::new()))
    }

    /// What another test has, or a new one.
    pub async fn get_or_start(&self, start: impl AsyncFnOnce() -> T) -> Arc<T> {
        let mut current = self.0.lock().await;
        if let Some(value) = current.upgrade() {
            return value;
        }
        let value = Arc::new(start().await);
        *current = Arc::downgrade(&value);
        value
    }
}
