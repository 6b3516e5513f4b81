// Computes the note hashes, version 1, of chart files in the browser.
//
// A chart file gives the same hash as in the index, or a reason why it cannot be told, never another hash. So
// this follows crates/chartfile to the letter, and refuses what it does not know: YAML is read only in the form
// in which the game and its tools write it.

import { explained, hashTimedNotes, refuse } from "./note_hash.js";
import { FLOAT, readSimfile, trim } from "./simfiles.js";

/** The maximum size of a chart file in bytes, as in the index. */
export const MAX_FILE_BYTES = 16 * 1024 * 1024;

const MAX_NOTES = 500_000;
const MAX_TIMING_POINTS = 500_000;
const MAX_YAML_NODES = 3_000_000;
const MAX_OSU_TIME_MS = 2 ** 30;
const MAX_QUA_TIME_MS = 4e12;

const READERS = {
  osu: (text) => [readOsu(text)],
  qua: (text) => [readQua(text)],
  sm: (text) => readSimfile("sm", text),
  ssc: (text) => readSimfile("ssc", text),
};

/** Whether the index reads files with this name: not those that operating systems create. */
export function isChartFile(path) {
  const parts = path.split(/[/\\]/);
  return !parts.includes("__MACOSX") && /^[^.].*\.(?:osu|qua|sm|ssc)$/is.test(parts.at(-1));
}

/**
 * The note hashes of the charts of a file, by the extension of its name: each once, or one reason why there is
 * none. A chart of a simfile has a name, its difficulty.
 *
 * @param {string} name the file name
 * @param {Uint8Array} bytes the content
 * @returns {({hash: string, keys: number, variant?: string, name?: string} | {cannotTell: string})[]}
 */
export function hashChartFile(name, bytes) {
  const read = READERS[name.slice(name.lastIndexOf(".") + 1).toLowerCase()];
  const charts = explained(() => {
    if (!read) refuse("only .osu, .qua, .sm and .ssc files can be read here");
    if (bytes.length > MAX_FILE_BYTES) refuse(`larger than ${MAX_FILE_BYTES} bytes`);
    return hashBytes(read, bytes);
  });
  if (charts.cannotTell) return [charts];
  const told = new Map(charts.filter(({ hash }) => hash).map((chart) => [chart.hash, chart]).reverse());
  return told.size > 0 ? [...told.values()].reverse() : charts.slice(0, 1);
}

/** Reads the bytes as UTF-8, which decides on the notes whatever the encoding is, or as the byte order mark says. */
function hashBytes(read, bytes) {
  const hash = (text) => read(text.replace(/^\ufeff+/, "")).map((chart) =>
    chart.cannotTell ? chart : { name: chart.name, ...explained(() => hashNotes(chart)) });
  const asUtf8 = explained(() => hash(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)));
  const mark = bytes.length < 2 ? 0 : bytes[0] * 256 + bytes[1];
  const encoding = { 0xfffe: "utf-16le", 0xfeff: "utf-16be" }[mark];
  const isRead = !asUtf8.cannotTell && asUtf8.some(({ hash }) => hash);
  if (!isRead && encoding) return hash(new TextDecoder(encoding, { ignoreBOM: true }).decode(bytes.subarray(2)));
  return asUtf8.cannotTell ? refuse(asUtf8.cannotTell) : asUtf8;
}

/** The hash of the notes of a file after the checks and repairs of the index: long notes without length are taps. */
function hashNotes({ keys, notes, hasBpm, timingPoints }) {
  if (notes.length > MAX_NOTES) refuse(`more than ${MAX_NOTES} notes`);
  if (timingPoints > MAX_TIMING_POINTS) refuse(`more than ${MAX_TIMING_POINTS} timing points`);
  for (const note of notes) if (note.endUs !== undefined && note.endUs <= note.startUs) note.endUs = undefined;
  const outcome = hashTimedNotes(keys, notes);
  if (!hasBpm) refuse("no BPM");
  const isHeld = (note) => Number(note.endUs !== undefined);
  notes.sort((a, b) => a.startUs - b.startUs || a.column - b.column || isHeld(a) - isHeld(b) || a.endUs - b.endUs || 0);
  const ends = new Float64Array(keys).fill(-Infinity);
  for (const { startUs, column, endUs } of notes) {
    if (startUs < ends[column]) refuse(`note inside a long note at ${Math.floor(startUs / 1000)} ms`);
    ends[column] = endUs ?? startUs;
  }
  return outcome;
}

