// What the curve of a chart says at the pointer, and the patterns below it (docs/formats/patterns.md).

import { lastAtMost } from "./preview_notes.js";

export const PATTERNS = ["jack", "chordjack", "longjack", "trill", "jumptrill", "stream", "jumpstream", "handstream", "chordstream"];
const [JACK, CHORDJACK, LONGJACK, TRILL, JUMPTRILL, STREAM, JUMPSTREAM, HANDSTREAM, CHORDSTREAM] = PATTERNS.keys();
const ROW_MS = 2;
const REPEAT_MS = 340;
const FAST_MS = 250;
/** In how many parts the band names the pattern of most rows. */
const PARTS = 96;
const SVG = "http://www.w3.org/2000/svg";

/**
 * Adds both to the timeline.
 *
 * @param {HTMLElement} timeline whose width is the length of the chart
 * @param {{keys: number, lengthMs: number, columns: {starts: Float64Array}[]}} chart
 * @param {Float64Array} starts of all notes, sorted
 */
export function addBand(timeline, chart, starts) {
  const rows = classify(chart.keys, chart.columns);
  const length = Math.max(1, chart.lengthMs);
  timeline.append(drawBand(rows, length));
  const label = document.createElement("div");
  Object.assign(label, { className: "preview-at", hidden: true, ariaHidden: "true" });
  timeline.append(label);
  timeline.addEventListener("pointermove", ({ clientX }) => {
    const { left, width } = timeline.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (clientX - left) / width));
    const time = share * length;
    const seconds = Math.floor(time / 1000);
    const count = lastAtMost(starts, time + 500) - lastAtMost(starts, time - 500);
    const pattern = PATTERNS[mostOf(rows, time - 500, time + 500)];
    label.textContent = [`${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`, `${count}/s`, pattern].filter(Boolean).join(" · ");
    label.hidden = false;
    // It stays within the curve.
    label.style.left = `${share * (width - label.offsetWidth)}px`;
  });
  timeline.addEventListener("pointerleave", () => (label.hidden = true));
}

function drawBand(rows, length) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "band");
  svg.setAttribute("viewBox", `0 0 ${PARTS} 1`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  for (let part = 0; part < PARTS; part += 1) {
    const pattern = mostOf(rows, (part * length) / PARTS, ((part + 1) * length) / PARTS - 1);
    if (pattern < 0) continue;
    const rect = svg.appendChild(document.createElementNS(SVG, "rect"));
    for (const [name, value] of Object.entries({ class: `p${pattern}`, x: part, width: 1, height: 1 })) rect.setAttribute(name, value);
  }
  return svg;
}

/** The class of most rows in a time; -1 if these have none. */
function mostOf({ starts, classes }, from, to) {
  const counts = new Uint32Array(PATTERNS.length);
  for (let row = lastAtMost(starts, from - 1) + 1; starts[row] <= to; row += 1) if (classes[row] >= 0) counts[classes[row]] += 1;
  const most = Math.max(...counts);
  return most ? counts.indexOf(most) : -1;
}

/** The starts of the rows, and the index of the class of each; -1 for none. */
export function classify(keys, columns) {
  // Sorted by start, then by column: a column takes three bits.
  const notes = Float64Array.from(columns.flatMap(({ starts }, column) => Array.from(starts, (start) => start * 8 + column))).sort();
  const [starts, shapes] = [[], []];
  for (const note of notes) {
    const [start, column] = [Math.floor(note / 8), note % 8];
    if (start - starts.at(-1) <= ROW_MS) shapes[shapes.length - 1] |= 1 << column;
    else {
      starts.push(start);
      shapes.push(1 << column);
    }
  }
  const count = starts.length;
  const sizes = shapes.map((shape) => shape.toString(2).replaceAll("0", "").length);
  const classes = new Int8Array(count).fill(-1);
  const gap = (row) => starts[row] - starts[row - 1];
  const repeats = (row) => row > 0 && (shapes[row] & shapes[row - 1]) !== 0 && gap(row) <= REPEAT_MS;
  const isFast = (row) => row > 0 && (shapes[row] & shapes[row - 1]) === 0 && gap(row) <= FAST_MS;
  // Each step overwrites those before it: the last one has precedence.
  for (let first = 0, end; first < count; first = end) {
    for (end = first + 1; end < count && isFast(end); ) end += 1;
    if (end - first >= 5) {
      for (let row = first; row < end; row += 1) {
        const window = Math.max(first, row - 3);
        const largest = Math.max(...sizes.slice(window, window + 4));
        classes[row] = largest === 1 ? STREAM : keys > 4 ? CHORDSTREAM : largest === 2 ? JUMPSTREAM : HANDSTREAM;
      }
    }
    for (const pattern of [TRILL, JUMPTRILL]) {
      for (let row = first; row + 6 <= end; row += 1) {
        const alternates = [2, 3, 4, 5].every((offset) => shapes[row + offset] === shapes[row + offset - 2]);
        const hasChord = sizes[row] > 1 || sizes[row + 1] > 1;
        if (alternates && hasChord === (pattern === JUMPTRILL)) classes.fill(pattern, row, row + 6);
      }
    }
  }
  for (let row = 1; row < count; row += 1) if (repeats(row)) classes[row] = sizes[row] > 1 && sizes[row - 1] > 1 ? CHORDJACK : JACK;
  for (let row = 0; row + 5 <= count; row += 1) {
    const shared = shapes[row] & shapes[row + 1] & shapes[row + 2] & shapes[row + 3] & shapes[row + 4];
    if (shared && [1, 2, 3, 4].every((offset) => repeats(row + offset))) classes.fill(LONGJACK, row, row + 5);
  }
  return { starts: Float64Array.from(starts), classes };
}
