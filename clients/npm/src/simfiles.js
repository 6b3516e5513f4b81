// Reads the charts of simfiles (.sm and .ssc) as StepMania 5 loads them.
//
// Citations are of itgmania 5d4f9dcb. The game reads bytes. What it compares with is ASCII, which is the same
// in a text that is decoded as UTF-8, whatever its encoding is.

import { explained, microseconds, refuse, single, trim, trimEnd } from "./note_hash.js";
import { Timing, addBpmsAndStops, both, rowOf } from "./simfile_timing.js";

/** Limits that real files are far below: they have a few thousand tags, and up to about 30 charts. */
const MAX_TAGS = 500_000;
const MAX_CHARTS = 300;
const MAX_CHANGES = 500_000;
/** Mines and rolls included. */
const MAX_NOTES = 500_000;
const MAX_TIME_US = 4e15;
/** The index refuses others, although the hash does not depend on the offset. In seconds. */
const MAX_OFFSET = 1e9;

/** Song.h, STEPFILE_VERSION_NUMBER, and NotesLoaderSSC.h, VERSION_SPLIT_TIMING. */
const VERSION = single(0.83);
const VERSION_SPLIT_TIMING = single(0.7);

/** GameManager.cpp, g_StepsTypeInfos: the step types of 4 to 7 columns that are played. */
const COLUMNS = {
  "dance-single": 4,
  "dance-solo": 6,
  "pump-single": 5,
  "pump-halfdouble": 6,
  "kb7-single": 7,
  "ez2-single": 5,
  "ez2-real": 7,
  "para-single": 5,
  "bm-single5": 6,
  "bm-versus5": 6,
  "maniax-single": 4,
  "techno-single4": 4,
  "techno-single5": 5,
  "pnm-five": 5,
  "kickbox-human": 4,
  "kickbox-quadarm": 4,
  "kickbox-insect": 6,
};
/** NotesLoaderSM.cpp, LoadFromTokens. */
const OLD_NAMES = { "ez2-single-hard": "ez2-single", para: "para-single" };

/**
 * The charts of a simfile, each with its notes and what it is called, or why it has no hash. The game reads no
 * UTF-16.
 *
 * @param {string} text
 * @param {boolean} isSsc
 */
export function readSimfile(text, isSsc) {
  const song = { TITLE: "", SUBTITLE: "", ARTIST: "", CREDIT: "" };
  const charts = isSsc ? readSsc(text, song) : readSm(text, song);
  if (charts.length === 0) refuse("no charts");
  const [title, artist] = [`${song.TITLE.trim()} ${song.SUBTITLE.trim()}`, song.ARTIST.trim()];
  return charts.map(({ credit, difficulty, ...chart }) => {
    const texts = { title, artist, creator: credit.trim() || song.CREDIT.trim(), difficulty };
    return { ...texts, chart: `${chart.stepsType} ${difficulty}`, ...explained(() => readChart(chart)) };
  });
}

function readChart({ stepsType, text, timing }) {
  if (!Object.hasOwn(COLUMNS, stepsType)) refuse(`step type ${stepsType.slice(0, 40)}`);
  const columns = COLUMNS[stepsType];
  timing.finish();
  const notes = readNotes(text, columns).filter(({ row }) => timing.isJudged(row));
  const rows = new Set(notes.flatMap(({ row, end }) => (end === undefined ? [row] : [row, end])));
  const ascending = [...rows].sort((a, b) => a - b);
  const times = timing.secondsOf(ascending).map((seconds) => microseconds(seconds, 1e6));
  if (!times.every((time) => Math.abs(time) <= MAX_TIME_US)) refuse("time out of range");
  const timeOf = new Map(ascending.map((row, index) => [row, times[index]]));
  const timed = notes.map(({ row, column, end }) => ({ startUs: timeOf.get(row), column, endUs: timeOf.get(end) }));
  return { keys: columns, notes: timed };
}

// --- Tags ---

/** How many parameters of a tag are read: those of `#NOTES` in an .sm file. */
const MAX_PARAMETERS = 7;

