//! The commands and statements of the runbook, on servers with the users and keys that the repository gives
//! them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use chart_index_system_tests::{code_blocks, inline_code, on_one_line, read};
use chart_index_tests::{
    ChartSpec, IndexerRun, Library, PrivateMeilisearch, PrivatePostgres, PrivateRedis, RunningIndexer,
    Service, fixed_address, indexer, indexer_command, within, workspace_root,
};

/// What commands of the runbook begin with, and statements.
const COMMANDS: &[&str] = &[
    "SELECT ",
    "SHOW ",
    "chart-indexer ",
    "curl ",
    "haproxy ",
    "kill ",
    "ls ",
    "promtool ",
    "psql ",
    "redis-cli ",
    "ss ",
];

/// Those that are not run here, with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("SHOW pools", "of PgBouncer"),
    ("chart-indexer COMMAND", "stands for the others"),
    ("chart-indexer follow", "runs beside the others"),
    ("chart-indexer ingest", "of the library"),
    ("chart-indexer mirror", "is named for its log"),
    ("curl -sS -i", "of the URL of the alert"),
    ("curl -sS -o /dev/null -w '%{http_code}\\n'", "of a URL of the site"),
    ("curl -sS http://REPLICA/PATH", "stands for the others"),
    ("curl … \"$MEILISEARCH_URL/PATH\"", "stands for the others"),
    ("kill -HUP", "of the process of Prometheus"),
    ("psql \"$DATABASE_URL\"", "stands for the others"),
    ("redis-cli -u \"$REDIS_URL\"", "stands for the others"),
];

/// The commands and statements of the runbook that are run, each once.
fn commands() -> Vec<String> {
    let page = read("docs/runbook.md");
    let statements = code_blocks(&page, "sql").into_iter().map(on_one_line);
    let mut commands: Vec<String> = inline_code(&page).into_iter().chain(statements).collect();
    commands.retain(|code| COMMANDS.iter().any(|beginning| code.starts_with(beginning)));
    for (command, _) in NOT_RUN {
        assert!(commands.iter().any(|other| other == command), "not in the runbook: {command}");
    }
    commands.retain(|code| !NOT_RUN.iter().any(|(command, _)| code == command));
    commands.sort_unstable();
    commands.dedup();
    assert!(commands.len() > 25, "{commands:?}");
    commands
}

/// Whether a command needs Meilisearch.
fn is_of_search(command: &str) -> bool {
    command.starts_with("chart-indexer ") || command.contains("$MEILISEARCH_URL")
}

/// The secrets that `scripts/compose` writes.
struct Secrets(tempfile::TempDir);

impl Secrets {
    fn write() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let script = workspace_root().join("scripts/compose");
        let written = Command::new(script).arg("secrets").arg(folder.path()).status();
        assert!(written.expect("the script starts").success());
        Self(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    fn get(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).expect("a secret").trim_end().to_owned()
    }
}

/// Runs a command in a folder; returns its output. It has to succeed.
fn run(command: &str, folder: &Path, variables: &[(&str, &str)]) -> String {
    // HAProxy is on the PATH of root only.
    let run = Command::new("sh")
        .args(["-ec", &format!("PATH=$PATH:/usr/sbin; {command}")])
        .current_dir(folder)
        .envs(variables.iter().copied())
        .output()
        .expect("a shell");
    let output = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
    assert!(run.status.success(), "{command}\n{output}");
    output
}

