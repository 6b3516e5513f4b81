//! The operator of a history: injects faults, and does what docs/operations/recovery.md says afterwards.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::bucket::Bucket;
use crate::history::World;
use crate::model::{Moment, Reset};
use crate::plan::Fault;
use crate::postgres::query;
use crate::system::{EDGE, FOLLOW, MIRROR, OBJECTS, PURGES, REPLICAS, WRITERS, database_url, standby_url};

/// Maximum time for a standby to connect and to receive what it lacks.
const STANDBY_TIMEOUT: Duration = Duration::from_mins(1);
/// Within this time the writers commit a change.
const COMMIT_TIME: Duration = Duration::from_secs(2);
/// A slow connection loses everything for this time, then nothing.
const LOSS_INTERVAL: Duration = Duration::from_millis(500);
/// How often the bucket is asked for its objects.
const LIST_INTERVAL: Duration = Duration::from_millis(200);

/// A fault, from its beginning until everything that it affected works again.
#[derive(Debug, Clone)]
pub(crate) struct FaultEvent {
    pub(crate) name: String,
    /// What it affects.
    pub(crate) scope: Scope,
    pub(crate) start: Moment,
    /// `None` if it has not ended.
    pub(crate) end: Option<Moment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// PostgreSQL is unavailable for all.
    Postgres,
    /// The database was set back, and was unavailable meanwhile.
    Reset,
    Redis,
    /// Redis has lost its keys, and was perhaps unavailable.
    RedisReset,
    Replica(usize),
    /// HAProxy, or its connection to a replica.
    Haproxy,
    /// A replica does not reach PostgreSQL.
    ReplicaPostgres(usize),
    ReplicaRedis(usize),
    /// Search nodes, or their connections.
    Search,
    /// `follow`, or what it follows: the updates of search nodes and the purges of the edge.
    Follow,
    /// The connection of `follow` to the edge.
    Purges,
    /// The edge, or its connection to HAProxy.
    Edge,
    /// The object store is unavailable for all, or for a replica.
    Objects(Option<usize>),
    /// An ingest of many charts: the purges of other changes than removals take longer.
    ManyChanges,
    /// What affects no response: a writer does not reach PostgreSQL, a search node or the object store, a
    /// transaction is open, a standby fails.
    Nothing,
}

#[derive(Debug)]
pub(crate) struct Operator {
    world: Arc<World>,
    /// The name of its sessions.
    session: String,
    transaction: Option<Child>,
    restore_points: u32,
}

impl Operator {
    pub(crate) fn new(world: Arc<World>, index: usize) -> Self {
        Self { world, session: format!("operator-{index}"), transaction: None, restore_points: 0 }
    }

    /// Injects a fault and ends it, unless it is about a service that a fault of another operator is about.
    pub(crate) fn inject(&mut self, fault: &Fault) {
        let services = fault.services();
        if !self.world.reserve(&services) {
            return;
        }
        let index = {
            let mut log = self.world.log();
            let (name, start) = (format!("{fault:?}"), self.world.now());
            log.faults.push(FaultEvent { name, scope: scope(fault), start, end: None });
            log.faults.len() - 1
        };
        self.inject_and_end(fault);
        let mut end = self.world.now();
        if let Fault::OpenTransaction(duration) = fault {
            end += *duration;
        }
        self.world.log().faults[index].end = Some(end);
        self.world.release(&services);
    }

    fn inject_and_end(&mut self, fault: &Fault) {
        match fault {
            Fault::Kill(name, duration) => {
                self.world.system().kill_process(name);
                self.wait(*duration);
                self.world.system().start_process(name);
            }
            Fault::Freeze(name, duration) => {
                self.world.system().set_frozen(name, true);
                self.wait(*duration);
                self.world.system().set_frozen(name, false);
            }
            Fault::Separate(first, second, duration) => {
                self.world.system().set_separated(first, second, true);
                self.wait(*duration);
                self.world.system().set_separated(first, second, false);
            }
            Fault::PromotePostgres(lag) => self.promote(*lag),
            Fault::RestorePostgres(age) => self.restore(*age),
            Fault::RestoreDump(age) => self.restore_dump(*age),
            Fault::PauseReplay(duration) => {
                let run = |function| query(&standby_url("postgres"), &format!("SELECT {function}()"));
                // Fails if a new standby is not ready for reads yet.
                let _ = run("pg_wal_replay_pause");
                self.wait(*duration);
                let _ = run("pg_wal_replay_resume");
            }
            Fault::SlowPurges(duration) => self.slow_down(FOLLOW, PURGES, *duration),
            Fault::LoseObjects(duration) => self.lose_objects(*duration),
            Fault::FlushRedis => self.world.system().flush_redis(),
            Fault::FailOverRedis => self.world.system().promote_redis(),
            Fault::RestoreNode(node, age) => self.restore_node(node, *age),
            Fault::OpenTransaction(duration) => {
                self.open_transaction("postgres", "CREATE TEMPORARY TABLE held (id int)", *duration);
            }
            Fault::BlockCommits(duration) => self.block_commits(*duration),
        }
    }

