//! The commands and statements of the runbook, on servers with the users that the repository gives them.

use std::process::Command;

use chart_index_tests::{PrivatePostgres, PrivateRedis, Service, ServiceOptions, indexer, workspace_root};

use super::read;

/// The code in a text, between backticks or in blocks of `sql`, each on one line.
fn code(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, part) in text.split("```").enumerate() {
        if number % 2 == 1 {
            found.extend(part.strip_prefix("sql\n").map(str::to_owned));
        } else {
            found.extend(part.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found.iter().map(|code| code.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Those with this beginning, which are more than this.
fn beginning_with<'a>(code: &'a [String], beginning: &str) -> Vec<&'a str> {
    code.iter().map(String::as_str).filter(|code| code.starts_with(beginning) && *code != beginning).collect()
}

#[test]
fn commands_run_as_the_users_of_operators() {
    let code = code(&read("docs/runbook.md"));
    let secrets = tempfile::tempdir().expect("a temporary folder");
    let script = workspace_root().join("scripts/compose");
    let written =
        Command::new(script).arg("secrets").arg(secrets.path()).status().expect("the script starts");
    assert!(written.success());
    let secret = |name: &str| {
        std::fs::read_to_string(secrets.path().join(name)).expect("a secret").trim_end().to_owned()
    };
    let users = secrets.path().join("redis_users");
    let redis =
        PrivateRedis::start(&["--aclfile", users.to_str().expect("UTF-8"), "--cluster-enabled", "yes"]);
    let redis_url =
        format!("redis://operator:{}@127.0.0.1:{}", secret("redis_operator_password"), redis.port);
    let postgres = PrivatePostgres::start();
    indexer(postgres.url(), &["migrate"]).succeeded();
    let replica = Service::start_with(postgres.url(), &ServiceOptions::default());

    let mut commands = beginning_with(&code, "psql \"$DATABASE_URL\"");
    commands.extend(beginning_with(&code, "redis-cli -u \"$REDIS_URL\""));
    assert!(commands.len() > 6, "{commands:?}");
    let mut commands: Vec<String> = commands.into_iter().map(str::to_owned).collect();
    let of_replica = beginning_with(&code, "curl -sS http://REPLICA/");
    let of_replica: Vec<_> = of_replica.into_iter().filter(|command| !command.ends_with("/PATH")).collect();
    assert!(of_replica.len() > 2, "{of_replica:?}");
    let (address, metric) = (replica.private_address().to_string(), "chart_index_cache_size_bytes");
    let replaced =
        of_replica.iter().map(|command| command.replace("REPLICA", &address).replace("METRIC", metric));
    commands.extend(replaced);
    let statements = beginning_with(&code, "SELECT ");
    assert!(statements.len() > 4, "{statements:?}");
    let statements =
        statements.iter().map(|statement| statement.replace("(PID)", "(-1)").replace("(pid)", "(-1)"));
    commands.extend(statements.map(|statement| format!("psql \"$DATABASE_URL\" -c \"{statement}\"")));
    for command in commands {
        let run = Command::new("sh")
            .args(["-ec", &command])
            .env("DATABASE_URL", postgres.url())
            .env("REDIS_URL", &redis_url)
            .output()
            .expect("a shell");
        let output = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
        let is_denied = ["NOPERM", "NOAUTH", "WRONGPASS", "ERR "].iter().any(|word| output.contains(word));
        assert!(run.status.success() && !is_denied, "{command}\n{output}");
    }
}
