// Computes the note hash, version 1, in the browser: of chart files (.osu and .qua), and of notes.
//
// A chart file gives the same hash as in the index, or a reason why it cannot be told, never another hash. So this
// follows crates/chartfile to the letter, and refuses what it does not know: YAML is read only in the form in which the
// game and its tools write it.

/** The maximum size of a chart file in bytes, as in the index. */
export const MAX_FILE_BYTES = 16 * 1024 * 1024;

const MAX_NOTES = 500_000;
const MAX_TIMING_POINTS = 500_000;
const MAX_YAML_NODES = 3_000_000;
const MAX_OSU_TIME_MS = 2 ** 30;
const MAX_QUA_TIME_MS = 4e12;

/** A reason why there is no hash. */
class CannotTell extends Error {}

function refuse(reason) {
  throw new CannotTell(reason);
}

/**
 * The note hash of a chart file, by the extension of its name.
 *
 * @param {string} name the file name
 * @param {Uint8Array} bytes the content
 * @returns {{hash: string, keys: number} | {cannotTell: string}}
 */
export function hashChartFile(name, bytes) {
  const format = name.slice(name.lastIndexOf(".") + 1).toLowerCase();
  const read = { osu: readOsu, qua: readQua }[format];
  return explained(() => {
    if (!read) refuse("only .osu and .qua files can be read here");
    if (bytes.length > MAX_FILE_BYTES) refuse(`larger than ${MAX_FILE_BYTES} bytes`);
    return hashBytes(read, bytes);
  });
}

function explained(compute) {
  try {
    return compute();
  } catch (error) {
    if (error instanceof CannotTell) return { cannotTell: error.message };
    throw error;
  }
}

/** Reads the bytes as UTF-8, which decides on the notes whatever the encoding is, or as the byte order mark says. */
function hashBytes(read, bytes) {
  const hash = (text) => hashNotes(read(text.replace(/^\ufeff+/, "")));
  const asUtf8 = explained(() => hash(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)));
  const mark = bytes.length < 2 ? 0 : bytes[0] * 256 + bytes[1];
  const encoding = { 0xfffe: "utf-16le", 0xfeff: "utf-16be" }[mark];
  if (asUtf8.hash || !encoding) return asUtf8;
  return hash(new TextDecoder(encoding, { ignoreBOM: true }).decode(bytes.subarray(2)));
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

/** The note hash of notes with times in microseconds; throws a reason if there is none. */
function hashTimedNotes(keys, notes) {
  if (notes.length === 0) refuse("no notes");
  if (!(keys >= 4 && keys <= 7)) refuse(`key count ${keys} (only 4 to 7 are indexed)`);
  const first = notes.reduce((least, { startUs }) => Math.min(least, startUs), Infinity);
  const relative = (timeUs) => {
    const ms = Math.floor((timeUs - first + 500) / 1000);
    return ms >= 0 && ms <= 0xffffffff ? ms : refuse("time out of range");
  };
  const canonical = notes.map(({ startUs, column, endUs }) => {
    if (!(column >= 0 && column < keys)) refuse(`note in column ${column} of a chart with ${keys} keys`);
    return [relative(startUs), column, endUs === undefined ? -1 : relative(endUs)];
  });
  return { hash: hashCanonicalNotes(keys, canonical), keys };
}

/**
 * The note hash of notes with times in microseconds, any order.
 *
 * @param {number} keys the key count
 * @param {{startUs: number, column: number, endUs?: number}[]} notes
 * @returns {{hash: string, keys: number} | {cannotTell: string}}
 */
export function hashOfTimedNotes(keys, notes) {
  return explained(() => hashTimedNotes(keys, notes));
}

/**
 * The note hash of canonical notes: start in milliseconds after the first, column, and end, or -1 for a tap. Sorts them.
 *
 * @param {number} keys the key count
 * @param {[number, number, number][]} notes
 * @returns {string} 64 lower-case hexadecimal digits
 */
export function hashCanonicalNotes(keys, notes) {
  return hex(blake3(canonicalBytes(keys, notes)));
}

/** The bytes that are hashed. A tap, whose end is -1, sorts before a long note. */
export function canonicalBytes(keys, notes) {
  notes.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
  const bytes = new Uint8Array(1 + 10 * notes.length);
  const view = new DataView(bytes.buffer);
  bytes[0] = keys;
  let length = 1;
  for (const [start, column, end] of notes) {
    view.setUint32(length, start, true);
    bytes[length + 4] = column;
    bytes[length + 5] = Number(end >= 0);
    if (end >= 0) view.setUint32(length + 6, end, true);
    length += end >= 0 ? 10 : 6;
  }
  return bytes.subarray(0, length);
}