/** MsdFile.cpp, ReadBuf: the tags `#NAME:parameter:parameter;` of a file, each as its first parameters. */
function* readTags(text) {
  const ordinary = /[^#:;/\\]+/y;
  let [count, tag, parameter, isLineStart] = [0, undefined, "", true];
  const finishParameter = () => {
    if (tag.length < MAX_PARAMETERS) tag.push(parameter);
    [parameter, isLineStart] = ["", true];
  };
  for (let index = 0; index < text.length; ) {
    const character = text[index];
    if (character === "/" && text[index + 1] === "/") {
      index = text.indexOf("\n", index);
      if (index < 0) break;
    } else if (character === "#" && (!tag || isLineStart)) {
      parameter = trimEnd(parameter, (one) => /[\r\n\t ]/.test(one));
      if (tag) finishParameter();
      if (tag) yield tag;
      tag = [];
      count += 1;
      if (count > MAX_TAGS) refuse("too many tags");
      index += 1;
    } else if (!tag) {
      index += character === "\\" ? 2 : 1;
    } else if (character === ":" || character === ";") {
      finishParameter();
      if (character === ";") yield tag;
      if (character === ";") tag = undefined;
      index += 1;
    } else {
      if (character === "\\") index += 1;
      ordinary.lastIndex = index;
      const run = ordinary.exec(text)?.[0] ?? text[index] ?? "";
      parameter += run;
      isLineStart = startsLine(run, isLineStart);
      index += run.length;
    }
  }
  if (!tag) return;
  finishParameter();
  yield tag;
}

/** Whether only blanks are before what follows a text, in its line. */
function startsLine(text, isLineStart) {
  const end = Math.max(text.lastIndexOf("\n"), text.lastIndexOf("\r"));
  return (end >= 0 || isLineStart) && trim(text.slice(end + 1), (one) => /[ \t]/.test(one)) === "";
}

/** RageUtil.cpp, Trim, whose `strchr` also finds the end of a text. */
const trimBlanks = (text) => trim(text, (character) => "\r\n\t \0".includes(character));

/** RageUtil.cpp, MakeUpper and MakeLower, as far as names have other letters. */
const upper = (text) => text.replace(/[a-z]+/g, (letters) => letters.toUpperCase());
const lower = (text) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

// --- Numbers ---

/** RageUtil.cpp, StringToFloat: `strtof`, and 0 for what is not finite. Hexadecimal numbers are refused. */
function number(text) {
  if (/^[\t-\r ]*[+-]?0x\.?[\da-f]/i.test(text)) refuse("a hexadecimal number");
  const [, digits] = /^[\t-\r ]*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)/i.exec(text) ?? [];
  const value = Number(digits ?? 0);
  return Number.isFinite(single(value)) ? value : 0;
}

/** RageUtil.cpp, StringToInt: `stoi`, and 0 for what is none. */
function integer(text) {
  const value = Number(/^[\t-\r ]*([+-]?\d+)/.exec(text)?.[1] ?? 0);
  return Math.abs(value) < 2 ** 31 ? value : 0;
}

/** NotesLoaderSM.cpp, RowToBeat: rows, which end with an R, are divided by the -1 that stands for "no rows". */
function smBeat(text) {
  const withRows = trim(text, (one) => /[r\0]/.test(one));
  const beat = trim(withRows, (one) => /[R\0]/.test(one));
  return beat === text ? single(number(text)) : -single(number(beat));
}

const sscBeat = (text) => single(number(text));

/** RageUtil.cpp, split: the entries `a=b=…` of a parameter, without empty ones. */
function entriesOf(parameter) {
  const entries = parameter.split(",", MAX_CHANGES + 1);
  if (entries.length > MAX_CHANGES) refuse("too many timing changes");
  return entries.map((entry) => entry.split("=").filter(Boolean)).filter(({ length }) => length > 0);
}

// --- .sm ---

/** NotesLoaderSM.cpp, LoadFromSimfile. */
function readSm(text, song) {
  const [timing, charts] = [new Timing(), []];
  let [bpms, stops] = [[], []];
  for (const [tag, value = "", ...others] of readTags(text)) {
    const name = upper(tag);
    if (name === "BPMS") bpms = smChanges(value);
    else if (name === "STOPS" || name === "FREEZES") stops = smChanges(value);
    else if (name === "DELAYS") addChanges(timing, name, value);
    else if (name === "OFFSET") checkOffset(value);
    else if (Object.hasOwn(song, name)) song[name] = value;
    else if (/^NOTES2?$/.test(name) && others.length === 5) add(charts, smChart(value, others, timing));
  }
  addBpmsAndStops(timing, bpms, stops);
  return charts;
}

/** NotesLoaderSM.cpp, ParseBPMs and ParseStops. */
function smChanges(parameter) {
  const pairs = entriesOf(parameter).filter(({ length }) => length === 2);
  const changes = pairs.map(([beat, value]) => [smBeat(beat), both(number(value))]);
  return changes.filter(([, value]) => value.single !== 0);
}

/** NotesLoaderSM.cpp, LoadFromTokens. */
function smChart(stepsType, [description, difficulty, , , notes], timing) {
  const type = trimBlanks(stepsType);
  const name = Object.hasOwn(OLD_NAMES, type) ? OLD_NAMES[type] : lower(type);
  return { difficulty: chartName(difficulty, description), credit: "", stepsType: name, text: trimBlanks(notes), timing };
}

