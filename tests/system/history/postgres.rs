//! PostgreSQL with a streaming standby, an archive of its WAL and a base backup.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{Process, clock, in_namespace};
use crate::system::AHEAD;

/// Maximum time of a start, a promotion or a restore.
const TIMEOUT: Duration = Duration::from_secs(30);

const CONFIGURATION: &str = "
listen_addresses = '*'
unix_socket_directories = ''
max_connections = 120
shared_buffers = 64MB
fsync = off
full_page_writes = on
wal_level = replica
wal_keep_size = 256MB
hot_standby = on
archive_mode = on
recovery_target_timeline = latest
wal_receiver_timeout = 5s
log_line_prefix = '%m [%p] %h '
";

/// Two servers, one of which is the primary.
#[derive(Debug)]
pub(crate) struct PostgresPair {
    servers: [Process; 2],
    namespaces: [String; 2],
    addresses: [String; 2],
    primary: usize,
    folder: PathBuf,
}

impl PostgresPair {
    /// Creates the database `chart_index` and its standby.
    pub(crate) fn create(
        names: [&'static str; 2],
        namespaces: [String; 2],
        addresses: [String; 2],
        folder: &Path,
    ) -> Self {
        let servers = [0, 1].map(|index| {
            let command = server(&folder.join(names[index]).join("data"), Some(AHEAD));
            Process::new(names[index], namespaces[index].clone(), folder, command)
        });
        let folder = folder.join("postgres");
        run(&["install", "-d", "-o", "postgres", "-g", "postgres", &path(&folder)].map(str::to_owned));
        let mut this = Self { servers, namespaces, addresses, primary: 0, folder };
        for server in &this.servers {
            run(&["chown", "postgres:", &path(server.folder())].map(str::to_owned));
        }
        let archive = path(&this.archive());
        run(&["install", "-d", "-o", "postgres", "-g", "postgres", &archive].map(str::to_owned));
        let data = path(&this.data(0));
        let options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"];
        let program = path(&bin_folder().join("initdb"));
        let initdb = [&program, "-D", &data].into_iter().chain(options);
        run(&as_postgres(&initdb.map(str::to_owned).collect::<Vec<_>>()));
        let archiving = format!(
            "archive_command = 'test -f {archive}/%f || (cp %p {archive}/partial && mv {archive}/partial {archive}/%f)'\n"
        );
        append(&this.data(0).join("postgresql.conf"), &(CONFIGURATION.to_owned() + &archiving));
        append(
            &this.data(0).join("pg_hba.conf"),
            "host all all 0.0.0.0/0 trust\nhost replication all 0.0.0.0/0 trust\n",
        );
        this.start(0);
        this.psql("postgres", "CREATE DATABASE chart_index TEMPLATE template0");
        this.back_up();
        this
    }

    /// The index of the primary.
    pub(crate) fn primary(&self) -> usize {
        self.primary
    }

    /// The statement's output.
    pub(crate) fn psql(&self, database: &str, statement: &str) -> String {
        self.try_psql(database, statement).unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    pub(crate) fn try_psql(&self, database: &str, statement: &str) -> Result<String, String> {
        query(&self.url(database), statement)
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://postgres@{}/{database}", self.addresses[self.primary])
    }

    /// One of the servers.
    pub(crate) fn server(&mut self, index: usize) -> &mut Process {
        &mut self.servers[index]
    }

    /// Starts a server unless it is running, and waits until the primary accepts writes.
    pub(crate) fn start(&mut self, index: usize) {
        if !self.servers[index].is_running() {
            // A server that was killed leaves it behind, and the process id may be that of another process.
            let _ = std::fs::remove_file(self.data(index).join("postmaster.pid"));
            self.servers[index].start();
        }
        if index == self.primary {
            self.wait_until_writable();
        }
    }

    /// Promotes the standby, with what it has received, after the primary was killed.
    pub(crate) fn promote(&mut self) {
        self.primary = 1 - self.primary;
        self.psql("postgres", "SELECT pg_promote(true, 60)");
        self.wait_until_writable();
    }

    /// Names the current state, for [`restore`](Self::restore).
    pub(crate) fn create_restore_point(&self, name: &str) -> Result<(), String> {
        self.try_psql("postgres", &format!("SELECT pg_create_restore_point('{name}')")).map(drop)
    }

    /// Stops the primary and restores it from the last base backup and the archive, up to a restore point.
    pub(crate) fn restore(&mut self, point: &str) {
        let last = self.psql("postgres", "SELECT pg_walfile_name(pg_switch_wal())");
        let start = Instant::now();
        while !self.archive().join(&last).exists() {
            assert!(start.elapsed() < TIMEOUT, "{last} is not archived: {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
        self.servers[self.primary].kill();
        let data = self.data(self.primary);
        self.copy_backup(self.primary);
        let archive = path(&self.archive());
        // Without reads before the restore point (docs/operations/recovery.md).
        append(
            &data.join("postgresql.auto.conf"),
            &format!(
                "restore_command = 'cp {archive}/%f %p'\nrecovery_target_name = '{point}'\n\
                 recovery_target_action = promote\nhot_standby = off\n"
            ),
        );
        touch_as_postgres(&data.join("recovery.signal"));
        self.start(self.primary);
        for setting in ["recovery_target_name", "recovery_target_action", "restore_command", "hot_standby"] {
            self.psql("postgres", &format!("ALTER SYSTEM RESET {setting}"));
        }
    }

    /// Dumps a database of the primary into a file.
    pub(crate) fn dump(&self, database: &str) -> Result<PathBuf, String> {
        let file = self.folder.join("dump");
        let url = self.url(database);
        let options = ["--format=custom", "--compress=0", "--dbname", &url, "--file", &path(&file)];
        let output = Command::new("pg_dump").args(options).output().expect("pg_dump is installed");
        let error = || String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(file) } else { Err(error()) }
    }

    /// Restores a dump into a new database, which takes the name of the lost one then. From then on, the clocks
    /// are right.
    pub(crate) fn restore_dump(&mut self, dump: &Path, name: &str) {
        for process in &mut self.servers {
            process.kill();
            process.set_command(server(&process.folder().join("data"), None));
        }
        self.start(self.primary);
        self.psql("postgres", "CREATE DATABASE restored TEMPLATE template0");
        let url = self.url("restored");
        run(&["pg_restore", "--exit-on-error", "--dbname", &url, &path(dump)].map(str::to_owned));
        self.psql("postgres", &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"));
        self.psql("postgres", &format!("DROP DATABASE {name} WITH (FORCE)"));
        self.psql("postgres", &format!("ALTER DATABASE restored RENAME TO {name}"));
    }

    /// Takes a base backup of the primary, and starts a new standby from it.
    pub(crate) fn back_up(&mut self) {
        let standby = 1 - self.primary;
        self.servers[standby].kill();
        let backup = self.backup();
        let _ = std::fs::remove_dir_all(&backup);
        let primary = self.addresses[self.primary].clone();
        let program = path(&bin_folder().join("pg_basebackup"));
        let folder = path(&backup);
        let options = ["-U", "postgres", "-X", "stream", "-c", "fast", "--no-sync"];
        let words = [&program, "-h", &primary, "-D", &folder].into_iter().chain(options);
        let words = as_postgres(&words.map(str::to_owned).collect::<Vec<_>>());
        run_command(&mut in_namespace(&self.namespaces[standby], &words));
        self.copy_backup(standby);
        let data = self.data(standby);
        append(
            &data.join("postgresql.auto.conf"),
            &format!("primary_conninfo = 'host={primary} user=postgres connect_timeout=2'\n"),
        );
        touch_as_postgres(&data.join("standby.signal"));
        self.start(standby);
    }

    pub(crate) fn log(&self) -> String {
        self.servers[self.primary].log()
    }

    fn wait_until_writable(&self) {
        let start = Instant::now();
        loop {
            let in_recovery = self.try_psql("postgres", "SELECT pg_is_in_recovery()");
            if in_recovery.as_deref() == Ok("f") {
                return;
            }
            let log = || self.log();
            assert!(start.elapsed() < TIMEOUT, "PostgreSQL does not start: {in_recovery:?}\n{}", log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn copy_backup(&self, server: usize) {
        let data = self.data(server);
        let _ = std::fs::remove_dir_all(&data);
        run(&["cp", "-a", &path(&self.backup()), &path(&data)].map(str::to_owned));
    }

    fn data(&self, server: usize) -> PathBuf {
        self.servers[server].folder().join("data")
    }

    fn archive(&self) -> PathBuf {
        self.folder.join("archive")
    }

    fn backup(&self) -> PathBuf {
        self.folder.join("backup")
    }
}

/// The output of a statement, or its error.
pub(crate) fn query(url: &str, statement: &str) -> Result<String, String> {
    let output = Command::new("psql")
        .args(["-X", "-q", "-tA", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statement])
        .env("PGCONNECT_TIMEOUT", "5")
        .stdin(Stdio::null())
        .output()
        .expect("psql is installed");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// The programs of the newest PostgreSQL.
fn bin_folder() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.map(|entry| entry.path()).max_by_key(|path| {
        path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()).unwrap_or_default()
    });
    newest.expect("PostgreSQL of Debian").join("bin")
}

/// The command of a server whose clock is perhaps ahead.
fn server(data: &Path, ahead: Option<&str>) -> Vec<String> {
    let variables = ahead.into_iter().flat_map(clock).map(|(name, value)| format!("{name}={value}"));
    let program = path(&bin_folder().join("postgres"));
    // Not in the environment of what changes the user: the library keeps a semaphore.
    let words = ["env".to_owned()].into_iter().chain(variables).chain([program, "-D".to_owned(), path(data)]);
    as_postgres(&words.collect::<Vec<_>>())
}

/// PostgreSQL refuses to run as root.
fn as_postgres(words: &[String]) -> Vec<String> {
    let user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"];
    user.into_iter().map(str::to_owned).chain(words.iter().cloned()).collect()
}

fn touch_as_postgres(file: &Path) {
    run(&as_postgres(&["touch".to_owned(), path(file)]));
}

fn append(file: &Path, text: &str) {
    let content = std::fs::read_to_string(file).expect("a file");
    std::fs::write(file, content + text).expect("a file");
}

fn path(path: &Path) -> String {
    path.to_str().expect("a readable path").to_owned()
}

fn run(words: &[String]) {
    run_command(Command::new(&words[0]).args(&words[1..]));
}

fn run_command(command: &mut Command) {
    let output = command.current_dir("/").stdin(Stdio::null()).output().expect("the program is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
