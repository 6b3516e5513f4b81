// The notes of a preview (docs/formats/preview.md): their times, and where they are while they scroll.

const MAX_MEASURES = 20_000;

/** The colour of each column by the number of keys: columns of a hand alternate, and a middle column stands out. */
export const NOTE_COLOURS = { 4: "1221", 5: "12321", 6: "121121", 7: "1213121" };

/** The notes and measure lines of a preview. */
export function decode({ keys, lengthMs, columns, timing, scroll }) {
  return { keys, lengthMs, timing, scroll, columns: columns.map(decodeColumn), measures: measureTimes(timing, lengthMs) };
}

/** The start of the second in which most notes begin; `starts` are sorted. */
export function densestSecond(starts) {
  let [first, most, densest] = [0, 0, 0];
  starts.forEach((time, index) => {
    while (starts[first] <= time - 1000) first += 1;
    if (index - first + 1 > most) [most, densest] = [index - first + 1, starts[first]];
  });
  return densest;
}

/** On which part of a beat a note is: 0 a whole one, 1 a half, 2 a third, 3 a quarter, 4 any other. */
export function snapOf(timing, time) {
  let index = timing.length - 1;
  while (index > 0 && timing[index][0] > time) index -= 1;
  if (index < 0) return 4;
  const [from, bpm] = timing[index];
  const beats = ((time - from) * bpm) / 60_000;
  const snap = [1, 2, 3, 4].findIndex((parts) => Math.abs(beats * parts - Math.round(beats * parts)) < 0.03 * parts);
  return snap < 0 ? 4 : snap;
}

/** Starts and ends of the notes of a column; the end of a tap is -1. */
function decodeColumn(deltas) {
  const [starts, ends] = [new Float64Array(deltas.length), new Float64Array(deltas.length).fill(-1)];
  let [count, time] = [0, 0];
  for (const delta of deltas) {
    if (delta < 0) ends[count - 1] = time - delta;
    else starts[count++] = time += delta;
  }
  return { starts: starts.subarray(0, count), ends: ends.subarray(0, count) };
}

/** The notes as note_hash.js takes them: start, column, and end, or -1 for a tap. */
export function canonicalNotes({ columns }) {
  return columns.flatMap(({ starts, ends }, column) => Array.from(starts, (start, index) => [start, column, ends[index]]));
}

/** The times of the measure lines. A BPM applies until the next one, and the first one also before its time. */
function measureTimes(timing, lengthMs) {
  const times = [];
  timing.forEach(([from, bpm, beats = 4], index) => {
    const until = Math.min(timing[index + 1]?.[0] ?? lengthMs, lengthMs);
    const step = (beats * 60_000) / bpm;
    // Lines closer than this would cover the notes.
    if (!(step >= 100)) return;
    const first = index === 0 || from < 0 ? from - Math.floor(from / step) * step : from;
    for (let time = first; time < until && times.length < MAX_MEASURES; time += step) times.push(time);
  });
  return Float64Array.from(times);
}

/** The index of the last of sorted values that is at most `value`; -1 if there is none. */
export function lastAtMost(values, value) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The position of a time, in milliseconds of scroll speed 1. */
export function scrollPosition(scroll) {
  const times = Float64Array.from(scroll, ([time]) => time);
  const positions = new Float64Array(times.length);
  for (let index = 1; index < times.length; index += 1) {
    positions[index] = positions[index - 1] + (times[index] - times[index - 1]) * scroll[index - 1][1];
  }
  return (time) => {
    const index = lastAtMost(times, time);
    if (index < 0) return times.length ? positions[0] - (times[0] - time) : time;
    return positions[index] + (time - times[index]) * scroll[index][1];
  };
}

/** A column sorted by position. `reach` is the highest position up to each note: positions can run backwards. */
export function layOut({ starts, ends }, positionOf) {
  const at = Float64Array.from(starts, positionOf);
  const to = Float64Array.from(ends, (end, index) => (end < 0 ? at[index] : positionOf(end)));
  const order = Uint32Array.from(at.keys()).sort((a, b) => Math.min(at[a], to[a]) - Math.min(at[b], to[b]));
  const low = Float64Array.from(order, (index) => Math.min(at[index], to[index]));
  const high = Float64Array.from(order, (index) => Math.max(at[index], to[index]));
  let reached = -Infinity;
  const reach = high.map((position) => (reached = Math.max(reached, position)));
  const pick = (values) => Float64Array.from(order, (index) => values[index]);
  return { low, high, reach, starts: pick(starts), ends: pick(ends) };
}
