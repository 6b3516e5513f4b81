//! The reference model: what the catalogue may contain at each moment of a history.
//!
//! Each chartset, and each mark of a removal or a replaced file, is a register with one writer at a time. A
//! command that is running, or that was killed and of which PostgreSQL does not show the effect, may have taken
//! effect or not, so a register may have several values at a moment.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;

/// Time since the start of the history.
pub(crate) type Moment = Duration;

/// A chartset, by its number in the history.
pub(crate) type Set = u32;
/// A chart, by its number in the history. The number determines the notes.
pub(crate) type Chart = u32;
/// A content of a chartset. No two have the same number.
pub(crate) type Version = u32;

/// The number of different chartsets and charts.
pub(crate) const SETS: u32 = 30;
pub(crate) const CHARTS: u32 = 52;
/// Those that are in the catalogue from the start and that no command removes or ingests: each of these
/// chartsets has all of these charts, and no other one has them.
pub(crate) const UNTOUCHED_SETS: Range<Set> = 24..26;
pub(crate) const UNTOUCHED_CHARTS: Range<Chart> = 40..48;
/// Those of them whose ROX files are replaced, each with one other file.
pub(crate) const REPLACED_CHARTS: Range<Chart> = 42..48;
/// Large chartsets, of which each has one of these charts. Such a chart stands for [`LARGE`] in the catalogue.
pub(crate) const LARGE_SETS: Range<Set> = 26..SETS;
pub(crate) const LARGE_CHARTS: Range<Chart> = 48..CHARTS;
pub(crate) const LARGE: u32 = 250;

/// How a chartset appears in responses: its version, and those of its charts that are not removed. `None` if it
/// does not appear.
pub(crate) type Appearance = Option<(Version, Vec<Chart>)>;

/// Maximum undecided charts of a chartset for which all combinations are tried.
const MAX_UNDECIDED: u32 = 6;

/// What may have changed a register.
#[derive(Debug, Clone)]
struct Write<T> {
    value: T,
    start: Moment,
    /// When it certainly had taken effect; `None` while it is running, and forever if that is not known.
    end: Option<Moment>,
}

#[derive(Debug, Clone)]
struct Register<T> {
    initial: T,
    writes: Vec<Write<T>>,
}

/// The database was set back: to its state at some moment within `point`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reset {
    /// When the database may first have been in the earlier state.
    pub(crate) start: Moment,
    /// When it certainly was.
    pub(crate) end: Moment,
    pub(crate) point: (Moment, Moment),
}

/// Identifies a write that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Entry {
    Set(Set),
    SetRemoval(Set),
    ChartRemoval(Chart),
    RoxFile(Chart),
}

/// Everything that was written, in the order of the commands.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    sets: Vec<Register<Option<Version>>>,
    set_removals: Vec<Register<bool>>,
    chart_removals: Vec<Register<bool>>,
    /// Whether ROX files are replaced.
    replacements: Vec<Register<bool>>,
    charts: BTreeMap<Version, Vec<Chart>>,
    resets: Vec<Reset>,
}

/// What the catalogue may contain between two moments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) start: Moment,
    sets: Vec<BTreeSet<Option<Version>>>,
    set_removals: Vec<BTreeSet<bool>>,
    chart_removals: Vec<BTreeSet<bool>>,
    replacements: Vec<BTreeSet<bool>>,
    /// Found when they are first needed.
    appearances: OnceLock<Vec<BTreeSet<Appearance>>>,
}

/// The states of a history in their order.
#[derive(Debug)]
pub(crate) struct States {
    states: Vec<State>,
    charts: BTreeMap<Version, Vec<Chart>>,
}

impl<T: Clone + Ord> Register<T> {
    fn new(initial: T) -> Self {
        Self { initial, writes: Vec::new() }
    }

    fn possible(&self, moment: Moment, resets: &[Reset]) -> BTreeSet<T> {
        let Some(index) = resets.iter().rposition(|reset| reset.start <= moment) else {
            return self.replay([self.initial.clone()].into(), None, moment);
        };
        let (reset, earlier) = (resets[index], &resets[..index]);
        let mut base = self.possible(reset.point.0, earlier);
        let within = |write: &&Write<T>| (reset.point.0..=reset.point.1).contains(&write.start);
        base.extend(self.writes.iter().filter(within).map(|write| write.value.clone()));
        if moment < reset.end {
            base.extend(self.possible(moment, earlier));
        }
        self.replay(base, Some(reset), moment)
    }

