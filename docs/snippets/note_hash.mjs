// Computes note hashes or variants: node note_hash.mjs vectors.json   (/docs/note-hash/vectors.json)
import { readFileSync } from "node:fs";

// BLAKE3 without its key and derivation modes: https://github.com/BLAKE3-team/BLAKE3-specs
const IV = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
const PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
const COLUMNS_AND_DIAGONALS = [
  [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
  [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14],
];
const [CHUNK_START, CHUNK_END, PARENT, ROOT] = [1, 2, 4, 8];

const rotate = (word, bits) => (word >>> bits) | (word << (32 - bits));

function compress(chaining, words, counter, length, flags) {
  const v = Int32Array.of(...chaining, ...IV.slice(0, 4), counter, 0, length, flags);
  for (let round = 0; round < 7; round++) {
    COLUMNS_AND_DIAGONALS.forEach(([a, b, c, d], i) => {
      for (const [word, turn, last] of [[words[2 * i], 16, 12], [words[2 * i + 1], 8, 7]]) {
        v[a] += v[b] + word;
        v[d] = rotate(v[d] ^ v[a], turn);
        v[c] += v[d];
        v[b] = rotate(v[b] ^ v[c], last);
      }
    });
    words = PERMUTATION.map((i) => words[i]);
  }
  return Array.from({ length: 8 }, (_, i) => v[i] ^ v[i + 8]);
}

function blake3(data, chunk = 0, root = ROOT) {
  if (data.length <= 1024) {
    const end = Math.floor(Math.max(data.length - 1, 0) / 64);
    let chaining = IV;
    for (let i = 0; i <= end; i++) {
      const block = new Uint8Array(64);
      const part = data.subarray(64 * i, 64 * i + 64);
      block.set(part);
      const view = new DataView(block.buffer);
      const words = Array.from({ length: 16 }, (_, word) => view.getInt32(4 * word, true));
      const flags = (i === 0 ? CHUNK_START : 0) | (i === end ? CHUNK_END | root : 0);
      chaining = compress(chaining, words, chunk, part.length, flags);
    }
    return chaining;
  }
  let left = 1024;
  while (2 * left < data.length) left *= 2;
  const children = [...blake3(data.subarray(0, left), chunk, 0), ...blake3(data.subarray(left), chunk + left / 1024, 0)];
  return compress(IV, children, 0, 64, PARENT | root);
}

function digest(data) {
  const words = new DataView(new ArrayBuffer(32));
  blake3(data).forEach((word, i) => words.setInt32(4 * i, word, true));
  return Array.from(new Uint8Array(words.buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The ordered [start, column, kind, end] in milliseconds of notes in microseconds; a tap has no end. */
function canonical(notes) {
  const first = Math.min(...notes.map((note) => note.startUs));
  const milliseconds = (time) => Math.floor((time - first + 500) / 1000);
  const ordered = notes.map(({ startUs, column, endUs }) => {
    const [start, end] = [milliseconds(startUs), milliseconds(endUs ?? startUs)];
    const isLong = end > start; // a long note whose end is not after its start is a tap
    return [start, column, isLong ? 1 : 0, isLong ? end : 0];
  });
  return ordered.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2] || a[3] - b[3]);
}

/** The note hash of canonical notes. */
function noteHash(keys, notes) {
  const data = new DataView(new ArrayBuffer(1 + 10 * notes.length));
  data.setUint8(0, keys);
  let length = 1;
  for (const [start, column, isLong, end] of notes) {
    data.setUint32(length, start, true);
    data.setUint8(length + 4, column);
    data.setUint8(length + 5, isLong);
    length += 6;
    if (isLong) {
      data.setUint32(length, end, true);
      length += 4;
    }
  }
  return digest(new Uint8Array(data.buffer, 0, length));
}

/** The variant of canonical notes, of which start and column count; null for too few or too similar rows. */
function variant(keys, notes) {
  const rows = [];
  let previous = -Infinity;
  for (const [start, column] of notes) {
    if (start - previous > 3) rows.push(0);
    rows[rows.length - 1] |= 1 << column;
    previous = start;
  }
  const windows = new Set(rows.slice(3).map((_, i) => rows.slice(i, i + 4).join()));
  return rows.length < 32 || windows.size < 16 ? null : digest(Uint8Array.from([1, keys, ...rows]));
}

const { variantVersion, vectors } = JSON.parse(readFileSync(process.argv[2], "utf8"));
for (const { keys, notes, name } of vectors) {
  // The notes of a vector of a variant are [start, column] in milliseconds.
  console.log(variantVersion ? variant(keys, notes) ?? "none" : noteHash(keys, canonical(notes)), name);
}
