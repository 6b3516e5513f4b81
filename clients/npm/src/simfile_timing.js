// The timing of a simfile as StepMania 5 has it: changes on rows of 1/48 beat, and when rows are hit.
//
// Citations are of itgmania 5d4f9dcb. What the game compares is in its single precision; times are in double
// precision, from row 0, so that a changed offset changes none.

import { refuse, roundToEven, single } from "./note_hash.js";

const ROWS_PER_BEAT = 48;
const DEFAULT_BPM = 60;
/** TimingSegments.cpp, TimingSegment::EPSILON: changes that differ less are one. */
const EPSILON = 1e-6;
/** NotesLoaderSM.h, FAST_BPM_WARP: the BPM above which no time passes. */
const FASTEST_BPM = 9_999_999;
/** Where a warp ends that has no end, in beats: after all rows of notes. */
const NEVER = 10_000_000;
/** NoteTypes.h, MAX_NOTE_ROW. Rows far beyond it are others in the game, which has them in 32 bits. */
const MAX_ROW = 2 ** 30;
/** The order of what is on one row (TimingData.cpp, FindEvent). The end of a warp is before all of it. */
const [BPM, DELAY, NOTE, STOP, WARP] = [0, 1, 2, 3, 4];
/** How many changes may be moved to insert others before them. */
const MAX_MOVED = 100_000_000;

/** A number that the game reads: in double precision, and as the game has it. */
export const both = (value) => ({ value, single: single(value) });

/** NoteTypes.h, BeatToNoteRow: the nearest row, ties to even. */
export function rowOf(beat) {
  const row = roundToEven(single(single(beat) * ROWS_PER_BEAT));
  return Math.abs(row) <= MAX_ROW ? row : refuse("a beat out of range");
}

/** NoteTypes.h, NoteRowToBeat. */
const beatOf = (row) => single(single(row) / ROWS_PER_BEAT);

const isEqual = (one, other) => Math.abs(single(one.single - other.single)) <= EPSILON;

/** TimingData.cpp, GetSegmentIndexAtRow: the last change at or before a row, or the first one. */
function indexAt(changes, row) {
  const last = changes.length - 1;
  for (let [low, high] = [0, last]; low <= high; ) {
    const middle = (low + high) >> 1;
    const isReached = changes[middle].row <= row;
    if ((middle === 0 || isReached) && (middle === last || row < changes[middle + 1].row)) return middle;
    if (isReached) low = middle + 1;
    else high = middle - 1;
  }
  return refuse("timing changes out of order");
}

const at = (changes, row) => changes.length > 0 && changes[indexAt(changes, row)];

/** TimingData.cpp, IsWarpAtRow and IsFakeAtRow: whether a row is in the last region before it. */
function isInside(regions, row) {
  const region = at(regions, row);
  if (!region) return false;
  const [start, beat] = [beatOf(region.row), beatOf(row)];
  return start <= beat && beat < single(start + beatOf(region.single));
}

const isOn = (changes, row) => at(changes, row)?.row === row;

const KINDS = ["bpms", "stops", "delays", "warps", "fakes"];

export class Timing {
  bpms = [];
  stops = [];
  delays = [];
  warps = [];
  fakes = [];
  /** Whether it has changes that move no note. */
  hasOther = false;
  #moved = 0;
  #events;

  /** TimingData.cpp, empty: whether it has no change of any kind. A change can also remove the last one. */
  get isEmpty() {
    return !this.hasOther && KINDS.every((kind) => this[kind].length === 0);
  }

  addBpm(beat, bpm) {
    // TimingSegments.h, BPMSegment: the game has beats per second.
    this.#add(this.bpms, { row: rowOf(beat), value: bpm.value, single: single(bpm.single / 60) });
  }

  addStop(beat, seconds) {
    this.#add(this.stops, { row: rowOf(beat), ...seconds });
  }

  addDelay(beat, seconds) {
    this.#add(this.delays, { row: rowOf(beat), ...seconds });
  }

  addWarp(beat, beats) {
    this.#add(this.warps, { row: rowOf(beat), single: rowOf(beats) });
  }

