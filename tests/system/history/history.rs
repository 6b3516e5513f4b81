//! One history: starts the system, performs the steps, ends all faults, and records everything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use chart_index_system_tests::network;
use chart_index_tests::{Client, Library, Random};
use serde_json::Value;

use crate::bucket::Bucket;
use crate::checks::MAX_AGE;
use crate::clients::{Clients, Recorded};
use crate::ending::{self, Ending};
use crate::mirror::{self, Followed, Mirror};
use crate::model::{Chart, Model, Moment, SETS, States, UNTOUCHED_CHARTS, UNTOUCHED_SETS};
use crate::names::{self, Names, source_id};
use crate::operator::{FaultEvent, Operator};
use crate::plan::{self, Action, Actor, Disturbance, OPERATORS, Step};
use crate::system::{EDGE, REPLICAS, S3, System, WRITERS};
use crate::writers::{CommandEvent, Export, Filter, RemovedObjects, Writer};

/// Time after the last step in which clients go on.
const REST: Duration = Duration::from_secs(8);

/// What the actors share.
#[derive(Debug)]
pub(crate) struct World {
    start: Instant,
    system: Mutex<System>,
    model: Mutex<Model>,
    pub(crate) names: Arc<Names>,
    log: Mutex<Log>,
    /// The services that the current faults are about.
    reserved: Mutex<BTreeSet<&'static str>>,
    stopped: Mutex<bool>,
    stop: Condvar,
}

/// What happened.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) commands: Vec<CommandEvent>,
    pub(crate) faults: Vec<FaultEvent>,
    pub(crate) exports: Vec<Export>,
    pub(crate) filters: Vec<Filter>,
    pub(crate) removed_objects: Vec<RemovedObjects>,
    /// The charts that were erased, perhaps with their chartsets.
    pub(crate) erased: BTreeSet<Chart>,
    /// The indexes of the steps that were performed.
    pub(crate) performed: BTreeSet<usize>,
}

/// Everything that is known about a history that has ended.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) states: States,
    pub(crate) names: Arc<Names>,
    pub(crate) log: Log,
    pub(crate) recorded: Recorded,
    pub(crate) mirror: Followed,
    /// When the last step had ended and all faults as well.
    pub(crate) repaired: Moment,
    pub(crate) ending: Ending,
}

/// How to run a history.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) seed: u64,
    pub(crate) length: Duration,
    /// A folder for the logs of all processes.
    pub(crate) logs: Option<PathBuf>,
    /// The folder of the programs; by default that of this program.
    pub(crate) programs: Option<PathBuf>,
}

impl World {
    /// Time since the start of the history.
    pub(crate) fn now(&self) -> Moment {
        self.start.elapsed()
    }