// --- .osu ---

function readOsu(text) {
  const chart = { keys: 0, notes: [], hasBpm: false, timingPoints: 0 };
  const lines = text.split("\n");
  // The mode is decided where the first section after [General] begins, and again at the end of the file.
  let [section, mode, isDecided] = ["", 0, false];
  lines.forEach((line, index) => {
    if (index < lines.length - 1 && line.endsWith("\r")) line = line.slice(0, -1);
    if (line === "" || line.startsWith("//")) return;
    if (line.startsWith("[") && line.endsWith("]")) {
      if (section === "General" && !isDecided) checkMode(mode);
      isDecided ||= section === "General";
      section = line.slice(1, -1);
    } else if (!line.startsWith("osu file format v")) {
      if (section === "HitObjects") readHitObject(line, chart.notes);
      else if (section === "TimingPoints") readTimingPoint(trim(line), chart);
      else if (section === "General") mode = valueOf(line, "Mode", readByte) ?? mode;
      else if (section === "Difficulty") chart.keys = valueOf(line, "CircleSize", readKeys) ?? chart.keys;
    }
  });
  checkMode(mode);
  for (const note of chart.notes) note.column = columnOf(note.x, chart.keys);
  return chart;
}

function checkMode(mode) {
  if (mode !== 3) refuse(`unsupported game mode ${mode} (only mode 3 is indexed)`);
}

/** The value of a line `name: value`, read by `read`; nothing if the line has another name. */
function valueOf(line, name, read) {
  const colon = line.indexOf(":");
  return colon >= 0 && trim(line.slice(0, colon)) === name ? read(trim(line.slice(colon + 1))) : undefined;
}

function readByte(value) {
  return /^\+?\d+$/.test(value) && Number(value) <= 255 ? Number(value) : 0;
}

/** The key count: a 32-bit float that is truncated to a byte, or 4 if it is no number. */
function readKeys(value) {
  if (/^[+-]?(inf|infinity|nan)$/i.test(value) || value.length > 15) refuse(`key count ${value.slice(0, 20)}`);
  return FLOAT.test(value) ? Math.max(0, Math.min(255, Math.trunc(Math.fround(Number(value))))) : 4;
}

/** The integer at the start of a field; none without digit and sign, or out of range. A sign without digits is 0. */
function leadingInteger(field, least, most) {
  const [text] = /^[+-]?\d*/.exec(field);
  const number = text === "" ? NaN : Number(text.replace(/^[+-]$/, "0"));
  return number >= least && number <= most ? number : undefined;
}

const int32 = (field) => leadingInteger(field, -(2 ** 31), 2 ** 31 - 1);

/** Reads `x,y,time,type,sound,end:…`. A line without these numbers is no note, as in the index. */
function readHitObject(line, notes) {
  const fields = line.split(",", 6);
  if (fields.length < 5) return;
  const [x, y, time] = fields.slice(0, 3).map(int32);
  const [type, sound] = fields.slice(3, 5).map((field) => leadingInteger(field, 0, 255));
  if ([x, y, time, type, sound].includes(undefined)) return;
  const end = type & 128 && fields.length > 5 ? int32(fields[5].split(":", 1)[0]) : undefined;
  if (Math.abs(time) > MAX_OSU_TIME_MS || Math.abs((end ?? time) - time) > MAX_OSU_TIME_MS) refuse("time out of range");
  notes.push({ startUs: time * 1000, x, endUs: end === undefined ? undefined : end * 1000 });
}

/** The column of an x coordinate, in the arithmetic of the decoder; outside the playfield it is the outermost one. */
function columnOf(x, keys) {
  if (Math.abs(x * keys) >= 2 ** 31) refuse("x out of range");
  const column = Math.trunc((x * keys) / 512) & 255;
  return column < keys ? column : x < 0 ? 0 : Math.max(0, keys - 1);
}