    /// Applies the writes after a reset. One that had begun before its end may be lost.
    fn replay(&self, mut values: BTreeSet<T>, reset: Option<Reset>, to: Moment) -> BTreeSet<T> {
        for write in self.writes.iter().filter(|write| write.start <= to) {
            if reset.is_some_and(|reset| write.end.is_some_and(|end| end < reset.start)) {
                continue;
            }
            let may_be_lost = reset.is_some_and(|reset| write.start <= reset.end);
            if write.end.is_some_and(|end| end <= to) && !may_be_lost {
                values.clear();
            }
            values.insert(write.value.clone());
        }
        values
    }

    fn boundaries(&self) -> impl Iterator<Item = Moment> {
        self.writes.iter().flat_map(|write| [Some(write.start), write.end]).flatten()
    }
}

impl Model {
    pub(crate) fn new() -> Self {
        let marks = |count: u32| (0..count).map(|_| Register::new(false)).collect();
        Self {
            sets: (0..SETS).map(|_| Register::new(None)).collect(),
            set_removals: marks(SETS),
            chart_removals: marks(CHARTS),
            replacements: marks(CHARTS),
            charts: BTreeMap::new(),
            resets: Vec::new(),
        }
    }

    /// A new version of a chartset, which is not written yet.
    pub(crate) fn add_version(&mut self, charts: Vec<Chart>) -> Version {
        let version = u32::try_from(self.charts.len()).expect("few versions");
        self.charts.insert(version, charts);
        version
    }

    /// A command that writes this begins.
    pub(crate) fn begin_set(&mut self, set: Set, version: Version, start: Moment) {
        self.sets[set as usize].writes.push(Write { value: Some(version), start, end: None });
    }

    /// A command begins that removes or replaces (`true`), or restores.
    pub(crate) fn begin_mark(&mut self, entry: Entry, value: bool, start: Moment) {
        self.marks(entry).writes.push(Write { value, start, end: None });
    }

    /// The last command that wrote this has succeeded.
    pub(crate) fn complete(&mut self, entry: Entry, end: Moment) {
        let last = match entry {
            Entry::Set(set) => self.sets[set as usize].writes.last_mut().map(|write| &mut write.end),
            mark => self.marks(mark).writes.last_mut().map(|write| &mut write.end),
        };
        *last.expect("a command that has begun") = Some(end);
    }

    pub(crate) fn reset(&mut self, reset: Reset) {
        self.resets.push(reset);
    }

    pub(crate) fn has_resets(&self) -> bool {
        !self.resets.is_empty()
    }

    /// The charts that are lost if an entry is erased: a chart, or those of all versions of a chartset.
    pub(crate) fn charts_of(&self, entry: Entry) -> Vec<Chart> {
        match entry {
            Entry::Set(set) | Entry::SetRemoval(set) => {
                let versions = self.sets[set as usize].writes.iter().filter_map(|write| write.value);
                versions.flat_map(|version| self.charts[&version].clone()).collect()
            }
            Entry::ChartRemoval(chart) | Entry::RoxFile(chart) => vec![chart],
        }
    }

    fn marks(&mut self, entry: Entry) -> &mut Register<bool> {
        match entry {
            Entry::Set(_) => panic!("not a mark"),
            Entry::SetRemoval(set) => &mut self.set_removals[set as usize],
            Entry::ChartRemoval(chart) => &mut self.chart_removals[chart as usize],
            Entry::RoxFile(chart) => &mut self.replacements[chart as usize],
        }
    }

    /// The states until now.
    pub(crate) fn states(&self) -> States {
        let mut boundaries: BTreeSet<Moment> = [Moment::ZERO].into();
        boundaries.extend(self.sets.iter().flat_map(Register::boundaries));
        let marks = self.set_removals.iter().chain(&self.chart_removals).chain(&self.replacements);
        boundaries.extend(marks.flat_map(Register::boundaries));
        boundaries.extend(self.resets.iter().flat_map(|reset| [reset.start, reset.end]));
        let mut states: Vec<State> = Vec::new();
        for start in boundaries {
            let state = self.state(start);
            if states.last().is_none_or(|last| (State { start, ..last.clone() }) != state) {
                states.push(state);
            }
        }
        States { states, charts: self.charts.clone() }
    }