    pub(crate) fn system(&self) -> MutexGuard<'_, System> {
        self.system.lock().expect("no actor panicked")
    }

    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().expect("no actor panicked")
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("no actor panicked")
    }

    /// Reserves these services for a fault. Returns false if one of them is reserved for another one.
    pub(crate) fn reserve(&self, services: &[&'static str]) -> bool {
        let mut reserved = self.reserved.lock().expect("no actor panicked");
        let is_free = services.iter().all(|service| !reserved.contains(service));
        reserved.extend(services.iter().filter(|_| is_free));
        is_free
    }

    /// Ends what [`reserve`](Self::reserve) has begun.
    pub(crate) fn release(&self, services: &[&'static str]) {
        self.reserved.lock().expect("no actor panicked").retain(|service| !services.contains(service));
    }

    /// Waits for this time, or until the steps end. Returns whether they go on.
    pub(crate) fn pause(&self, duration: Duration) -> bool {
        let stopped = self.stopped.lock().expect("no actor panicked");
        let waited = self.stop.wait_timeout_while(stopped, duration, |stopped| !*stopped);
        !*waited.expect("no actor panicked").0
    }

    fn stop(&self) {
        *self.stopped.lock().expect("no actor panicked") = true;
        self.stop.notify_all();
    }
}

/// Runs the steps on a new system, on a thread in the network namespace of its host.
pub(crate) fn run(options: &Options, steps: &[Step]) -> History {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    network::sweep_once();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let system = System::start(number, options);
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.expect("a runtime").block_on(run_on(system, options, steps))
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

async fn run_on(system: System, options: &Options, steps: &[Step]) -> History {
    let names = Arc::new(Names::new(&chartset_ids(&system)));
    let replicas = REPLICAS.map(|replica| system.socket_address(replica, 8080));
    let [haproxy, edge] = ["haproxy", EDGE].map(|service| system.socket_address(service, 8080));
    let bucket = system.socket_address(S3, Bucket::PORT);
    let start = Instant::now();
    let world = Arc::new(World {
        start,
        system: Mutex::new(system),
        model: Mutex::new(Model::new()),
        names: Arc::clone(&names),
        log: Mutex::default(),
        reserved: Mutex::default(),
        stopped: Mutex::new(false),
        stop: Condvar::new(),
    });
    let mut writers: Vec<_> =
        (0..WRITERS.len()).map(|index| Writer::new(Arc::clone(&world), index)).collect();
    tokio::task::block_in_place(|| {
        fill(&world, &mut writers, options.seed);
        if plan::has_large(options.seed) {
            writers[0].ingest_large();
        }
        if world.system().has_meilisearch {
            ending::wait_for_search_nodes(&world).expect("the search nodes have the first chartsets");
        }
    });
    // All responses show what no command will touch.
    tokio::time::sleep(MAX_AGE).await;
    let clients = Clients::new(start, Arc::clone(&names), &replicas, [haproxy, edge, bucket]);
    let tasks = clients.spawn(options.seed);
    let mirror_stopped = Arc::new(AtomicBool::new(false));
    let mirror = tokio::spawn(mirror::follow(
        Client::new(haproxy),
        Arc::clone(&names),
        start,
        Arc::clone(&mirror_stopped),
    ));
    tokio::task::block_in_place(|| {
        let mut operators = [0, 1].map(|index| Operator::new(Arc::clone(&world), index));
        perform_all(&world, &mut writers, &mut operators, steps, options.length);
        for operator in &mut operators {
            operator.close_transaction();
        }
        world.system().start_all();
        for writer in &mut writers {
            writer.ingest(Disturbance::None);
        }
    });
    let repaired = world.now();
    let ending = ending::finish(&world, &replicas, edge).await;
    clients.stop();
    for task in tasks {
        task.await.expect("a client does not panic");
    }
    clients.observe().await;
    mirror_stopped.store(true, Ordering::Relaxed);
    let mut followed = mirror.await.expect("the mirror does not panic");
    let mut fresh = Mirror::default();
    for mirror in [&mut followed.mirror, &mut fresh] {
        followed.violations.extend(mirror.follow_to_end(&Client::new(haproxy)).await.err());
    }
    if followed.mirror != fresh || fresh.chartsets != ending.exported {
        let text = format!(
            "the mirror ends with {:?}, one that starts now with {fresh:?}, an export has {:?}",
            followed.mirror, ending.exported
        );
        followed.violations.push(text);
    }
    let recorded = std::mem::take(&mut *clients.recorded());
    if let Some(folder) = &options.logs {
        world.system().copy_logs(&folder.join(options.seed.to_string()));
    }
    let states = world.model().states();
    let log = std::mem::take(&mut *world.log());
    History { states, names, log, recorded, mirror: followed, repaired, ending }
}

/// Performs the steps of all actors until the end of the history.
fn perform_all(
    world: &World,
    writers: &mut [Writer],
    operators: &mut [Operator; OPERATORS],
    steps: &[Step],
    length: Duration,
) {
    let end = Instant::now() + length;
    thread::scope(|scope| {
        let mut actors = Vec::new();
        for (index, writer) in writers.iter_mut().enumerate() {
            actors.push(scope.spawn(move || {
                perform(world, steps, Actor::Writer(index), |action| match action {
                    Action::Command(command, disturbance) => writer.run(command, *disturbance),
                    Action::Fault(_) => (),
                });
            }));
        }
        for (index, operator) in operators.iter_mut().enumerate() {
            actors.push(scope.spawn(move || {
                perform(world, steps, Actor::Operator(index), |action| match action {
                    Action::Fault(fault) => operator.inject(fault),
                    Action::Command(..) => (),
                });
            }));
        }
        // A history that was shortened may end early.
        while !actors.iter().all(ScopedJoinHandle::is_finished) && Instant::now() < end {
            world.pause(Duration::from_millis(100));
        }
        world.pause(REST.min(end.saturating_duration_since(Instant::now())));
        world.stop();
    });
}

/// Performs the steps of an actor until the end of the history.
fn perform(world: &World, steps: &[Step], actor: Actor, mut act: impl FnMut(&Action)) {
    for (index, step) in steps.iter().enumerate().filter(|(_, step)| step.actor == actor) {
        if !world.pause(step.pause) {
            return;
        }
        world.log().performed.insert(index);
        act(&step.action);
    }
}

/// Each writer ingests a part of its sets. What no command touches later is in a library of its own.
fn fill(world: &Arc<World>, writers: &mut [Writer], seed: u64) {
    let mut random = Random::new(seed ^ 0xf1);
    let count = u32::try_from(writers.len()).expect("few writers");
    for set in 0..UNTOUCHED_SETS.start * 2 / 3 {
        // Later ingests have new charts, whose files the mirror needs.
        let mut charts: Vec<Chart> = plan::charts(&mut random).iter().map(|chart| chart / 2 * 2).collect();
        charts.dedup();
        writers[(set % count) as usize].write_folder(set, &charts);
    }
    let mut untouched = Writer::new(Arc::clone(world), 0);
    for set in UNTOUCHED_SETS {
        untouched.write_folder(set, &UNTOUCHED_CHARTS.collect::<Vec<_>>());
    }
    for writer in writers.iter_mut().chain([&mut untouched]) {
        writer.ingest(Disturbance::None);
    }
}

/// The ids of all sets, by the ids of their sources.
fn chartset_ids(system: &System) -> BTreeMap<String, String> {
    let library = Library::new();
    for set in 0..SETS {
        library.osu(&format!("alpha/{} set/0.osu", source_id(set)), names::spec(set, 0, 0));
    }
    let arguments = ["ingest", "--dry-run", "--report", "/dev/stdout", &library.argument()];
    let printed = system.run_indexer(&arguments);
    let reports = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ids = reports.filter_map(|report| {
        let id = report["chartset"].as_str()?;
        let folder = report["path"].as_str()?.split("alpha/").nth(1)?;
        Some((folder.split(' ').next()?.to_owned(), id.to_owned()))
    });
    ids.collect()
}
