//! Child processes that end with the test.

use std::process::{Child, Command};

/// A child process. Dropping the value kills it.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts a command.
    pub fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("a child process").is_some()
    }

    /// Sends a signal, such as `STOP`.
    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill").args(["-s", signal, &self.0.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill reaches the process");
    }

    /// Kills it, and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Sends SIGTERM, and waits for its end. Returns the exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        self.signal("TERM");
        self.wait()
    }

    /// Waits for its end, and returns the exit code; `None` if a signal ended it.
    pub fn wait(&mut self) -> Option<i32> {
        self.0.wait().expect("a child process").code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
