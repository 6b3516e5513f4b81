// Reads the charts of simfiles (.sm and .ssc) in the browser.
//
// This follows crates/chartfile and its decoder to the letter, so that the times of notes are the same to the
// microsecond, and refuses what it does not know: negative BPMs and stops of .sm files, and cells in braces.

import { explained, refuse } from "./note_hash.js";

const MAX_PARAMETERS = 500_000;
const MAX_CHARTS = 300;
const MAX_STEPS = 100_000_000;
const MAX_TIME_US = 4e15;
const ROWS_PER_BEAT = 48;
/** The tolerance of beats that are computed from fractions of a measure. */
const EPSILON = 1e-6;
const COLUMNS = {
  "dance-single": 4,
  "pump-single": 5,
  "dance-solo": 6,
  "pump-halfdouble": 6,
  "kb7-single": 7,
  "dance-double": 8,
};

const SPACE = String.raw`[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]`;
const IS_SPACE = new RegExp(SPACE);
const SPACES_AROUND = new RegExp(`^${SPACE}+|${SPACE}+$`, "g");

/** Trims what Unicode calls white space, which is not what String.trim does outside of ASCII. */
export function trim(text) {
  return /[^\0-\x7f]/.test(text) ? text.replace(SPACES_AROUND, "") : text.trim();
}

// The grammar of numbers in Rust, without infinity and NaN.
export const FLOAT = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

/** A number of the grammar of Rust; `undefined` for other texts. */
function float(text) {
  if (FLOAT.test(text)) return Number(text);
  return /^[+-]?(?:inf|infinity|nan)$/i.test(text) ? NaN : undefined;
}

/** Rounds half away from zero. */
const round = (number) => Math.sign(number) * Math.round(Math.abs(number));

/**
 * The charts of a simfile, each with its name and what the hash needs, or why it has none.
 *
 * @param {string} format `sm` or `ssc`
 * @param {string} text without byte order mark
 */