    fn state(&self, moment: Moment) -> State {
        let marks = |registers: &[Register<bool>]| {
            registers.iter().map(|register| register.possible(moment, &self.resets)).collect()
        };
        State {
            start: moment,
            sets: self.sets.iter().map(|register| register.possible(moment, &self.resets)).collect(),
            set_removals: marks(&self.set_removals),
            chart_removals: marks(&self.chart_removals),
            replacements: marks(&self.replacements),
            appearances: OnceLock::new(),
        }
    }
}

impl State {
    /// Whether an entry certainly is removed.
    pub(crate) fn is_removed(&self, entry: Entry) -> bool {
        let removals = match entry {
            Entry::Set(_) | Entry::RoxFile(_) => return false,
            Entry::SetRemoval(set) => &self.set_removals[set as usize],
            Entry::ChartRemoval(chart) => &self.chart_removals[chart as usize],
        };
        *removals == [true].into()
    }

    /// Whether the ROX file of a chart may be the replacement (`true`), or the first one.
    pub(crate) fn may_have_file(&self, chart: Chart, replaced: bool) -> bool {
        self.replacements[chart as usize].contains(&replaced)
    }
}

/// How many charts of the catalogue this one stands for.
pub(crate) fn count(chart: Chart) -> u32 {
    if LARGE_CHARTS.contains(&chart) { LARGE } else { 1 }
}

impl States {
    /// The states that the catalogue may have had at some moment of an interval.
    pub(crate) fn within(&self, from: Moment, to: Moment) -> &[State] {
        let first = self.states.partition_point(|state| state.start <= from).saturating_sub(1);
        let end = self.states.partition_point(|state| state.start <= to);
        &self.states[first..end]
    }

    /// What each entry may have been at some moment of an interval, not all at the same one.
    pub(crate) fn union(&self, from: Moment, to: Moment) -> State {
        let states = self.within(from, to);
        let mut union = State { appearances: OnceLock::new(), ..states[0].clone() };
        for state in &states[1..] {
            for (values, further) in union.sets.iter_mut().zip(&state.sets) {
                values.extend(further);
            }
            let removals = union.set_removals.iter_mut().chain(&mut union.chart_removals);
            for (values, further) in removals.zip(state.set_removals.iter().chain(&state.chart_removals)) {
                values.extend(further);
            }
        }
        union
    }

    /// The last state.
    pub(crate) fn last(&self) -> &State {
        self.states.last().expect("the initial state")
    }

    /// The charts of a version.
    pub(crate) fn charts(&self, version: Version) -> &[Chart] {
        self.charts.get(&version).map_or(&[], Vec::as_slice)
    }