const checkOffset = (text) => Math.abs(number(text)) <= MAX_OFFSET || refuse("time out of range");

function add(charts, chart) {
  charts.push(chart);
  if (charts.length > MAX_CHARTS) refuse("too many charts");
}

/** The difficulty, which is not the name of an edit. */
function chartName(difficulty, description) {
  const name = trimBlanks(difficulty);
  return (/^edit$/i.test(name) && trimBlanks(description)) || name;
}

// --- .ssc ---

/** NotesLoaderSSC.cpp, LoadFromSimfile. */
function readSsc(text, song) {
  const [songTiming, charts] = [new Timing(), []];
  let [version, chart] = [VERSION, undefined];
  for (const [tag, value = ""] of readTags(text)) {
    const name = upper(tag);
    if (name === "OFFSET") checkOffset(value);
    if (name === "VERSION") {
      version = single(number(value));
    } else if (chart && /^(?:NOTES2?|STEPFILENAME)$/.test(name)) {
      // Notes in another file are not read here.
      chart.notes = name === "STEPFILENAME" ? "" : value;
      chart = undefined;
    } else if (TIMING_TAGS.includes(name)) {
      // NotesLoaderSSC.cpp, SetStepsBPMs and others: charts had no timing of their own.
      if (!chart) addChanges(songTiming, name, value, version);
      else if (version >= VERSION_SPLIT_TIMING) addChanges(chart.timing, name, value, version);
    } else if (chart) {
      if (/^(?:STEPSTYPE|DESCRIPTION|DIFFICULTY|CREDIT)$/.test(name)) chart[name] = value;
    } else if (Object.hasOwn(song, name)) {
      song[name] = value;
    } else if (name === "NOTEDATA") {
      chart = { timing: new Timing() };
      add(charts, chart);
    }
  }
  // The last one has no notes.
  if (chart) charts.pop();
  return charts.map((own) => sscChart(own, songTiming));
}

/** Steps.h, GetTimingData: a chart has all timing of its own, or none. */
function sscChart({ STEPSTYPE = "", DESCRIPTION = "", DIFFICULTY = "", CREDIT = "", notes = "", timing }, songTiming) {
  const used = timing.isEmpty ? songTiming : timing.copy();
  const difficulty = chartName(DIFFICULTY, DESCRIPTION);
  return { difficulty, credit: CREDIT, stepsType: lower(STEPSTYPE), text: notes, timing: used };
}

// --- Timing changes ---

/** How many parts an entry has: exactly 2, or as many or more. */
const MIN_PARTS = { COMBOS: 2, SCROLLS: 2, TIMESIGNATURES: 3, SPEEDS: 3 };
const OTHER_TAGS = ["LABELS", "TICKCOUNTS", ...Object.keys(MIN_PARTS)];
const TIMING_TAGS = ["BPMS", "STOPS", "DELAYS", "WARPS", "FAKES", ...OTHER_TAGS];

/** NotesLoaderSSC.cpp, ProcessBPMs and others, and NotesLoaderSM.cpp, ProcessDelays and others. */
function addChanges(timing, name, parameter, version) {
  const least = MIN_PARTS[name];
  for (const parts of entriesOf(parameter)) {
    if (least ? parts.length >= least : parts.length === 2) addChange(timing, name, parts, version);
  }
}

function addChange(timing, name, parts, version) {
  const isSm = /^(?:DELAYS|FAKES|TIMESIGNATURES|TICKCOUNTS|SPEEDS)$/.test(name);
  const beat = (isSm ? smBeat : sscBeat)(parts[0]);
  if (OTHER_TAGS.includes(name)) {
    if (isOther(name, beat, parts)) timing.hasOther = true;
    return;
  }
  const value = both(number(parts[1]));
  const isPositive = value.single > 0;
  if (name === "BPMS" && beat >= 0 && isPositive) timing.addBpm(beat, value);
  else if (name === "STOPS" && beat >= 0 && isPositive) timing.addStop(beat, value);
  else if (name === "DELAYS" && isPositive) timing.addDelay(beat, value);
  else if (name === "FAKES" && isPositive) timing.addFake(beat, value.single);
  else if (name === "WARPS") addWarp(timing, beat, value.single, version);
}

/** NotesLoaderSSC.cpp, ProcessWarps: in old files the value of a warp is where it ends. */
function addWarp(timing, beat, value, version) {
  if (version < VERSION_SPLIT_TIMING && value > beat) timing.addWarp(beat, single(value - beat));
  else if (value > 0) timing.addWarp(beat, value);
}

