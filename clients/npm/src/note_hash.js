// Computes the note hash, version 1, and the variant, version 1, of notes. Has what the readers of all formats
// share.

import { blake3 } from "./blake3.js";

/** A reason why there is no hash. */
export class Refusal extends Error {}

export function refuse(reason) {
  throw new Refusal(reason);
}

/** The result, or `reason` with the reason that was thrown. */
export function explained(compute) {
  try {
    return compute();
  } catch (error) {
    if (error instanceof Refusal) return { reason: error.message };
    throw error;
  }
}

// --- Numbers and texts, as the games compute with them ---

/** The nearest number in single precision. */
export const single = Math.fround;

/** The nearest whole number, of two the even one. */
export function roundToEven(value) {
  const rounded = Math.round(value);
  return rounded - value === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

/** A time in whole microseconds, of which it has so many in its unit; halves are rounded away from zero. */
export const microseconds = (time, inUnit) => Math.sign(time) * Math.round(Math.abs(time) * inUnit);

/** A text without some characters around it. A loop takes no longer for many of them, as expressions do. */
export function trim(text, isTrimmed, atStart = true) {
  let [start, end] = [0, text.length];
  while (atStart && start < end && isTrimmed(text[start])) start += 1;
  while (end > start && isTrimmed(text[end - 1])) end -= 1;
  return text.slice(start, end);
}

export const trimEnd = (text, isTrimmed) => trim(text, isTrimmed, false);

// --- Hashes ---

/** The note hash of notes with times in microseconds; throws a reason if there is none. */
export function hashTimedNotes(keys, notes) {
  if (notes.length === 0) refuse("no notes");
  if (!(keys >= 4 && keys <= 7)) refuse(`key count ${keys} (only 4 to 7 are indexed)`);
  const first = notes.reduce((least, { startUs }) => Math.min(least, startUs), Infinity);
  const relative = (timeUs) => {
    const ms = Math.floor((timeUs - first + 500) / 1000);
    return ms >= 0 && ms <= 0xffffffff ? ms : refuse("time out of range");
  };
  const canonical = notes.map(({ startUs, column, endUs }) => {
    if (!(column >= 0 && column < keys)) refuse(`note in column ${column} of a chart with ${keys} keys`);
    const [start, end] = [relative(startUs), endUs > startUs ? relative(endUs) : -1];
    return [start, column, end > start ? end : -1];
  });
  return { hash: hashCanonicalNotes(keys, canonical), keys, variant: variantOf(keys, canonical) };
}

/**
 * The note hash of notes with times in microseconds, any order.
 *
 * @param {number} keys the key count
 * @param {{startUs: number, column: number, endUs?: number}[]} notes
 * @returns {{hash: string, keys: number, variant?: string} | {reason: string}}
 */
export function hashOfTimedNotes(keys, notes) {
  return explained(() => hashTimedNotes(keys, notes));
}

/**
 * The note hash of canonical notes: start in milliseconds after the first, column, and end, or -1 for a tap.
 * Sorts them.
 *
 * @param {number} keys the key count
 * @param {[number, number, number][]} notes
 * @returns {string} 64 lower-case hexadecimal digits
 */
export function hashCanonicalNotes(keys, notes) {
  return hex(blake3(canonicalBytes(keys, notes)));
}

/**
 * The variant of canonical notes in the order of the note hash; undefined if they have too few rows, or too few
 * patterns.
 *
 * @param {number} keys the key count
 * @param {[number, number, number][]} notes
 * @returns {string | undefined} 64 lower-case hexadecimal digits
 */
export function variantOf(keys, notes) {
  const rows = [];
  let previous = -Infinity;
  for (const [start, column] of notes) {
    if (start - previous > 3) rows.push(0);
    rows[rows.length - 1] |= 1 << column;
    previous = start;
  }
  // The last four rows, of up to 7 columns, are 28 bits.
  let window = 0;
  const windows = new Set();
  for (const [index, row] of rows.entries()) {
    window = ((window << 7) | row) & 0xfffffff;
    if (index >= 3) windows.add(window);
  }
  return rows.length >= 32 && windows.size >= 16 ? hex(blake3(Uint8Array.from([1, keys, ...rows]))) : undefined;
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

function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