    /// All ways in which each chartset may appear.
    pub(crate) fn all_appearances<'a>(&self, state: &'a State) -> &'a [BTreeSet<Appearance>] {
        state.appearances.get_or_init(|| (0..SETS).map(|set| self.find_appearances(state, set)).collect())
    }

    /// All ways in which a chartset may appear.
    pub(crate) fn appearances<'a>(&self, state: &'a State, set: Set) -> &'a BTreeSet<Appearance> {
        &self.all_appearances(state)[set as usize]
    }

    fn find_appearances(&self, state: &State, set: Set) -> BTreeSet<Appearance> {
        let mut appearances = BTreeSet::new();
        let removals = &state.set_removals[set as usize];
        if removals.contains(&true) {
            appearances.insert(None);
        }
        for version in state.sets[set as usize].iter().filter(|_| removals.contains(&false)) {
            match version {
                None => drop(appearances.insert(None)),
                Some(version) => appearances.extend(self.shown_charts(state, *version)),
            }
        }
        appearances
    }

    fn shown_charts(&self, state: &State, version: Version) -> Vec<Appearance> {
        let may_be = |chart: &Chart, removed| state.chart_removals[*chart as usize].contains(&removed);
        let (undecided, decided): (Vec<Chart>, Vec<Chart>) =
            self.charts(version).iter().partition(|chart| may_be(chart, true) && may_be(chart, false));
        let undecided_count = u32::try_from(undecided.len()).expect("few charts").min(MAX_UNDECIDED);
        let combination = |bits: u32| {
            let chosen = (0..).zip(&undecided).filter(|(index, _)| bits >> index & 1 == 1);
            let chosen = chosen.map(|(_, chart)| *chart);
            let shown = decided.iter().copied().filter(|chart| may_be(chart, false));
            let mut charts: Vec<Chart> = shown.chain(chosen).collect();
            charts.sort_unstable();
            (!charts.is_empty()).then_some((version, charts))
        };
        (0..1 << undecided_count).map(combination).collect()
    }

    /// Whether a lookup may find the chart (`true`), or not find it.
    pub(crate) fn may_be_known(&self, state: &State, chart: Chart, known: bool) -> bool {
        let contains =
            |appearance: &Appearance| appearance.as_ref().is_some_and(|(_, charts)| charts.contains(&chart));
        let mut sets = self.all_appearances(state).iter();
        if known {
            sets.any(|appearances| appearances.iter().any(contains))
        } else {
            state.chart_removals[chart as usize].contains(&true)
                || sets.all(|appearances| appearances.iter().any(|appearance| !contains(appearance)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Moment {
        Duration::from_secs(seconds)
    }

    fn versions(model: &Model, moment: u64) -> Vec<Option<Version>> {
        let states = model.states();
        states.within(seconds(moment), seconds(moment))[0].sets[0].iter().copied().collect()
    }

    #[test]
    fn running_command_may_have_taken_effect() {
        let mut model = Model::new();
        let version = model.add_version(vec![1]);
        model.begin_set(0, version, seconds(10));
        model.complete(Entry::Set(0), seconds(20));
        let killed = model.add_version(vec![2]);
        model.begin_set(0, killed, seconds(30));
        assert_eq!(versions(&model, 9), [None]);
        assert_eq!(versions(&model, 10), [None, Some(version)]);
        assert_eq!(versions(&model, 20), [Some(version)]);
        assert_eq!(versions(&model, 99), [Some(version), Some(killed)]);
    }

    #[test]
    fn reset_brings_back_the_values_of_its_point() {
        let mut model = Model::new();
        for number in 0..3 {
            let version = model.add_version(vec![number]);
            model.begin_set(0, version, seconds(10 * u64::from(number) + 10));
            model.complete(Entry::Set(0), seconds(10 * u64::from(number) + 12));
        }
        let point = (seconds(15), seconds(16));
        model.reset(Reset { start: seconds(40), end: seconds(45), point });
        assert_eq!(versions(&model, 39), [Some(2)]);
        assert_eq!(versions(&model, 40), [Some(0), Some(2)]);
        assert_eq!(versions(&model, 45), [Some(0)]);
        // A command that was running may take effect afterwards.
        let version = model.add_version(vec![9]);
        model.begin_set(0, version, seconds(44));
        model.complete(Entry::Set(0), seconds(50));
        assert_eq!(versions(&model, 47), [Some(0), Some(version)]);
        assert_eq!(versions(&model, 51), [Some(0), Some(version)]);
        model.begin_set(0, version, seconds(52));
        model.complete(Entry::Set(0), seconds(53));
        assert_eq!(versions(&model, 54), [Some(version)]);
    }

    #[test]
    fn removed_charts_do_not_appear() {
        let mut model = Model::new();
        let version = model.add_version(vec![1, 2]);
        model.begin_set(0, version, seconds(1));
        model.complete(Entry::Set(0), seconds(2));
        model.begin_mark(Entry::ChartRemoval(1), true, seconds(3));
        let states = model.states();
        let appearances = states.appearances(states.last(), 0);
        assert_eq!(*appearances, [Some((version, vec![1, 2])), Some((version, vec![2]))].into());
        assert!(states.may_be_known(states.last(), 1, true) && states.may_be_known(states.last(), 1, false));
        assert!(states.may_be_known(states.last(), 2, true) && !states.may_be_known(states.last(), 2, false));
        model.complete(Entry::ChartRemoval(1), seconds(4));
        let states = model.states();
        assert_eq!(*states.appearances(states.last(), 0), [Some((version, vec![2]))].into());
        assert!(!states.may_be_known(states.last(), 1, true));
    }

    #[test]
    fn replaced_file_is_allowed_from_the_start_of_its_command() {
        let mut model = Model::new();
        model.begin_mark(Entry::RoxFile(1), true, seconds(3));
        model.complete(Entry::RoxFile(1), seconds(4));
        let states = model.states();
        let files = |moment| {
            let state = &states.within(seconds(moment), seconds(moment))[0];
            [false, true].map(|replaced| state.may_have_file(1, replaced))
        };
        assert_eq!([files(2), files(3), files(4)], [[true, false], [true, true], [false, true]]);
    }
}
