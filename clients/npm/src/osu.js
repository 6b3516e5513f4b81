// Reads .osu files as osu! (lazer) plays them in its mode 3.
//
// Citations are of ppy/osu e9451fe7. A line that the game cannot read is skipped whole, and no other.

import { microseconds, refuse, roundToEven, single, trimEnd, trim as trimOf } from "./note_hash.js";

const MODE = 3;
/** LegacyBeatmapDecoder: that of a file without header. */
const DEFAULT_VERSION = 14;
/** LegacyBeatmapEncoder.FIRST_LAZER_VERSION: coordinates have decimals. */
const FIRST_LAZER_VERSION = 128;
/** Parsing.MAX_PARSE_VALUE and MAX_COORDINATE_VALUE. */
const MAX_VALUE = 2 ** 31 - 1;
const MAX_COORDINATE = 131_072;
/** LegacyDecoder.Section, in the order of its values. */
const SECTIONS = [
  "General", "Editor", "Metadata", "Difficulty", "Events", "TimingPoints", "Colours", "HitObjects", "Variables",
  "Fonts", "CatchTheBeat", "Mania",
];
/** LegacyBeatmapDecoder.handleMetadata. */
const TEXTS = ["Title", "TitleUnicode", "Artist", "ArtistUnicode", "Creator", "Version"];
/** LegacyHitObjectType. */
const [CIRCLE, SLIDER, SPINNER, HOLD] = [1, 2, 8, 128];

/** Why the game skips a line. */
class Skipped extends Error {}

function skip() {
  throw new Skipped();
}

/** The chart of a file: its notes, and what it is called. */
export function readOsu(text) {
  const lines = text.split(/\r\n|\r|\n/);
  const chart = { version: versionOf(lines), mode: 0, circleSize: 5, sliderMultiplier: 1.4, points: [], objects: [], texts: {} };
  let section = "General";
  for (const raw of lines) {
    const line = contentOf(raw, section);
    if (line === "") continue;
    if (line.startsWith("[") && line.endsWith("]")) section = sectionOf(line.slice(1, -1));
    else readLine(chart, section, line);
  }
  if (chart.mode !== MODE) refuse(`unsupported game mode ${chart.mode} (only mode 3 is indexed)`);
  return { keys: keysOf(chart), notes: notesOf(chart), timingPoints: chart.points.length, ...textsOf(chart.texts) };
}

/** What a chart is called. An empty original name is the romanised one. */
function textsOf({ Title = "", TitleUnicode, Artist = "", ArtistUnicode, Creator = "", Version = "" }) {
  return { title: TitleUnicode || Title, artist: ArtistUnicode || Artist, creator: Creator, difficulty: Version };
}

/** Decoder.GetDecoder: the version of the format, by the first line with text. */
function versionOf(lines) {
  const line = trim(lines.find((line) => trim(line) !== "") ?? refuse("an empty file"));
  if (line.startsWith("{")) refuse("a file in another format");
  const isHeader = (text) => text.startsWith("osu file format v");
  // The game compares by the rules of languages, which ignore some characters.
  if (isHeader(line) !== isHeader(line.replace(/[^ -~]/g, ""))) refuse("an unclear header");
  if (!isHeader(line)) return DEFAULT_VERSION;
  try {
    return integer(line.split("v").at(-1));
  } catch {
    return refuse("a header without version");
  }
}

/** LegacyDecoder.ParseStreamInto: a line without its comment, or nothing. */
function contentOf(line, section) {
  if (trim(line).startsWith("//")) return "";
  const comment = section === "Metadata" ? -1 : line.indexOf("//");
  return trimEnd(comment > 0 ? line.slice(0, comment) : line, isSpace);
}

/** Enum.TryParse: a name, a number, or the union of several names; `General` if it is none of these. */
function sectionOf(name) {
  const [, number] = /^([+-]?\d+)[\t-\r ]*\0*$/.exec(name.trimStart()) ?? [];
  if (number) return Math.abs(Number(number)) <= MAX_VALUE ? SECTIONS[Number(number)] : "General";
  const values = name.split(",").map((part) => SECTIONS.indexOf(trim(part)));
  return values.includes(-1) ? "General" : SECTIONS[values.reduce((all, value) => all | value)];
}

/** LegacyBeatmapDecoder.ParseLine. */
function readLine(chart, section, line) {
  try {
    if (section === "General") readMode(chart, line);
    else if (section === "Metadata") readText(chart, line);
    else if (section === "Difficulty") readDifficulty(chart, line);
    else if (section === "TimingPoints") chart.points.push(timingPoint(line, offsetOf(chart)));
    else if (section === "HitObjects") chart.objects.push(hitObject(line, chart));
  } catch (error) {
    if (!(error instanceof Skipped)) throw error;
  }
}

/** LegacyBeatmapDecoder.EARLY_VERSION_TIMING_OFFSET. */
const offsetOf = ({ version }) => (version < 5 ? 24 : 0);