  addFake(beat, beats) {
    this.#add(this.fakes, { row: rowOf(beat), single: rowOf(beats) });
  }

  /** TimingData.cpp, AddSegment. */
  #add(changes, change) {
    if (changes.length === 0) {
      changes.push(change);
      return;
    }
    const index = indexAt(changes, change.row);
    const isSameRow = changes[index].row === change.row;
    const isBpm = changes === this.bpms;
    if (!isBpm && !(change.single > 0)) {
      if (isSameRow) changes.splice(index, 1);
    } else if (isBpm && this.#merge(change, index, isSameRow)) {
      // Another change has this BPM.
    } else if (isSameRow) {
      if (!isEqual(changes[index], change)) changes[index] = change;
    } else {
      const place = change.row > changes[index].row ? index + 1 : index;
      this.#moved += changes.length - place;
      if (this.#moved > MAX_MOVED) refuse("timing changes out of order");
      changes.splice(place, 0, change);
    }
  }

  /** Leaves out the BPM of the change before, or lets the next change begin here; false if it is neither. */
  #merge(change, index, isSameRow) {
    const replaces = isSameRow && index > 0;
    const isAsBefore = isEqual(this.bpms[replaces ? index - 1 : index], change);
    const next = this.bpms[index + 1];
    if (next && isEqual(next, change)) {
      if (isAsBefore) this.bpms.splice(index + 1, 1);
      else next.row = change.row;
    } else if (!isAsBefore) {
      return false;
    }
    if (replaces) this.bpms.splice(index, 1);
    return true;
  }

  /** TimingData.cpp, Copy: without warps and fakes of no row, except for the first ones. */
  copy() {
    const copy = new Timing();
    for (const kind of KINDS) for (const change of this[kind]) copy.#add(copy[kind], { ...change });
    return copy;
  }

  /** TimingData.cpp, TidyUpData. Refuses BPMs out of the order of their rows: the game misreads them. */
  finish() {
    if (this.#events) return;
    if (this.bpms.length === 0) this.addBpm(0, both(DEFAULT_BPM));
    this.bpms[0].row = 0;
    // Of a warp without end that nothing is before.
    if (this.bpms[0].value < 0) refuse("time that runs backwards");
    const isBeforeLast = ({ row }, index) => index > 0 && row <= this.bpms[index - 1].row;
    if (this.bpms.some(isBeforeLast)) refuse("BPMs out of order");
    const eventsOf = (order, changes) => changes.map((change) => ({ order, ...change }));
    const pauses = [...eventsOf(DELAY, this.delays), ...eventsOf(STOP, this.stops)];
    const events = [...eventsOf(BPM, this.bpms), ...pauses, ...eventsOf(WARP, this.warps)];
    this.#events = events.sort((a, b) => a.row - b.row || a.order - b.order);
  }

  /** Whether notes on a row are judged: rows in a warp are if they have a stop or a delay. */
  isJudged(row) {
    const isWarped = isInside(this.warps, row) && !isOn(this.stops, row) && !isOn(this.delays, row);
    return !isWarped && !isInside(this.fakes, row);
  }

  /** TimingData.cpp, GetElapsedTimeInternal: the seconds of ascending rows, and last of the last change. */
  secondsOf(rows) {
    let [index, seconds, from, bpm, isWarping, warpEnd] = [0, 0, 0, this.bpms[0].value, false, 0];
    const elapsed = (row) => {
      if (isWarping && rowOf(warpEnd) <= row) [from, isWarping] = [rowOf(warpEnd), false];
      return isWarping ? seconds : seconds + (((row - from) / ROWS_PER_BEAT) * 60) / bpm;
    };
    const isBefore = (event, row) => event.row < row || (event.row === row && event.order < NOTE);
    const pass = (event) => {
      seconds = elapsed(event.row);
      from = event.row;
      if (event.order === BPM) bpm = event.value;
      else if (event.order !== WARP) seconds += event.value;
      else [isWarping, warpEnd] = [true, Math.max(warpEnd, single(beatOf(event.single) + beatOf(event.row)))];
    };
    const events = this.#events;
    const times = rows.map((row) => {
      for (; index < events.length && isBefore(events[index], row); index += 1) pass(events[index]);
      return elapsed(row);
    });
    for (; index < events.length; index += 1) pass(events[index]);
    return [...times, seconds];
  }
}

