// Reads .qua files as Quaver plays them, in the form in which it writes them.
//
// Citations are of Quaver.API e73fb5db. What the game refuses is refused, and so is what it reads and never
// writes.

import { refuse, trimEnd } from "./note_hash.js";

const MAX_INTEGER = 2 ** 31;
/** Qua.CurrentQuaVersion. */
const MAX_VERSION = 1;

// What a value has to be. Nothing is the default of a value, and no list.
const matches = (pattern) => (node) => node === null || (typeof node === "string" && pattern.test(node));
const isFloat = matches(/^-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/);
const text = (node) => node === null || typeof node === "string" || node instanceof Text;
const boolean = matches(/^(?:true|false)$/);
const integer = (node) => matches(/^-?(?:0|[1-9]\d*)$/)(node) && Math.abs(Number(node)) < MAX_INTEGER;
const float = (node) => isFloat(node) && Number.isFinite(Math.fround(Number(node)));
const listOf = (properties) => (node) => Array.isArray(node) && node.every(mappingOf(properties));
const mappingOf = (properties, tag) => (node) =>
  node instanceof Map && node.tag === tag && [...node].every(([name, value]) => isRead(properties, name, value));
const isRead = (properties, name, value) => (Object.hasOwn(properties, name) ? properties[name] : text)(value);

const VELOCITIES = listOf({ StartTime: float, Multiplier: float });
const SOUND = { Sample: integer, Volume: integer };
/** Qua.Deserializer: the only tag. */
const isScrollGroup = mappingOf({
  Hidden: boolean,
  InitialScrollVelocity: float,
  ScrollSpeedFactors: VELOCITIES,
  ScrollVelocities: VELOCITIES,
}, "!ScrollGroup");

/** Qua.cs and the structures: the properties that are no texts. The game ignores what it does not know. */
const PROPERTIES = {
  QuaVersion: integer,
  SongPreviewTime: integer,
  MapId: integer,
  MapSetId: integer,
  LegacyLNRendering: boolean,
  BPMDoesNotAffectScrollVelocity: boolean,
  InitialScrollVelocity: float,
  HasScratchKey: boolean,
  EditorLayers: listOf({ Hidden: boolean }),
  Bookmarks: listOf({ StartTime: integer }),
  CustomAudioSamples: listOf({ UnaffectedByRate: boolean }),
  SoundEffects: listOf({ StartTime: float, ...SOUND }),
  TimingPoints: listOf({
    StartTime: float,
    Bpm: (node) => float(node) || node === ".inf",
    Signature: matches(/^(?:Triple|Quadruple|\d{1,9})$/),
    Hidden: boolean,
  }),
  SliderVelocities: VELOCITIES,
  ScrollSpeedFactors: VELOCITIES,
  HitObjects: listOf({
    StartTime: integer,
    Lane: integer,
    EndTime: integer,
    HitSound: matches(/^(?:\d{1,9}|(?:Normal|Whistle|Finish|Clap)(?:, (?:Normal|Whistle|Finish|Clap))*)$/),
    Type: matches(/^(?:Normal|Mine)$/),
    KeySounds: listOf(SOUND),
    EditorLayer: integer,
  }),
  TimingGroups: (node) => node instanceof Map && !node.tag && [...node.values()].every(isScrollGroup),
};

/** The chart of a file: its notes, and what it is called. */
export function readQua(file) {
  const mapping = readYaml(file);
  for (const [name, value] of mapping) {
    if (!isRead(PROPERTIES, name, value)) refuse(`${name} is not written as the game writes it`);
  }
  const qua = Object.fromEntries(mapping);
  const { HitObjects = [], TimingPoints = [], SliderVelocities = [] } = qua;
  const objects = HitObjects.map((node) => Object.fromEntries(node));
  checkValidity(qua, objects, TimingPoints);
  const keys = keysOf(qua);
  if (objects.some(({ Lane }) => !(Lane >= 1 && Lane <= keys))) refuse("a note in a lane that does not exist");
  const notes = objects.filter(({ Type }) => Type !== "Mine").map(note);
  return { keys, notes, timingPoints: TimingPoints.length + SliderVelocities.length, ...textsOf(qua) };
}

function textsOf({ Title, Artist, Creator, DifficultyName }) {
  const [title, artist, creator, difficulty] = [Title, Artist, Creator, DifficultyName].map(textOf);
  return { title, artist, creator, difficulty };
}

const textOf = (node) => (node instanceof Text ? node.text : node) ?? "";

/** HitObjectInfo: an end after 0 makes a long note. */
function note({ StartTime, EndTime, Lane }) {
  const endUs = Number(EndTime ?? 0) > 0 ? Number(EndTime) * 1000 : undefined;
  return { startUs: Number(StartTime ?? 0) * 1000, column: Number(Lane) - 1, endUs };
}