/** LegacyDecoder.SplitKeyVal. */
function keyAndValue(line) {
  const colon = line.indexOf(":");
  return colon < 0 ? [trim(line), ""] : [trim(line.slice(0, colon)), trim(line.slice(colon + 1))];
}

/** LegacyBeatmapDecoder.handleGeneral. */
function readMode(chart, line) {
  const [key, value] = keyAndValue(line);
  if (key !== "Mode") return;
  const mode = integer(value);
  chart.mode = mode >= 0 && mode <= 3 ? mode : skip();
}

/** LegacyBeatmapDecoder.handleMetadata. */
function readText(chart, line) {
  const [key, value] = keyAndValue(line);
  if (TEXTS.includes(key)) chart.texts[key] = value;
}

/** LegacyBeatmapDecoder.handleDifficulty. */
function readDifficulty(chart, line) {
  const [key, value] = keyAndValue(line);
  if (key === "CircleSize") chart.circleSize = float(value);
  else if (key === "SliderMultiplier") chart.sliderMultiplier = double(value);
}

/** LegacyBeatmapDecoder.handleTimingPoint. */
function timingPoint(line, offset) {
  const fields = line.split(",");
  const time = double(trim(fields[0])) + offset;
  const length = trim(fields[1] ?? skip());
  const beatLength = /^[+-]?nan$/i.test(length) ? NaN : double(length);
  if (fields.length > 2 && (fields[2][0] ?? skip()) !== "0" && integer(fields[2]) < 1) skip();
  for (const index of [3, 4, 5, 7]) if (fields.length > index) integer(fields[index]);
  const isTiming = fields.length < 7 || (fields[6][0] ?? skip()) === "1";
  return isTiming && Number.isNaN(beatLength) ? skip() : { time, beatLength, isTiming };
}

// --- Objects ---

/** ConvertHitObjectParser.Parse. */
function hitObject(line, chart) {
  const [fields, offset] = [line.split(","), offsetOf(chart)];
  const field = (index) => fields[index] ?? skip();
  const [x, y] = [coordinate(field(0), chart), coordinate(field(1), chart)];
  const start = double(field(2)) + offset;
  const [type] = [integer(field(3)), integer(field(4))];
  const object = { x, start, type };
  if (type & CIRCLE) {
    if (fields.length > 5) checkSamples(fields[5]);
  } else if (type & SLIDER) {
    object.slider = slider(fields, [x, y], chart);
  } else if (type & SPINNER) {
    double(field(5));
    if (fields.length > 6) checkSamples(fields[6]);
  } else if (type & HOLD) {
    const [end, ...samples] = fields[5] ? fields[5].split(":") : [field(2)];
    object.end = start + (Math.max(start, double(end)) + offset - start);
    checkSamples(samples.join(":"));
  } else {
    skip();
  }
  return object;
}

function coordinate(text, { version }) {
  const value = float(text, MAX_COORDINATE);
  return version >= FIRST_LAZER_VERSION ? value : Math.trunc(value);
}

/**
 * ConvertHitObjectParser.readCustomSampleBanks: skips the line of an object with others than the game reads.
 */
function checkSamples(text, isBanksOnly = false) {
  if (text === "") return;
  const parts = text.split(":");
  if (parts.length < 2) skip();
  for (const part of parts.slice(0, isBanksOnly ? 2 : 4)) integer(part);
}

/** The slider part of ConvertHitObjectParser.Parse: its spans and its length. */
function slider(fields, head, chart) {
  const repeats = integer(fields[6] ?? skip());
  if (repeats > 9000) skip();
  const spans = Math.max(1, repeats);
  const length = fields.length > 7 ? Math.max(0, double(fields[7], MAX_COORDINATE)) : 0;
  if (fields.length > 10) checkSamples(fields[10], true);
  if (fields[9]) for (const samples of fields[9].split("|").slice(0, spans + 1)) checkSamples(samples);
  return { spans, length, points: pathPoints(fields[5], head, chart) };
}

/** ConvertHitObjectParser.convertPathString: the points of the path of a slider, its head included. */
function pathPoints(text, head, chart) {
  const [points, segments] = [[], []];
  for (const part of text.split("|")) {
    if (part === "") skip();
    if (/\p{L}/u.test(part[0])) {
      segments.push(points.length);
      if (points.length === 0) points.push([0, 0]);
    } else {
      const [x, y] = part.split(":");
      const position = [coordinate(x, chart), coordinate(y ?? skip(), chart)];
      points.push(position.map((value, axis) => single(value - head[axis])));
    }
  }
  if (segments.some((start, index) => start === (segments[index + 1] ?? points.length))) skip();
  return segments.length > 0 ? points.slice(segments[0]) : [];
}

