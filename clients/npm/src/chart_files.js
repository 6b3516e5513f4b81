// Computes the note hashes, version 1, of chart files.
//
// A chart file gives the same hash as in the index, or a reason why it has none, never another hash. So each
// format is read by the rules of its game, as in crates/chartfile.

import { explained, hashTimedNotes, refuse } from "./note_hash.js";
import { readOsu } from "./osu.js";
import { readQua } from "./qua.js";
import { readSimfile } from "./simfiles.js";

/** The maximum size of a chart file in bytes, as in the index. */
export const MAX_FILE_BYTES = 16 * 1024 * 1024;

const MAX_NOTES = 500_000;
const MAX_TIMING_POINTS = 500_000;
/** The maximum length of a text, as in the index. */
const MAX_CHARACTERS = 1_000;

const READERS = {
  osu: (bytes) => [readOsu(textOf(bytes))],
  qua: (bytes) => [readQua(textOf(bytes))],
  sm: (bytes) => readSimfile(textIn("utf-8", bytes), false),
  ssc: (bytes) => readSimfile(textIn("utf-8", bytes), true),
};

const textIn = (encoding, bytes) => new TextDecoder(encoding, { ignoreBOM: true }).decode(bytes);

/** The text of a file without its byte order mark, which decides on its encoding. */
function textOf(bytes) {
  const mark = bytes.length < 2 ? 0 : bytes[0] * 256 + bytes[1];
  const encoding = { 0xfffe: "utf-16le", 0xfeff: "utf-16be" }[mark] ?? "utf-8";
  return textIn(encoding, bytes).replace(/^\ufeff/, "");
}

/** Whether a file has one of these extensions, and is not one that operating systems create. */
export function isNamed(path, extensions) {
  const parts = path.split(/[/\\]/);
  const name = parts.at(-1).toLowerCase();
  const isOfSystem = parts.includes("__MACOSX") || name.startsWith(".");
  return !isOfSystem && extensions.some((extension) => name.endsWith(`.${extension}`));
}

/** Whether the index reads files with this name. */
export const isChartFile = (path) => isNamed(path, Object.keys(READERS));

/**
 * Leaves out every .sm file in a folder with an .ssc file, which StepMania 5 does not read (itgmania 5d4f9dcb,
 * NotesLoader::LoadFromDir). Paths have slashes.
 *
 * @template File
 * @param {File[]} files
 * @param {(file: File) => string} pathOf
 */
export function withoutReplaced(files, pathOf) {
  const folderOf = (file) => pathOf(file).replace(/[^/]*$/, "");
  const folders = new Set(files.filter((file) => isNamed(pathOf(file), ["ssc"])).map(folderOf));
  return files.filter((file) => !isNamed(pathOf(file), ["sm"]) || !folders.has(folderOf(file)));
}

/**
 * The charts of a file, by the extension of its name, and the reasons of those that have no note hash. Each
 * hash once.
 *
 * @param {string} path
 * @param {Uint8Array} bytes the content
 * @returns {import("./index.js").LocalChart[]}
 */
export function hashChartFile(path, bytes) {
  const read = READERS[path.slice(path.lastIndexOf(".") + 1).toLowerCase()];
  const charts = explained(() => {
    if (!read) refuse("only .osu, .qua, .sm and .ssc files can be read here");
    if (bytes.length > MAX_FILE_BYTES) refuse(`larger than ${MAX_FILE_BYTES / 2 ** 20} MB`);
    return read(bytes).map((chart) => ({ file: path, ...hashChart(chart) }));
  });
  if (charts.reason) return [{ file: path, ...charts }];
  const hashes = charts.map(({ hash }) => hash);
  return charts.filter(({ hash }, index) => !hash || hashes.indexOf(hash) === index);
}

/** The hash of a chart with its texts. What is refused of a file with several charts has its name. */
function hashChart({ reason, keys, notes, timingPoints, chart, ...texts }) {
  const outcome = reason ? { reason } : explained(() => hashNotes({ keys, notes, timingPoints }));
  if (outcome.reason) return chart === undefined ? outcome : { ...outcome, chart: clean(chart) };
  const names = ["title", "artist", "creator", "difficulty"];
  return { ...outcome, ...Object.fromEntries(names.map((name) => [name, clean(texts[name])])) };
}

/** A text for display: white space is spaces, and there are no control characters. */
function clean(text) {
  const printable = text.replace(/\p{White_Space}/gu, " ").replace(/\p{Cc}/gu, "").replace(/^ +/, "");
  return [...printable.slice(0, 2 * MAX_CHARACTERS)].slice(0, MAX_CHARACTERS).join("").trimEnd();
}

/** The hash of the notes of a chart after the checks of the index: long notes without length are taps. */
function hashNotes({ keys, notes, timingPoints = 0 }) {
  if (notes.length > MAX_NOTES) refuse(`more than ${MAX_NOTES} notes`);
  if (timingPoints > MAX_TIMING_POINTS) refuse(`more than ${MAX_TIMING_POINTS} timing points`);
  for (const note of notes) if (note.endUs !== undefined && note.endUs <= note.startUs) note.endUs = undefined;
  const outcome = hashTimedNotes(keys, notes);
  const isHeld = (note) => Number(note.endUs !== undefined);
  notes.sort((a, b) => a.startUs - b.startUs || a.column - b.column || isHeld(a) - isHeld(b) || a.endUs - b.endUs || 0);
  const ends = new Float64Array(keys).fill(-Infinity);
  for (const { startUs, column, endUs } of notes) {
    if (startUs < ends[column]) refuse(`note inside a long note at ${Math.floor(startUs / 1000)} ms`);
    ends[column] = endUs ?? startUs;
  }
  return outcome;
}