/** Reads `time,beat length,meter,…,uninherited,…`. */
function readTimingPoint(line, chart) {
  const [time, beatLength, , , , , uninherited] = line.split(",");
  const isNumber = (field) => FLOAT.test(field) || /^[+-]?(inf|infinity|nan)$/i.test(field);
  if (beatLength === undefined || !isNumber(time) || !isNumber(beatLength)) return;
  chart.timingPoints += 1;
  const isPositive = /^\+?inf/i.test(beatLength) || Number(beatLength) > 0;
  chart.hasBpm ||= uninherited !== undefined && trim(uninherited) === "1" && isPositive;
}

// --- .qua ---

// What YAML 1.1 takes for a line break or forbids, apart from line feed and carriage return before it.
const NOT_PLAIN_TEXT = /\r(?!\n)|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/;
const INTEGER = /^-?(?:0|[1-9]\d{0,8})$/;
const NUMBER = (value) => FLOAT.test(value) && Number.isFinite(Number(value));
const QUOTED = /^(?:"(?:[^"\\]|\\[^])*"|'(?:[^']|'')*')$/;
const FLOW = String.raw`\[[^[\]{}"'#&*]*\]|\{[^[\]{}"'#&*]*\}`;
const FIRST = "[^\\s\"'[\\]{}>|*&!%@`#,?:-]";
const PLAIN = String.raw`(?:${FIRST}|[-?:](?=\S))(?:[^:]|:(?=\S))*`;
const ONE_LINE = new RegExp(`^(?:${FLOW}|[>|][-+]?|${PLAIN})?$`);
const NESTED_KEY = new RegExp(String.raw`^(?:${FIRST}[^:]*|\$\w+):(?: +|$)`);
const TEXTS = ["AudioFile", "BackgroundFile", "Title", "Artist", "Source", "Tags", "Creator", "DifficultyName"];
const SCALARS = {
  SongPreviewTime: (value) => INTEGER.test(value),
  MapId: (value) => INTEGER.test(value),
  MapSetId: (value) => INTEGER.test(value),
  BPMDoesNotAffectScrollVelocity: (value) => /^(?:true|false)$/.test(value),
  InitialScrollVelocity: NUMBER,
  Mode: (value) => /^Keys(?:10|[1-9])$/.test(value),
};
const LISTS = {
  TimingPoints: { StartTime: NUMBER, Bpm: NUMBER, Signature: (value) => /^(?:Triple|Quadruple|\d{1,9})$/.test(value) },
  SliderVelocities: { StartTime: NUMBER, Multiplier: NUMBER },
  HitObjects: { StartTime: NUMBER, EndTime: NUMBER, Lane: (value) => /^(?:0|[1-9]\d?)$/.test(value) },
};