#[test]
fn commands_run_as_the_users_of_operators() {
    let secrets = Secrets::write();
    let users = secrets.file("redis_users");
    let redis = PrivateRedis::start(&["--aclfile", &users, "--cluster-enabled", "yes"]);
    let redis_url =
        format!("redis://operator:{}@127.0.0.1:{}", secrets.get("redis_operator_password"), redis.port);
    let postgres = PrivatePostgres::start();
    indexer(postgres.url(), &["migrate"]).succeeded();
    let replica = Service::start(postgres.url());
    let (private, public) = (replica.private_address().to_string(), replica.address().to_string());
    let process = std::process::id().to_string();
    let variables = [
        ("DATABASE_URL", postgres.url()),
        ("REDIS_URL", &redis_url),
        ("FRONT_PROXIES", ""),
        ("PROXY_PROTOCOL_FROM", ""),
    ];
    for command in commands().into_iter().filter(|command| !is_of_search(command)) {
        let is_statement = command.starts_with("SELECT ");
        let statement = command.replace("(PID)", "(-1)").replace("(pid)", "(-1)");
        let command =
            if is_statement { format!("psql \"$DATABASE_URL\" -c \"{statement}\"") } else { command };
        let command = command
            .replace("https://PUBLIC", &format!("http://{public}"))
            .replace("REPLICA", &private)
            .replace("METRIC", "chart_index_cache_size_bytes")
            .replace("PID", &process);
        let folder = if command.starts_with("haproxy") { "compose/haproxy" } else { "monitoring" };
        let output = run(&command, &workspace_root().join(folder), &variables);
        let is_denied = ["NOPERM", "NOAUTH", "WRONGPASS", "ERR "].iter().any(|word| output.contains(word));
        assert!(!is_denied, "{command}\n{output}");
    }
}

/// As in the container of `follow`, whose settings they have, `METRICS_LISTEN` among them.
#[tokio::test]
#[ignore = "needs a Meilisearch server: make test-system"]
async fn commands_run_beside_follow_and_reach_meilisearch() {
    let secrets = Secrets::write();
    let node = PrivateMeilisearch::start_with(&[
        "--max-indexing-memory",
        "256MiB",
        "--config-file-path",
        &secrets.file("meilisearch_config"),
    ]);
    let (url, root) = (node.url(), workspace_root());
    let master_key = secrets.file("meilisearch_master_key");
    let variables = [("MEILISEARCH_URL", url.as_str()), ("MASTER_KEY_FILE", &master_key)];
    run("sh compose/meilisearch-keys/create.sh", &root, &variables);
    let postgres = PrivatePostgres::start();
    let library = Library::new();
    library.osu("alpha/1 set/a.osu", ChartSpec::numbered(1));
    indexer(postgres.url(), &["migrate"]).succeeded();
    indexer(postgres.url(), &["ingest", &library.argument()]).succeeded();
    let (address, index_key) = (fixed_address().to_string(), secrets.file("meilisearch_index_key"));
    let chart_indexer = |arguments: &[&str]| {
        let mut command = indexer_command(postgres.url(), arguments);
        command.env("MEILISEARCH_URL", &url).env("MEILISEARCH_API_KEY_FILE", &index_key);
        command.env("METRICS_LISTEN", &address);
        command
    };
    let follow = RunningIndexer::start_at(&mut chart_indexer(&["follow"]), &address);
    let is_ready = async || (follow.client().get("/readyz").await.status == 200).then_some(());
    within(Duration::from_mins(1), is_ready).await;

    // What `rebuild` sets again.
    let off = r#"curl -sS --fail -X PATCH -H "Authorization: Bearer $(cat "$MASTER_KEY_FILE")" \
        -H 'Content-Type: application/json' -d '{"containsFilter": false}' "$MEILISEARCH_URL/experimental-features""#;
    run(off, &root, &variables);
    let verified = IndexerRun::run(&mut chart_indexer(&["verify", "--search"]));
    assert!(verified.code == Some(1) && verified.stdout.contains("containsFilter"), "{verified:?}");

    let commands: Vec<_> = commands().into_iter().filter(|command| is_of_search(command)).collect();
    assert!(commands.len() > 5, "{commands:?}");
    for command in commands {
        if let Some(arguments) = command.strip_prefix("chart-indexer ") {
            IndexerRun::run(&mut chart_indexer(&arguments.split(' ').collect::<Vec<_>>())).succeeded();
            continue;
        }
        // Replicas search, and `follow` indexes.
        let key =
            if command.contains("/documents") { "meilisearch_search_key" } else { "meilisearch_index_key" };
        let variables = [("MEILISEARCH_URL", url.as_str()), ("MEILISEARCH_API_KEY", &secrets.get(key))];
        let output = run(&command, &root, &variables);
        assert!(output.starts_with('{') && !output.contains("\"code\""), "{command}\n{output}");
    }
}