export function readSimfile(format, text) {
  if (text.replace(/[^#:]/g, "").length > MAX_PARAMETERS) refuse("too many tags");
  const tags = tokenize(text);
  const isSm = format === "sm";
  const blocks = isSm ? smBlocks(tags) : sscBlocks(tags);
  if (blocks.length === 0) refuse("no charts");
  const counts = ["BPMS", "STOPS", "DELAYS", "WARPS", "FAKES"].map((name) =>
    Math.max(0, ...tags.filter((tag) => tag.name === name).map((tag) => tag.text.split("=").length - 1)));
  const entries = counts.reduce((sum, count) => sum + count);
  if (blocks.length > MAX_CHARTS || entries * (blocks.length + 1) * 20 > MAX_STEPS) refuse("too many charts");
  const song = isSm ? tags : tags.slice(0, tags.findIndex((tag) => tag.name === "NOTEDATA"));
  return blocks.map((block) => {
    const difficulty = find(block, "DIFFICULTY")?.text ?? "";
    const description = /^edit$/i.test(difficulty) && find(block, "DESCRIPTION")?.text;
    return { name: description || difficulty, ...explained(() => readChart(block, song, isSm)) };
  });
}

/** The tags `#NAME:value:value;` of a text, as StepMania reads them. */
function tokenize(text) {
  const tags = [];
  let [current, isName, isLineStart] = [undefined, false, true];
  let buffer = "";
  const finish = (isOpen) => {
    if (!current) return;
    if (isOpen && isName) current.name = buffer;
    else if (isOpen && buffer !== "") current.values.push(buffer);
    const name = trim(current.name).replace(/[a-z]/g, (letter) => letter.toUpperCase());
    const values = current.values.map(trim);
    if (name !== "") tags.push({ name, values, text: values.join(":") });
    [current, buffer] = [undefined, ""];
  };
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (character === "/" && text[index + 1] === "/") {
      const end = text.indexOf("\n", index);
      index = end < 0 ? text.length : end - 1;
      continue;
    }
    if (character === "#" && (!current || isLineStart)) {
      finish(true);
      [current, isName, isLineStart] = [{ name: "", values: [] }, true, false];
      continue;
    }
    if (current && character === "\\") {
      buffer += text[(index += 1)] ?? "";
    } else if (current && (character === ":" || character === ";")) {
      if (isName) current.name = buffer;
      else current.values.push(buffer);
      [buffer, isName] = ["", false];
      if (character === ";") finish(false);
    } else if (current) {
      buffer += character;
    }
    isLineStart = character === "\n" || (isLineStart && IS_SPACE.test(character));
  }
  finish(true);
  return tags;
}

/** The tags that the charts of an .sm file would have in an .ssc file. */
function smBlocks(tags) {
  return tags.filter((tag) => tag.name === "NOTES").map(({ values }) => {
    if (values.length < 5) return [];
    const [stepsType, description, difficulty] = values;
    const measures = values.slice(5);
    const tag = (name, values) => ({ name, values, text: values.join(":") });
    return [
      tag("STEPSTYPE", [stepsType]),
      tag("DESCRIPTION", [description]),
      tag("DIFFICULTY", [difficulty]),
      tag("NOTES", measures),
    ];
  });
}

function sscBlocks(tags) {
  const blocks = [];
  for (const tag of tags) {
    if (tag.name === "NOTEDATA") blocks.push([]);
    else blocks.at(-1)?.push(tag);
  }
  return blocks;
}

/** The last tag with a name, which replaces earlier ones. */
const find = (tags, name) => tags.findLast((tag) => tag.name === name);

function readChart(block, song, isSm) {
  const stepsType = (find(block, "STEPSTYPE")?.text ?? "").replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  const columns = Object.hasOwn(COLUMNS, stepsType) ? COLUMNS[stepsType] : refuse(`step type ${stepsType.slice(0, 40)}`);
  const notes = block.findLast(({ name, text }) => (name === "NOTES" || name === "NOTES2") && text !== "");
  if (!notes) refuse("no notes");
  const timing = timingOf(block, song, isSm);
  const rows = readRows(notes.values.length === 1 ? withWidths(notes.text, columns) : notes.text, columns);
  const offset = float(find(block, "OFFSET")?.values[0] ?? find(song, "OFFSET")?.values[0] ?? "0") || 0;
  const timeline = new Timeline(timing);
  if (Math.max(Math.abs(offset), timeline.end) * 1e6 > MAX_TIME_US) refuse("time out of range");
  return { keys: columns, notes: connected(place(rows, timeline)), hasBpm: true, timingPoints: timing.BPMS.length };
}

// --- Timing ---

/** The entries `beat=value` of a tag, without those that are no numbers; `undefined` without the tag. */
function entriesOf(tags, name, isSm) {
  const tag = find(tags, name);
  if (!tag) return undefined;
  const entries = [];
  for (const pair of tag.text.split(",")) {
    const at = pair.indexOf("=");
    if (at < 0) continue;
    const entry = [float(trim(pair.slice(0, at))), float(trim(pair.slice(at + 1)))];
    if (!entry.includes(undefined)) entries.push(entry);
  }
  // The games do not read these as they are written: .ssc files have warps of their own.
  const isIgnored = { BPMS: !isSm && ((bpm) => bpm <= 0), STOPS: !isSm && ((stop) => stop < 0), DELAYS: (delay) => delay < 0 }[name];
  const read = isIgnored ? entries.filter(([, value]) => !isIgnored(value)) : entries;
  return name === "BPMS" && read.length === 0 ? entries : read;
}

/** The timing of the song with that of the chart over it. A chart with BPMs of its own has all timing of its own. */
function timingOf(block, song, isSm) {
  const isSplit = entriesOf(block, "BPMS", isSm)?.length > 0;
  const timing = {};
  for (const name of ["BPMS", "STOPS", "DELAYS", "WARPS", "FAKES"]) {
    const own = entriesOf(block, name, isSm);
    timing[name] = own && (isSplit || own.length > 0) ? own : entriesOf(song, name, isSm) ?? [];
    for (const [beat, value] of timing[name]) {
      const isRead = Number.isFinite(beat) && Number.isFinite(value) && (name === "BPMS" ? value > 0 : value >= 0);
      if (!isRead) refuse(`${name} with ${beat}=${value}`);
    }
  }
  return timing.BPMS.length > 0 ? timing : refuse("no BPM");
}

// The order of the events of one beat: a warp ends before the next one, the BPM changes before a stop.
const RANKS = { warpEnd: 0, bpm: 1, warp: 2, stop: 3, delay: 4 };

/** When the beats of a chart are, in seconds. */
class Timeline {
  constructor({ BPMS, STOPS, DELAYS, WARPS, FAKES }) {
    const bpms = [...BPMS].sort((a, b) => a[0] - b[0]);
    const event = (kind) => ([beat, value]) => ({ beat: Math.max(beat, 0), kind, value });
    const positive = (entries) => entries.filter(([, value]) => value > 0);
    const events = [
      ...bpms.map(event("bpm")),
      ...positive(STOPS).map(event("stop")),
      ...positive(DELAYS).map(event("delay")),
      ...positive(WARPS).flatMap(([beat, length]) => [event("warp")([beat]), event("warpEnd")([beat + length])]),
    ].sort((a, b) => a.beat - b.beat || RANKS[a.kind] - RANKS[b.kind]);
    this.fakes = positive(FAKES).map(([beat, length]) => [beat, beat + length]);
    this.anchors = [{ beat: 0, note: 0, departure: 0, bpm: bpms[0][1], isWarped: false }];
    let [beat, seconds, bpm, warps] = [0, 0, bpms[0][1], 0];
    for (let index = 0; index < events.length; ) {
      const at = events[index].beat;
      if (warps === 0) seconds += ((at - beat) * 60) / bpm;
      beat = at;
      let [delay, stop] = [0, 0];
      for (; index < events.length && events[index].beat === at; index += 1) {
        const { kind, value } = events[index];
        if (kind === "bpm") bpm = value;
        else if (kind === "warp") warps += 1;
        else if (kind === "warpEnd") warps = Math.max(0, warps - 1);
        else if (kind === "stop") stop += value;
        else delay += value;
      }
      const note = seconds + delay;
      seconds = note + stop;
      this.anchors.push({ beat, note, departure: seconds, bpm, isWarped: warps > 0 });
    }
    this.end = seconds;
  }

  /** The last event at or before a beat. */
  anchor(beat) {
    let [low, high] = [0, this.anchors.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.anchors[middle].beat <= beat + EPSILON) low = middle + 1;
      else high = middle;
    }
    return this.anchors[Math.max(0, low - 1)];
  }

  /** The time of a note on a beat in microseconds. */
  noteUs(beat) {
    const { beat: at, note, departure, bpm, isWarped } = this.anchor(beat);
    const isAt = Math.abs(beat - at) <= EPSILON;
    return round((isAt ? note : isWarped ? departure : departure + ((beat - at) * 60) / bpm) * 1e6);
  }

  /** Whether notes on a beat are played. */
  isPlayed(beat) {
    return !this.anchor(beat).isWarped && !this.fakes.some(([start, end]) => beat + EPSILON >= start && beat + EPSILON < end);
  }
}

// --- Notes ---

const widthOf = (row) => (/[^\0-\x7f]/.test(row) ? [...row].length : row.length);

/** The measures with rows of the right width, where less than half of the rows have another one, as the game plays them. */
function withWidths(measures, columns) {
  const isWrong = (row) => widthOf(row) !== columns;
  const rowsOf = (text) => text.split(/[,\n]/).map(trim).filter((row) => row !== "");
  if (measures.includes("{")) refuse("notes with attributes");
  if (!rowsOf(measures).some(isWrong)) return measures;
  const plain = measures.replace(/\[[^\],\n]*\]?/g, "");
  const rows = rowsOf(plain);
  if (2 * rows.filter(isWrong).length >= rows.length) return measures;
  const resized = (row) => [...row, ..."0".repeat(columns)].slice(0, columns).join("");
  return plain.split(/([,\n])/).map((part) => (/[^,\n]/.test(part) && trim(part) !== "" ? resized(trim(part)) : part)).join("");
}