    /// Waits, until the history ends at most.
    fn wait(&self, duration: Duration) {
        self.world.pause(duration);
    }

    fn slow_down(&self, first: &str, second: &str, duration: Duration) {
        let start = Instant::now();
        while start.elapsed() < duration && self.world.pause(LOSS_INTERVAL) {
            self.world.system().set_separated(first, second, true);
            self.wait(LOSS_INTERVAL);
            self.world.system().set_separated(first, second, false);
        }
    }

    fn promote(&self, lag: Duration) {
        let received = self.wait_for_standby();
        if !lag.is_zero() {
            self.world.system().set_separated("postgres", "postgres-standby", true);
        }
        let separated = self.world.now();
        self.wait(lag);
        let killed = self.world.now();
        self.world.system().promote_postgres();
        let end = self.world.now();
        let until = if lag.is_zero() { killed } else { separated };
        let point = (received, until);
        self.world.model().reset(Reset { start: killed, end, point });
        self.after_reset();
    }

    /// Waits until the standby has received everything up to some moment. Returns that moment.
    fn wait_for_standby(&self) -> Moment {
        let (moment, start) = (self.world.now(), Instant::now());
        let position = self.world.system().postgres.psql("postgres", "SELECT pg_current_wal_lsn()");
        let received = format!("SELECT count(*) FROM pg_stat_replication WHERE flush_lsn >= '{position}'");
        while query(&database_url("postgres"), &received).as_deref() != Ok("1") {
            assert!(start.elapsed() < STANDBY_TIMEOUT, "the standby does not connect");
            thread::sleep(Duration::from_millis(20));
        }
        moment
    }

    fn restore(&mut self, age: Duration) {
        self.restore_points += 1;
        let name = format!("{}-{}", self.session, self.restore_points);
        let before = self.world.now();
        if self.world.system().postgres.create_restore_point(&name).is_err() {
            return;
        }
        let point = (before, self.world.now());
        self.wait(age);
        let start = self.world.now();
        self.world.system().postgres.restore(&name);
        self.world.model().reset(Reset { start, end: self.world.now(), point });
        self.after_reset();
    }

    fn restore_dump(&self, age: Duration) {
        let before = self.world.now();
        let Ok(dump) = self.world.system().postgres.dump("chart_index") else { return };
        let point = (before, self.world.now());
        self.wait(age);
        let start = self.world.now();
        self.world.system().postgres.restore_dump(&dump, "chart_index");
        self.world.model().reset(Reset { start, end: self.world.now(), point });
        self.after_reset();
    }

    /// "Restored to a point in time, or failed over": rebuilds the search nodes. The writers ingest and remove
    /// anyway. Objects that the earlier state names may have been deleted: they come back once no command runs
    /// that may delete what it has read in the later one.
    fn after_reset(&self) {
        if self.world.system().bucket.is_some() {
            self.kill_commands();
            self.world.system().bucket.iter().for_each(|bucket| bucket.undelete(|_| true));
        }
        self.world.system().postgres.back_up();
        if self.world.system().has_meilisearch {
            let mut command = self.world.system().indexer(FOLLOW, &["rebuild"]);
            let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
            self.world.system().start_process(FOLLOW);
        }
    }

    /// The mirror has not read the objects yet. A command may write them again.
    fn lose_objects(&self, duration: Duration) {
        let objects = || self.world.system().bucket.as_ref().map(Bucket::objects).unwrap_or_default();
        let before = objects();
        let mut written = objects();
        while written.is_subset(&before) {
            if !self.world.pause(LIST_INTERVAL) {
                return;
            }
            written = objects();
        }
        let lost: BTreeSet<_> = written.difference(&before).collect();
        if let Some(bucket) = &self.world.system().bucket {
            for name in &lost {
                bucket.lose(name);
            }
        }
        self.wait(duration);
        // A removal meanwhile has deleted them once more, and its rows still name them.
        if let Some(bucket) = &self.world.system().bucket {
            bucket.undelete(|name| lost.iter().any(|lost| *lost == name));
        }
    }