/** ManiaBeatmapConverter.ConvertHitObject and PassThroughPatternGenerator. */
function notesOf(chart) {
  const points = chart.objects.some(({ slider }) => slider) && controlPointsOf(chart.points);
  const keys = keysOf(chart);
  return chart.objects.map(({ x, start, type, end, slider }) => {
    const kind = type & (CIRCLE | SLIDER | SPINNER | HOLD);
    if (kind === SPINNER) refuse("a spinner, whose column is random");
    if (kind !== CIRCLE && kind !== SLIDER && kind !== HOLD) refuse("an object of several types");
    const endMs = slider ? start + durationOf(slider, start, chart, points) : end;
    const endUs = endMs === undefined ? undefined : microseconds(endMs, 1000);
    return { startUs: microseconds(start, 1000), column: columnOf(x, keys), endUs };
  });
}

/** LegacyBeatmapDecoder.applyDifficultyRestrictions and ManiaBeatmapConverter.getColumnCount. */
const keysOf = ({ circleSize }) => roundToEven(clamp(1, circleSize, 18));

/** LegacyPatternGenerator.GetColumn. */
function columnOf(x, keys) {
  return clamp(0, Math.floor(single(single(x) / single(512 / keys))), keys - 1);
}

/** ConvertSlider.Duration and ApplyDefaultsToSelf. */
function durationOf({ spans, length, points: path }, start, { sliderMultiplier }, points) {
  if (length === 0) refuse("a slider without length");
  // SliderPath.calculateLength: its length is that of the file, unless the path ends with one point twice.
  const [last, other] = [path.at(-1), path.at(-2)];
  if (!other) return 0;
  if (last[0] === other[0] && last[1] === other[1]) refuse("a slider with an unclear length");
  const velocity = (100 * clamp(0.4, sliderMultiplier, 3.6) * points.velocityAt(start)) / points.beatLengthAt(start);
  // ConvertHitObjectParser.createSlider: without length there are no repeats.
  return ((length <= 1e-7 ? 1 : spans) * length) / velocity;
}

// --- Timing ---

const clamp = (least, value, most) => Math.max(least, Math.min(most, value));

/**
 * LegacyBeatmapDecoder.flushPendingPoints: the lengths of beats and the velocities of sliders, by time. Of the
 * points at one time, the first that changes the timing counts, and the last that does not.
 */
function controlPointsOf(points) {
  const [beatLengths, velocities] = [[], []];
  for (let start = 0, end = 0; start < points.length; start = end) {
    const { time } = points[start];
    while (points[end]?.time === time) end += 1;
    // What is out of order has another effect, by what was read before.
    if (points[end]?.time < time) refuse("sliders with timing points out of order");
    const group = points.slice(start, end);
    const timing = group.find(({ isTiming }) => isTiming);
    const { beatLength } = group.findLast(({ isTiming }) => !isTiming) ?? timing;
    // The limits of TimingControlPoint.BeatLengthBindable and DifficultyControlPoint.SliderVelocityBindable.
    if (timing) beatLengths.push({ time, value: clamp(6, timing.beatLength, 60_000) });
    velocities.push({ time, value: clamp(0.1, beatLength < 0 ? 100 / -beatLength : 1, 10) });
  }
  return {
    beatLengthAt: (time) => (at(beatLengths, time) ?? beatLengths[0])?.value ?? 1000,
    velocityAt: (time) => at(velocities, time)?.value ?? 1,
  };
}

/** The last point at or before a time. */
function at(points, time) {
  let [low, high] = [0, points.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle].time <= time) low = middle + 1;
    else high = middle;
  }
  return points[low - 1];
}

// --- Numbers and texts ---

/** char.IsWhiteSpace, which differs from what JavaScript takes for white space. */
const isSpace = (character) =>
  !(character > " " && character <= "~") && (character === "\x85" || (character !== "\ufeff" && /\s/.test(character)));

const trim = (text) => trimOf(text, isSpace);

/** The value of up to 9 digits, which most numbers of a file are: expressions take longer. NaN for other texts. */
function digits(text) {
  let value = text.length > 0 && text.length < 10 ? 0 : NaN;
  for (let index = 0; index < text.length && value >= 0; index += 1) {
    const digit = text.charCodeAt(index) - 48;
    value = digit >= 0 && digit <= 9 ? 10 * value + digit : NaN;
  }
  return value;
}

/**
 * Parsing.ParseDouble with the grammar of .NET: blanks around, commas between digits, zero characters after.
 */
function double(text, limit = MAX_VALUE) {
  const simple = digits(text);
  if (simple <= limit) return simple;
  const [, number] = /^[\t-\r ]*([+-]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)[\t-\r ]*\0*$/i.exec(text) ?? skip();
  const value = Number(number.replaceAll(",", ""));
  return Math.abs(value) <= limit ? value : skip();
}

/** Parsing.ParseFloat. */
function float(text, limit = 2 ** 31) {
  const value = single(double(text, Infinity));
  return Math.abs(value) <= limit ? value : skip();
}

/** Parsing.ParseInt. */
function integer(text) {
  const simple = digits(text);
  if (simple >= 0) return simple;
  const [, number] = /^[\t-\r ]*([+-]?\d+)[\t-\r ]*\0*$/.exec(text) ?? skip();
  return Math.abs(Number(number)) <= MAX_VALUE ? Number(number) : skip();
}