function readQua(text) {
  if (NOT_PLAIN_TEXT.test(text)) refuse("characters that YAML does not allow here");
  if (text.replace(/[^\n,:[{]/g, "").length > MAX_YAML_NODES) refuse("too many YAML nodes");
  const { Mode, HitObjects = [], TimingPoints = [], SliderVelocities = [] } = readYaml(text.split(/\r?\n/));
  return {
    keys: Mode === undefined ? 4 : Number(Mode.slice(4)),
    notes: HitObjects.map(quaNote),
    hasBpm: TimingPoints.length > 0,
    timingPoints: TimingPoints.length + SliderVelocities.length + 1,
  };
}

function quaNote({ StartTime = 0, EndTime = 0, Lane = 0 }) {
  const us = (time) => (Math.abs(time) <= MAX_QUA_TIME_MS ? Math.trunc(time * 1000) : refuse("time out of range"));
  const endUs = Number(EndTime) > 0 ? us(Number(EndTime)) : undefined;
  return { startUs: us(Number(StartTime)), column: Math.max(0, Number(Lane) - 1), endUs };
}

/** Reads the top-level mapping: the lists and scalars that matter here, as text. */
function readYaml(lines) {
  const read = {};
  const file = { lines, next: lines.findIndex((line) => !isBlank(line)) };
  if (lines[file.next]?.trimEnd() === "---") file.next += 1;
  while (file.next < lines.length) {
    const line = lines[file.next];
    if (isBlank(line)) {
      file.next += 1;
      continue;
    }
    const [, name, value = ""] = /^([A-Za-z]\w*):(?: +(.*?))? *$/.exec(line) ?? refuseLine(file);
    if (Object.hasOwn(read, name)) refuse(`${name} is given twice`);
    file.next += 1;
    if (LISTS[name]) read[name] = readList(file, LISTS[name], value);
    else read[name] = SCALARS[name] ? readScalar(file, SCALARS[name], value) : skipValue(file, name, value);
  }
  return read;
}

const isBlank = (line) => /^ *(?:#.*)?$/.test(line);
const indentOf = (line) => /^ */.exec(line)[0].length;

function refuseLine(file) {
  return refuse(`line ${file.next + 1} is not written as the game writes it`);
}

/** Whether a line belongs to the value of a key in this column: it is indented more, or an entry of a list. */
function isBelow(line, column) {
  return isBlank(line) || indentOf(line) > column || (indentOf(line) === column && /^ *-(?: |$)/.test(line));
}

function readScalar(file, isValid, value) {
  file.next -= 1;
  if (!isValid(value)) refuseLine(file);
  file.next += 1;
  const line = file.lines[file.next] ?? "";
  if (!isBlank(line) && isBelow(line, 0)) refuseLine(file);
  return value;
}

/** Passes over the value of a top-level key. */
function skipValue(file, name, value) {
  if (/^["']/.test(value)) return skipQuoted(file, value);
  file.next -= 1;
  if (!ONE_LINE.test(value)) refuseLine(file);
  file.next += 1;
  const isText = TEXTS.includes(name);
  if (isText && /^[[{]/.test(value)) refuse(`${name} is not a text`);
  const isFolded = /^[>|]/.test(value);
  while (file.next < file.lines.length && isBelow(file.lines[file.next], 0)) {
    const line = file.lines[file.next];
    if (isText && value === "" && !isBlank(line)) refuse(`${name} is not a text`);
    // A list or a key belongs to a key without a value.
    if (value !== "" && (line.startsWith("-") || !(isFolded || ONE_LINE.test(line.trim())))) refuseLine(file);
    if (value === "") checkNested(file);
    file.next += 1;
  }
}

/** Passes over a quoted text, which may span lines. */
function skipQuoted(file, value) {
  let text = value;
  while (!QUOTED.test(text)) {
    const line = file.lines[file.next] ?? refuse("a quoted text does not end");
    // The index reads such a line as the mode of the game, even within a text.
    if (/^\S/.test(line)) refuseLine(file);
    text += `\n${line.trimEnd()}`;
    file.next += 1;
  }
}

/** Checks that a nested line opens nothing that could hide the lines after it. */
function checkNested(file) {
  const line = file.lines[file.next];
  const rest = line.replace(/^ *(?:- +)*/, "").replace(NESTED_KEY, "").trimEnd();
  const isComplete = /^(?:-|!\w+)$/.test(rest) || QUOTED.test(rest) || ONE_LINE.test(rest);
  if (!isBlank(line) && !isComplete) refuseLine(file);
}

/** Reads a list of mappings with these numbers; passes over their other values. */
function readList(file, numbers, value) {
  const items = [];
  let [dash, column, isSkipping] = [-1, -1, false];
  for (; file.next < file.lines.length && isBelow(file.lines[file.next], 0); file.next += 1) {
    const line = file.lines[file.next];
    if (isBlank(line)) continue;
    const [, start, key, number = ""] = /^( *(?:- +)?)(\w+):(?: +(.*?))? *$/.exec(line) ?? [];
    if (start?.trim() === "-" && (dash < 0 || indentOf(line) === dash)) {
      [dash, column] = [indentOf(line), start.length];
      items.push({});
    } else if (isSkipping && isBelow(line, column)) {
      checkNested(file);
      continue;
    } else if (start?.length !== column || start.trim() !== "") {
      refuseLine(file);
    }
    isSkipping = !readNumber(file, items.at(-1), numbers[key], key, number);
  }
  const isWritten = value === "" ? items.length > 0 : value === "[]" && items.length === 0;
  return isWritten ? items : refuse("a list is not written as the game writes it");
}

/** Reads a number of a note or timing point; false if the key is not one of those. */
function readNumber(file, item, isValid, key, number) {
  if (!isValid) checkNested(file);
  else if (Object.hasOwn(item, key) || !isValid(number)) refuseLine(file);
  else item[key] = number;
  return Boolean(isValid);
}