    fn restore_node(&self, node: &str, age: Duration) {
        let files = self.world.system().files(node).to_path_buf();
        let (data, copied) = (files.join("data"), files.join("copied"));
        self.world.system().kill_process(node);
        copy(&data, &copied);
        self.world.system().start_process(node);
        self.wait(age);
        self.world.system().kill_process(node);
        let _ = std::fs::remove_dir_all(&data);
        std::fs::rename(&copied, &data).expect("the data is put back");
        self.world.system().start_process(node);
    }

    fn block_commits(&mut self, duration: Duration) {
        // Commits wait for this lock, and readers do not.
        let statement = "LOCK TABLE change_feed IN EXCLUSIVE MODE";
        self.open_transaction("chart_index", statement, COMMIT_TIME + duration);
        self.wait(COMMIT_TIME);
        self.kill_commands();
        self.wait(duration);
        self.close_transaction();
    }

    fn kill_commands(&self) {
        for writer in WRITERS {
            self.world.system().signal_writer(writer, "KILL");
        }
    }

    /// Leaves a transaction open in which this statement was run.
    fn open_transaction(&mut self, database: &str, statement: &str, duration: Duration) {
        self.close_transaction();
        let statements = format!("BEGIN; {statement}; SELECT pg_sleep({})", duration.as_secs_f64());
        let child = Command::new("psql")
            .args(["-X", "-q", "-d", &database_url(database), "-c", &statements])
            .env("PGAPPNAME", &self.session)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.transaction = child.ok();
    }

    pub(crate) fn close_transaction(&mut self) {
        let Some(mut child) = self.transaction.take() else { return };
        let terminate = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{}'",
            self.session
        );
        let _ = query(&database_url("postgres"), &terminate);
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").args(["-a", "--sparse=always"]).args([from, to]).status();
    assert!(status.is_ok_and(|status| status.success()), "{} is copied", from.display());
}

fn scope(fault: &Fault) -> Scope {
    match *fault {
        Fault::PromotePostgres(_) | Fault::RestorePostgres(_) | Fault::RestoreDump(_) => Scope::Reset,
        Fault::FlushRedis | Fault::FailOverRedis | Fault::Kill("redis", _) => Scope::RedisReset,
        Fault::LoseObjects(_) => Scope::Objects(None),
        Fault::RestoreNode(..) => Scope::Search,
        Fault::BlockCommits(_) => Scope::Follow,
        Fault::SlowPurges(_) => Scope::Purges,
        Fault::OpenTransaction(_) | Fault::PauseReplay(_) => Scope::Nothing,
        Fault::Kill(name, _) | Fault::Freeze(name, _) => scope_of_process(name),
        Fault::Separate(first, second, _) => scope_of_link(first, second),
    }
}

fn replica(name: &str) -> Option<usize> {
    REPLICAS.iter().position(|replica| *replica == name)
}

fn scope_of_process(name: &str) -> Scope {
    match (name, replica(name)) {
        ("postgres", _) => Scope::Postgres,
        ("redis", _) => Scope::Redis,
        ("haproxy", _) => Scope::Haproxy,
        (EDGE, _) => Scope::Edge,
        (FOLLOW, _) => Scope::Follow,
        (OBJECTS, _) => Scope::Objects(None),
        ("postgres-standby" | "redis-standby" | MIRROR, _) => Scope::Nothing,
        (_, Some(replica)) => Scope::Replica(replica),
        _ => Scope::Search,
    }
}

fn scope_of_link(first: &str, second: &str) -> Scope {
    match (replica(first), second) {
        (Some(replica), "postgres") => Scope::ReplicaPostgres(replica),
        (Some(replica), "redis") => Scope::ReplicaRedis(replica),
        (Some(replica), OBJECTS) => Scope::Objects(Some(replica)),
        (Some(_), "postgres-standby") => Scope::Nothing,
        (Some(_), _) => Scope::Search,
        _ if first == FOLLOW => match second {
            PURGES => Scope::Purges,
            "postgres" => Scope::Follow,
            _ => Scope::Search,
        },
        _ if first == EDGE => Scope::Edge,
        _ if first == "haproxy" => Scope::Haproxy,
        _ => Scope::Nothing,
    }
}