/** The rows with notes or ends of notes in all measures with their beats, on rows of 1/48 beat. */
function readRows(measures, columns) {
  return measures.split(",").flatMap((block, measure) => {
    const rows = block.split("\n").map(trim).filter((row) => row !== "");
    if (rows.some((row) => widthOf(row) !== columns)) refuse(`a row with other columns in measure ${measure + 1}`);
    return rows.flatMap((row, index) => {
      if (!/[1-4Ll]/.test(row)) return [];
      const beat = measure * 4 + (index * 4) / rows.length;
      return { beat: round(beat * ROWS_PER_BEAT) / ROWS_PER_BEAT, cells: [...row] };
    });
  });
}

/** What is played, in time: taps, heads of long notes and rolls, and their ends. */
function place(rows, timeline) {
  const placed = [];
  const open = {};
  for (const { beat, cells } of rows) {
    const isPlayed = timeline.isPlayed(beat);
    const timeUs = timeline.noteUs(beat);
    cells.forEach((cell, column) => {
      if (cell === "2" || cell === "4") open[column] = isPlayed;
      // A long note is played if its head is.
      const isPlaced = cell === "3" ? open[column] : isPlayed && /[124Ll]/.test(cell);
      if (cell === "3") delete open[column];
      if (isPlaced) placed.push({ timeUs, column, cell });
    });
  }
  return placed.sort((a, b) => a.timeUs - b.timeUs || a.column - b.column);
}

/** The notes, without rolls and without long notes that have no end. */
function connected(placed) {
  const notes = [];
  const [holds, rolls] = [{}, {}];
  for (const { timeUs, column, cell } of placed) {
    if (cell === "2") (holds[column] ??= []).push(timeUs);
    else if (cell === "4") (rolls[column] ??= []).push(timeUs);
    else if (cell !== "3") notes.push({ startUs: timeUs, column, endUs: undefined });
    else if (holds[column]?.length) notes.push({ startUs: holds[column].shift(), column, endUs: timeUs });
    else rolls[column]?.shift();
  }
  return notes;
}