/** Whether the game has a change that moves no note: with it, a chart has timing of its own. */
function isOther(name, beat, parts) {
  if (name === "TICKCOUNTS" || name === "COMBOS") return true;
  if (beat < 0) return false;
  if (name === "TIMESIGNATURES") return integer(parts[1]) >= 1 && integer(parts[2]) >= 1;
  return name !== "SPEEDS" || number(parts[2]) >= 0;
}

// --- Notes ---

/**
 * NoteDataUtil.cpp, LoadFromSMNoteDataString: the taps and long notes of a chart, in the order of their heads
 * in each column. An end that is undefined is that of a tap.
 *
 * @param {string} text the parameter of the tag `#NOTES` with the measures
 * @param {number} columns
 * @returns {{row: number, column: number, end?: number}[]}
 */
function readNotes(text, columns) {
  // The game reads bytes, and so others in place of these.
  if (/[^\0-\x7f]/.test(text)) refuse("notes with other characters than ASCII");
  const tracks = Array.from({ length: columns }, () => []);
  let count = 0;
  let measure = 0;
  for (const lines of withoutComments(withoutAttributes(text)).split(",")) {
    // LoadFromSMNoteDataStringWithPlayer: nothing between two commas is no measure.
    if (lines === "") continue;
    const cells = lines.split("\n").map(trimBlanks).filter(Boolean);
    cells.forEach((line, index) => {
      const row = rowOf(single(single(measure) + single(index / cells.length)) * 4);
      count += readLine(line, row, tracks);
    });
    if (count > MAX_NOTES) refuse(`more than ${MAX_NOTES} notes`);
    measure += 1;
  }
  return tracks.flatMap((track, column) => track.flatMap((note) => played(note, column)));
}

/** NoteDataUtil.cpp, LoadFromSMNoteDataString: comments that were escaped. */
const withoutComments = (text) => (text.includes("//") ? text.replace(/\/\/[^\n]*\n?/g, "") : text);

/** Reads the cells of a line, and returns how many of them are notes of any kind. */
function readLine(line, row, tracks) {
  let [count, index] = [0, 0];
  for (let column = 0; column < tracks.length && index < line.length; column += 1) {
    const cell = line[index];
    index += 1;
    if (cell === "3") {
      close(tracks[column], row);
    } else if ("124LMFK".includes(cell)) {
      put(tracks[column], row, cell);
      count += 1;
    }
    // The number of a keysound.
    if (line[index] === "[") index = line.indexOf("]", index) + 1 || line.length;
  }
  return count;
}

/** NoteData.cpp, SetTapNote. What is automatically played (K) does not count, but replaces. */
function put(track, row, cell) {
  if (track.at(-1)?.row === row) track.pop();
  if (cell !== "K") track.push({ row, cell, end: undefined });
}

/** NoteData.cpp, IsHoldNoteAtRow: ends the note before a row, if it is the head of a long note or a roll. */
function close(track, row) {
  const head = track.at(-1)?.row === row ? track.at(-2) : track.at(-1);
  if (/[24]/.test(head?.cell) && !(head.end < row)) head.end = row;
}

function played({ row, cell, end }, column) {
  return /[1L]/.test(cell) || (cell === "2" && end !== undefined) ? [{ row, column, end }] : [];
}

// --- StepF2 ---

/** A cell with attributes, of at most 32 characters. */
const CELL = /\{([^}]{0,30})\}/g;

/**
 * The one exception to the rules of the game: cells with attributes, `{note|attribute|fake|reserved}`, as
 * StepF2 writes them (https://github.com/stepmania/stepmania/wiki/Note-Types#stepf2-notes), in a chart that has
 * one.
 */
function withoutAttributes(text) {
  let hasCells = false;
  const plain = text.replace(CELL, (cell, content) => {
    const parts = content.split("|");
    if (parts.length < 4) return cell;
    hasCells = true;
    return plainCell(parts);
  });
  if (hasCells && plain.includes("{")) refuse("notes with unknown attributes");
  return hasCells ? plain.replace(/[SVH]/g, "1") : text;
}

/** The plain cell with the meaning of one with attributes: a fake note is not judged, except for an end. */
function plainCell([note, attribute, fake, ...reserved]) {
  const isKnown = reserved.length === 1 && !/[\n,[]/.test(attribute + reserved);
  if (isKnown && /^[03]$/.test(note) && /^[01]$/.test(fake)) return note;
  if (isKnown && fake === "1" && /^[124MLFSVHXYZxyz]$/.test(note)) return "F";
  if (isKnown && fake === "0" && /^[124MLFSVH]$/.test(note)) return note;
  return refuse("notes with unknown attributes");
}
