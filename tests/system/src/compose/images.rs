//! What the images of a compose file contribute: entry points, users and programs. The programs are those of
//! this machine, in Debian's versions.

use std::path::{Path, PathBuf};

use chart_index_tests::{PrivateMeilisearch, program, workspace_root};

/// What an image sets unless a compose file replaces it.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) entrypoint: Vec<String>,
    pub(super) command: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    /// `uid:gid`, after the entry point has dropped root.
    pub(super) user: String,
    pub(super) user_name: &'static str,
    pub(super) working_directory: String,
    pub(super) stop_signal: &'static str,
    /// The command of the health check.
    pub(super) healthcheck: Option<Vec<String>>,
    /// Folders that belong to the user.
    pub(super) folders: Vec<String>,
    /// Files of this machine, and their paths in the container.
    pub(super) files: Vec<(PathBuf, String)>,
}

/// Where programs are looked for: as in the images, and Debian's PostgreSQL.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Image {
    /// The image with this name. Others than those of the system have no entry point.
    pub(super) fn named(name: &str) -> Self {
        let image = match name {
            "chart-index" => chart_index(),
            "postgres" => postgres(),
            "redis" => Self {
                user: "999:999".into(),
                user_name: "redis",
                working_directory: "/data".into(),
                ..Self::empty()
            },
            "haproxy" => Self {
                // `docker-entrypoint.sh haproxy ARGUMENTS` runs `haproxy -W -db ARGUMENTS`.
                entrypoint: words("haproxy -W -db"),
                command: words("-f /usr/local/etc/haproxy/haproxy.cfg"),
                user: "99:99".into(),
                user_name: "haproxy",
                working_directory: "/var/lib/haproxy".into(),
                stop_signal: "USR1",
                ..Self::empty()
            },
            "meilisearch" => Self {
                command: words("/bin/meilisearch"),
                environment: variables(&[("MEILI_HTTP_ADDR", "0.0.0.0:7700")]),
                working_directory: "/meili_data".into(),
                files: PrivateMeilisearch::program()
                    .map(|program| (program, "/bin/meilisearch".to_owned()))
                    .into_iter()
                    .collect(),
                ..Self::empty()
            },
            _ => Self::empty(),
        };
        let path = format!("{PATH}:{}", postgres_programs().display());
        let path = ("PATH".to_owned(), path);
        Self { environment: [vec![path], image.environment].concat(), ..image }
    }

    fn empty() -> Self {
        Self {
            entrypoint: Vec::new(),
            command: Vec::new(),
            environment: Vec::new(),
            user: "0:0".into(),
            user_name: "root",
            working_directory: "/".into(),
            stop_signal: "TERM",
            healthcheck: None,
            folders: Vec::new(),
            files: Vec::new(),
        }
    }

    /// The words of the program: entry point and command, each replaced by that of the compose file if it has
    /// one. A new entry point discards the command of the image.
    pub(super) fn program(
        &self,
        entrypoint: Option<&Vec<String>>,
        command: Option<&Vec<String>>,
    ) -> Vec<String> {
        let default = if entrypoint.is_some() { &Vec::new() } else { &self.command };
        let command = command.unwrap_or(default).clone();
        match entrypoint {
            Some(entrypoint) => [entrypoint.clone(), command].concat(),
            // The entry point of the image `haproxy` is given the name of the program, too.
            None if self.user_name == "haproxy" && command.first().is_some_and(|word| word == "haproxy") => {
                [&self.entrypoint, &command[1..]].concat()
            }
            None => [self.entrypoint.clone(), command].concat(),
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn variables(variables: &[(&str, &str)]) -> Vec<(String, String)> {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn postgres() -> Image {
    let script = workspace_root().join("tests/system/src/compose/postgres.sh");
    Image {
        entrypoint: words("sh /usr/local/bin/docker-entrypoint.sh"),
        command: words("postgres"),
        environment: variables(&[("PGDATA", "/var/lib/postgresql/data")]),
        user: "999:999".into(),
        user_name: "postgres",
        stop_signal: "INT",
        folders: words("/var/run/postgresql"),
        files: vec![(script, "/usr/local/bin/docker-entrypoint.sh".to_owned())],
        ..Image::empty()
    }
}

/// The folder of Debian's newest PostgreSQL programs.
fn postgres_programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.map(|version| version.path()).max().unwrap_or_else(|| PathBuf::from("/usr"));
    newest.join("bin")
}

/// What the Dockerfile of this repository says, with the programs of this build.
fn chart_index() -> Image {
    let mut image = Image {
        files: ["chart-index", "chart-indexer"]
            .map(|name| (program(name), format!("/usr/local/bin/{name}")))
            .to_vec(),
        ..Image::empty()
    };
    let dockerfile = dockerfile(&workspace_root().join("Dockerfile"));
    let last_stage = dockerfile.iter().rposition(|line| line.starts_with("FROM ")).unwrap_or_default();
    for line in &dockerfile[last_stage..] {
        let (instruction, arguments) = line.split_once(' ').unwrap_or((line, ""));
        match instruction {
            "ENV" => image.environment.extend(arguments.split_whitespace().filter_map(|variable| {
                let (name, value) = variable.split_once('=')?;
                Some((name.to_owned(), value.trim_matches('"').to_owned()))
            })),
            "USER" => arguments.clone_into(&mut image.user),
            "WORKDIR" => arguments.clone_into(&mut image.working_directory),
            "ENTRYPOINT" => image.entrypoint = json_words(arguments),
            "HEALTHCHECK" => {
                let command = arguments.split_once("CMD ").expect("a health check has a command").1;
                image.healthcheck = Some(json_words(command));
            }
            "CMD" => image.command = json_words(arguments),
            _ => {}
        }
    }
    image
}

/// The instructions of a Dockerfile, each on one line.
fn dockerfile(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let text = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    text.replace("\\\n", " ").lines().map(|line| line.trim().to_owned()).collect()
}

fn json_words(arguments: &str) -> Vec<String> {
    serde_json::from_str(arguments).unwrap_or_else(|_| panic!("write as a list: {arguments}"))
}
