// BLAKE3, the hash function of github.com/BLAKE3-team/BLAKE3-specs (sections 2.1 to 2.5).

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

/** The chaining value of a subtree: a chunk, or the parent of two, of which the left is as large as possible. */
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
