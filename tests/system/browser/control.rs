//! Lets the test files stop and restart servers: a listener that runs one command for each line.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Weak};

use chart_index_tests::{PrivateMeilisearch, PrivatePostgres};

/// The servers that a test file may stop.
pub(crate) struct Servers {
    pub(crate) database: PrivatePostgres,
    /// `None` without a `meilisearch` on the PATH.
    pub(crate) engine: Option<PrivateMeilisearch>,
}

/// A listener on the loopback address, until the process ends.
pub(crate) struct Control {
    address: SocketAddr,
}

impl Control {
    /// Does not keep the servers: they stop with the test, and this thread does not end before the process.
    pub(crate) fn start(servers: &Arc<Servers>) -> Self {
        let servers = Arc::downgrade(servers);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                serve(&connection, &servers);
            }
        });
        Self { address }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Answers each command with `done` once it has taken effect.
fn serve(connection: &TcpStream, servers: &Weak<Servers>) {
    for line in BufReader::new(connection).lines().map_while(Result::ok) {
        let Some(servers) = servers.upgrade() else { return };
        run(&line, &servers);
        if writeln!(&*connection, "done").is_err() {
            return;
        }
    }
}

fn run(command: &str, servers: &Servers) {
    let engine = || servers.engine.as_ref().expect("an engine");
    match command {
        "kill database" => servers.database.kill(),
        "restart database" => servers.database.restart(),
        "freeze database" => servers.database.freeze(),
        "thaw database" => servers.database.thaw(),
        "kill engine" => engine().kill(),
        "restart engine" => engine().restart(),
        _ => panic!("unknown command {command:?}"),
    }
}