// The grammar of numbers in Rust, without infinity and NaN.
const FLOAT = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

// --- .osu ---

/** Trims what Unicode calls white space, which is not what String.trim does. */
function trim(text) {
  return text.replace(/^[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/, "")
    .replace(/[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+$/, "");
}

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

// --- BLAKE3 (the hash function of github.com/BLAKE3-team/BLAKE3-specs, sections 2.1 to 2.5) ---

const IV = Uint32Array.of(
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19);
const [CHUNK_START, CHUNK_END, PARENT, ROOT] = [1, 2, 4, 8];
const [BLOCK_BYTES, CHUNK_BYTES, ROUNDS] = [64, 1024, 7];
const PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
// The order of the message words in each round.
const SCHEDULE = [Array.from({ length: 16 }, (_, word) => word)];
while (SCHEDULE.length < ROUNDS) SCHEDULE.push(PERMUTATION.map((word) => SCHEDULE.at(-1)[word]));

/** The 32 bytes of the BLAKE3 hash. */
export function blake3(bytes) {
  const words = subtree(bytes, 0, ROOT);
  const hash = new DataView(new ArrayBuffer(32));
  words.forEach((word, index) => hash.setUint32(4 * index, word, true));
  return new Uint8Array(hash.buffer);
}

/** The chaining value of a subtree: a chunk, or the parent of two, of which the left one is as large as possible. */
function subtree(bytes, firstChunk, flags) {
  if (bytes.length <= CHUNK_BYTES) return chunk(bytes, firstChunk, flags);
  const chunks = Math.ceil(bytes.length / CHUNK_BYTES);
  const left = 2 ** (31 - Math.clz32(chunks - 1));
  const block = new Uint32Array(16);
  block.set(subtree(bytes.subarray(0, left * CHUNK_BYTES), firstChunk, 0));
  block.set(subtree(bytes.subarray(left * CHUNK_BYTES), firstChunk + left, 0), 8);
  return compress(IV, block, 0, BLOCK_BYTES, PARENT | flags);
}

function chunk(bytes, counter, flags) {
  const blocks = Math.max(1, Math.ceil(bytes.length / BLOCK_BYTES));
  let value = IV;
  for (let index = 0; index < blocks; index += 1) {
    const part = bytes.subarray(index * BLOCK_BYTES, (index + 1) * BLOCK_BYTES);
    const padded = new Uint8Array(BLOCK_BYTES);
    padded.set(part);
    const view = new DataView(padded.buffer);
    const block = Uint32Array.from({ length: 16 }, (_, word) => view.getUint32(4 * word, true));
    const first = index === 0 ? CHUNK_START : 0;
    const last = index === blocks - 1 ? CHUNK_END | flags : 0;
    value = compress(value, block, counter, part.length, first | last);
  }
  return value;
}

function compress(value, block, counter, length, flags) {
  const v = new Uint32Array(16);
  v.set(value);
  v.set(IV.subarray(0, 4), 8);
  v.set([counter, 0, length, flags], 12);
  for (const m of SCHEDULE) {
    mix(v, 0, 4, 8, 12, block[m[0]], block[m[1]]);
    mix(v, 1, 5, 9, 13, block[m[2]], block[m[3]]);
    mix(v, 2, 6, 10, 14, block[m[4]], block[m[5]]);
    mix(v, 3, 7, 11, 15, block[m[6]], block[m[7]]);
    mix(v, 0, 5, 10, 15, block[m[8]], block[m[9]]);
    mix(v, 1, 6, 11, 12, block[m[10]], block[m[11]]);
    mix(v, 2, 7, 8, 13, block[m[12]], block[m[13]]);
    mix(v, 3, 4, 9, 14, block[m[14]], block[m[15]]);
  }
  for (let index = 0; index < 8; index += 1) v[index] ^= v[index + 8];
  return v.subarray(0, 8);
}

function mix(v, a, b, c, d, x, y) {
  v[a] = v[a] + v[b] + x;
  v[d] = rotate(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = rotate(v[b] ^ v[c], 12);
  v[a] = v[a] + v[b] + y;
  v[d] = rotate(v[d] ^ v[a], 8);
  v[c] += v[d];
  v[b] = rotate(v[b] ^ v[c], 7);
}

function rotate(word, bits) {
  return (word >>> bits) | (word << (32 - bits));
}

function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