/** ModeHelper.ToKeyCount. */
function keysOf({ Mode, HasScratchKey }) {
  const [, keys] = /^Keys(10|[1-9])$/.exec(textOf(Mode)) ?? refuse("no game mode, or an unknown one");
  return Number(keys) + Number(HasScratchKey === "true");
}

/** Qua.Validate and Qua.AfterLoad. */
function checkValidity({ QuaVersion = 0, SoundEffects = [], CustomAudioSamples = [] }, objects, timingPoints) {
  if (Number(QuaVersion) > MAX_VERSION) refuse("a version that the game does not read");
  if (timingPoints.length === 0) refuse("no timing points");
  const isValid = (sound) => {
    const [sample, volume] = [sound.get("Sample"), Number(sound.get("Volume") ?? 0) || 100];
    return sample >= 1 && sample <= CustomAudioSamples.length && volume >= 1;
  };
  const sounds = objects.flatMap(({ KeySounds = [] }) => KeySounds);
  if (![...SoundEffects, ...sounds].every(isValid) || SoundEffects.some((sound) => sound.get("Volume") > 100)) {
    refuse("a sound that the game refuses");
  }
  const isHeld = ({ StartTime, EndTime }) => !(EndTime > 0) || Number(EndTime) > Number(StartTime ?? 0);
  if (!objects.every(isHeld)) refuse("a long note whose end is not after its start");
}

// --- YAML ---

// Block sequences and mappings, texts of one line or several, empty collections in brackets, tags of mappings,
// and comments between lines. Other forms are refused.

