//! Files in a container of Azure Blob Storage.

use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use chart_index_system_tests::Process;
use chart_index_tests::{
    ChartSpec, IndexerRun, Library, Service, TestDatabase, fixed_address, indexer, indexer_command, within,
    workspace_root,
};

use super::rox;

/// Maximum time until the server responds, including its installation.
const START_TIMEOUT: Duration = Duration::from_mins(5);

/// The server of `scripts/azure`. Killed when dropped.
struct Azurite {
    address: SocketAddr,
    _process: Process,
}

impl Azurite {
    async fn start() -> Self {
        let address = fixed_address();
        let process = Process::start(
            Command::new(workspace_root().join("scripts/azure"))
                .args(["serve", &address.port().to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::null()),
        );
        let server = Self { address, _process: process };
        within(START_TIMEOUT, async || TcpStream::connect(address).ok()).await;
        server
    }

    fn variables(&self) -> [(&'static str, String); 3] {
        [
            ("OBJECT_STORE_URL", "az://charts/files".to_owned()),
            ("AZURE_STORAGE_USE_EMULATOR", "true".to_owned()),
            ("AZURITE_BLOB_STORAGE_URL", format!("http://{}", self.address)),
        ]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn container_holds_the_files() {
    let (database, azurite, library) = (TestDatabase::create().await, Azurite::start().await, Library::new());
    let charts = [1, 2].map(|number| {
        let path = format!("alpha/{number} set/a.osu");
        library.osu(&path, ChartSpec::numbered(number)).note_hash()
    });
    let run = |arguments: &[&str]| {
        let mut command = indexer_command(database.url(), arguments);
        IndexerRun::run(command.envs(azurite.variables())).succeeded()
    };
    indexer(database.url(), &["migrate"]).succeeded();
    // Retries until there is a container.
    run(&["ingest", &library.argument()]);
    let in_postgresql = || database.psql("SELECT count(*) FROM rox_files WHERE bytes IS NOT NULL");
    assert_eq!(in_postgresql(), "0");
    assert!(run(&["verify"]).contains(", 0 findings"));
    let variables = azurite.variables();
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, &**value)).collect();
    let service = Service::with_variables(database.url(), &variables);
    assert_eq!(service.client().get(&rox(&charts[0])).await.status, 200);
    run(&["remove", "chart", &charts[1], "--erase"]);
    run(&["objects", "migrate", "--to-postgres"]);
    assert_eq!(in_postgresql(), "1");
    let collected = run(&["objects", "gc", "--grace", "0s"]);
    assert!(collected.starts_with("1 object with ") && collected.contains(", 1 with "), "{collected}");
    assert!(run(&["verify"]).contains(", 0 findings"));
}