const isWarpingAt = (bpm) => bpm.single < 0 || bpm.single > FASTEST_BPM;

/**
 * NotesLoaderSM.cpp, ProcessBPMsAndStops: the BPMs and stops of an .sm file, whose negative values are warps.
 * Each is a pair of beat and value.
 */
export function addBpmsAndStops(timing, bpms, stops) {
  const byBeat = ([one], [other]) => one - other;
  const changes = bpms.sort(byBeat).filter(([beat]) => beat > 0);
  const pauses = stops.sort(byBeat).filter(([beat]) => beat >= 0);
  const [, first] = bpms.findLast(([beat]) => beat <= 0) ?? bpms[0] ?? [0, both(DEFAULT_BPM)];
  // The game reads the BPM after the next one, if there is one. The next one is what was meant.
  if (changes.length === bpms.length && isWarpingAt(first)) refuse("a negative BPM without one before it");
  if (!isWarpingAt(first)) timing.addBpm(0, first);
  const state = new SmTiming(timing, first);
  for (let [bpm, stop] = [0, 0]; bpm < changes.length || stop < pauses.length; ) {
    const isBpm = stop === pauses.length || changes[bpm]?.[0] <= pauses[stop][0];
    const [beat, value] = isBpm ? changes[bpm++] : pauses[stop++];
    state.passUntil(beat);
    if (isBpm) state.changeBpm(beat, value);
    else state.stop(beat, value);
  }
  state.end();
}

/** What the timing of an .sm file is at a beat. */
class SmTiming {
  #timing;
  #bpm;
  #beat = 0;
  /** The beat where the warp begins, or -1 outside of warps. */
  #warp = -1;
  #bpmBefore;
  /** The time that a warp has to make up for is negative. */
  #time = 0;

  constructor(timing, bpm) {
    [this.#timing, this.#bpm] = [timing, bpm];
  }

  passUntil(beat) {
    const { single: bpm } = this.#bpm;
    if (bpm <= FASTEST_BPM) {
      this.#time = single(this.#time + single(single(single(beat - this.#beat) * 60) / bpm));
      if (this.#warp >= 0 && bpm > 0 && this.#time > 0) this.#endWarp(this.#beatBefore(beat));
    }
    this.#beat = beat;
  }

  /** The beat where the time is made up for. */
  #beatBefore(beat) {
    return single(beat - single(single(this.#time * this.#bpm.single) / 60));
  }

  #startWarp(beat, time) {
    [this.#warp, this.#bpmBefore, this.#time] = [beat, this.#bpm, time];
  }

  #endWarp(end) {
    this.#timing.addWarp(this.#warp, single(end - this.#warp));
    if (this.#bpm.single !== this.#bpmBefore.single) this.#timing.addBpm(this.#warp, this.#bpm);
    this.#warp = -1;
  }

  changeBpm(beat, bpm) {
    if (this.#warp < 0 && isWarpingAt(bpm)) this.#startWarp(beat, 0);
    else if (this.#warp < 0) this.#timing.addBpm(beat, bpm);
    this.#bpm = bpm;
  }

  stop(beat, seconds) {
    if (this.#warp < 0 && seconds.single < 0) return this.#startWarp(beat, seconds.single);
    if (this.#warp < 0) return this.#timing.addStop(beat, seconds);
    this.#time = single(this.#time + seconds.single);
    if (!(seconds.single > 0 && this.#time > 0)) return;
    // The stop is longer than the time to make up for.
    this.#timing.addStop(beat, both(this.#time));
    if (!isWarpingAt(this.#bpm)) return this.#endWarp(beat);
    this.#timing.addWarp(this.#warp, single(beat - this.#warp));
    [this.#warp, this.#time] = [beat, 0];
  }

  /** Ends the warp after the last change, if it has an end. */
  end() {
    if (this.#warp >= 0) this.#endWarp(isWarpingAt(this.#bpm) ? single(NEVER) : this.#beatBefore(this.#beat));
  }
}