// What YAML 1.1 takes for a line break or forbids, apart from line feed and carriage return before it.
const FORBIDDEN = /\r(?!\n)|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/;
const MAX_DEPTH = 16;
/** Longer lines of quoted texts would be too long for the expressions below. */
const MAX_QUOTED = 100_000;
const BLANK = /^ *$/;
const BLANK_OR_COMMENT = /^ *(?:#.*)?$/;
const FIRST = "[^\\s\"'[\\]{}>|*&!%@\\x60#,?:-]";
const KEY = new RegExp(String.raw`^(${FIRST}[^:#\t]*|'[^':#]*'|"[^"\\:#]*"):(?: +|$)`);
const STARTS_PLAIN = new RegExp(String.raw`^(?:${FIRST}|[-?:]\S)`);
/** What ends a plain text, and a tab, which not every program reads in one. */
const NOT_PLAIN = /:(?:\s|$)|\s#|\t/;
const NULL = /^(?:~|null|Null|NULL)$/;
/** What is left in a line of a quoted text: more of it, or its end. */
const OPEN = { "'": /^(?:[^']|'')*$/, '"': /^(?:[^"\\]|\\.)*\\?$/ };
const CLOSED = { "'": /^(?:[^']|'')*'$/, '"': /^(?:[^"\\]|\\.)*"$/ };

/** A text that is not plain. A block of several lines, which no value is that matters, has no `text`. */
class Text {
  constructor(text) {
    this.text = text;
  }
}

/**
 * The mapping of a file, as a `Map`. Values are such mappings, with a property `tag` if they have one, arrays,
 * plain texts as strings, other texts as `Text`, and `null`.
 */
function readYaml(text) {
  if (FORBIDDEN.test(text)) refuse("characters that YAML does not allow here");
  const file = { lines: text.split(/\r?\n/), next: -1 };
  advance(file);
  if (lineOf(file) === "---") advance(file);
  const mapping = readMapping(file, 0, 0);
  return file.next < file.lines.length ? refuseLine(file) : mapping;
}

/** The current line, which is neither blank nor a comment, without spaces at its end. */
const lineOf = ({ lines, next }) => withoutSpaces(lines[next] ?? "");

/** White space of other kinds belongs to a text. */
const withoutSpaces = (text) => trimEnd(text, (character) => character === " ");

const indentOf = (line) => /^ */.exec(line)[0].length;
const indent = ({ lines, next }) => (next < lines.length ? indentOf(lines[next]) : -1);

function advance(file) {
  do file.next += 1;
  while (file.next < file.lines.length && BLANK_OR_COMMENT.test(file.lines[file.next]));
}

function refuseLine(file) {
  return refuse(`line ${file.next + 1} is not written as the game writes it`);
}

/** Whether the current line is an item of a sequence in this column. */
const isItem = (file, column) => indent(file) === column && /^-(?: |$)/.test(lineOf(file).slice(column));

/** Reads the mapping or the sequence that begins in a column of the current line. */
function readBlock(file, column, depth) {
  if (depth > MAX_DEPTH) refuseLine(file);
  return isItem(file, column) ? readSequence(file, column, depth) : readMapping(file, column, depth);
}

function readMapping(file, column, depth) {
  const mapping = new Map();
  while (indent(file) === column && !isItem(file, column)) {
    const line = lineOf(file).slice(column);
    const [start, key] = KEY.exec(line) ?? refuseLine(file);
    const name = /^["']/.test(key) ? key.slice(1, -1) : withoutSpaces(key);
    // What merges mappings, and what ends a document.
    if (name === "<<" || name.startsWith("...") || mapping.has(name)) refuseLine(file);
    mapping.set(name, readValue(file, line.slice(start.length), column, depth));
  }
  return indent(file) > column ? refuseLine(file) : mapping;
}

function readSequence(file, column, depth) {
  const items = [];
  while (isItem(file, column)) {
    const line = lineOf(file);
    const content = column + 1 + indentOf(line.slice(column + 1));
    if (content === line.length) refuseLine(file);
    // What follows the dash is as if it were indented.
    file.lines[file.next] = `${" ".repeat(content)}${line.slice(content)}`;
    const isBlock = isItem(file, content) || KEY.test(line.slice(content));
    items.push(isBlock ? readBlock(file, content, depth + 1) : readScalar(file, line.slice(content), column));
  }
  return indent(file) > column ? refuseLine(file) : items;
}

/** Reads the value of a key in a column, which begins with the rest of its line. */
function readValue(file, rest, column, depth) {
  const [tag] = /^!\w+$/.exec(rest) ?? [];
  if (rest !== "" && !tag) return readScalar(file, rest, column);
  advance(file);
  const hasBlock = indent(file) > column || (!tag && isItem(file, column));
  if (!hasBlock) return tag ? refuseLine(file) : null;
  const block = readBlock(file, indent(file), depth + 1);
  return tag ? Object.assign(block, { tag }) : block;
}

function readScalar(file, rest, column) {
  if (/^[|>][-+]?$/.test(rest)) return readBlockText(file, column);
  if (/^["']/.test(rest)) return readQuoted(file, rest, column);
  if (rest === "[]" || rest === "{}") {
    advance(file);
    return rest === "[]" ? [] : new Map();
  }
  if (!STARTS_PLAIN.test(rest) || NOT_PLAIN.test(rest)) refuseLine(file);
  const lines = [rest];
  for (file.next += 1; belongsTo(file, column) && !BLANK_OR_COMMENT.test(file.lines[file.next]); file.next += 1) {
    if (NOT_PLAIN.test(lineOf(file))) refuseLine(file);
    lines.push(lineOf(file).trimStart());
  }
  file.next -= 1;
  advance(file);
  if (lines.length > 1) return new Text(lines.join(" "));
  return NULL.test(rest) ? null : rest;
}

/** Whether the current line belongs to a text of a key or an item in a column. */
function belongsTo({ lines, next }, column) {
  return next < lines.length && (BLANK.test(lines[next]) || indentOf(lines[next]) > column);
}

/** Passes over a block text, whose lines are indented at least as much as the first of them. */
function readBlockText(file, column) {
  let [least, blank] = [column + 1, 0];
  let isFirst = true;
  for (file.next += 1; belongsTo(file, column); file.next += 1) {
    const line = file.lines[file.next];
    if (BLANK.test(line)) {
      if (isFirst) blank = Math.max(blank, line.length);
      continue;
    }
    if (isFirst) least = Math.max(blank, indentOf(line));
    if (indentOf(line) < least) refuseLine(file);
    isFirst = false;
  }
  file.next -= 1;
  advance(file);
  return new Text();
}

function readQuoted(file, rest, column) {
  const mark = rest[0];
  let text = rest.slice(1);
  const lines = [];
  const isOpen = () => text.length <= MAX_QUOTED && OPEN[mark].test(text);
  while (isOpen()) {
    lines.push(text);
    file.next += 1;
    if (!belongsTo(file, column)) refuseLine(file);
    text = lineOf(file).trimStart();
  }
  if (text.length > MAX_QUOTED || !CLOSED[mark].test(text)) refuseLine(file);
  advance(file);
  const content = [...lines, text.slice(0, -1)].join(" ");
  return new Text(mark === "'" ? content.replaceAll("''", "'") : withoutEscapes(content));
}

/** YAML 1.1, 5.7: what is no code stands for itself, for white space, or for a character that no text has. */
function withoutEscapes(text) {
  return text.replace(/\\(?:x(\w{2})|u(\w{4})|U(\w{8})|(.))/g, (_, x, u, U, one) => {
    if (one !== undefined) return /[0abe]/.test(one) ? "\0" : /[ntvfrN_LP]/.test(one) ? " " : one;
    const code = Number(`0x${x ?? u ?? U}`);
    return code <= 0x10ffff ? String.fromCodePoint(code) : refuse("a text with an unknown escape");
  });
}
