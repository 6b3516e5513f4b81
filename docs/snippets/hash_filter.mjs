// Tells which note hashes an index may know: node hash_filter.mjs filter.bin < hashes.txt
//
// curl -L -o filter.bin "$BASE/api/charts/filter"
import { readFileSync } from "node:fs";

const HEADER_BYTES = 44;
const u64 = (value) => BigInt.asUintN(64, value);

class HashFilter {
  constructor(buffer) {
    const header = new DataView(buffer);
    const magic = header.getUint32(0, false);
    this.sequence = header.getBigUint64(8, true);
    this.count = header.getBigUint64(16, true);
    this.seed = header.getBigUint64(24, true);
    this.segmentLength = header.getUint32(32, true);
    this.segmentCountLength = header.getUint32(36, true);
    this.fingerprints = new Uint8Array(buffer, HEADER_BYTES);
    const complete = this.fingerprints.length === header.getUint32(40, true);
    if (magic !== 0x43494846 || header.getUint32(4, true) !== 1 || !complete) throw new Error("no hash filter of version 1");
  }

  /** False if the index did not know the hash at `sequence`. */
  mayContain(noteHash) {
    // The first 8 bytes, of which the first is the lowest.
    const key = BigInt(`0x${noteHash.slice(0, 16).match(/../g).reverse().join("")}`);
    let mixed = u64(key + this.seed);
    mixed = u64((mixed ^ (mixed >> 33n)) * 0xff51afd7ed558ccdn);
    mixed = u64((mixed ^ (mixed >> 33n)) * 0xc4ceb9fe1a85ec53n);
    mixed ^= mixed >> 33n;
    const mask = this.segmentLength - 1;
    const first = Number((mixed * BigInt(this.segmentCountLength)) >> 64n);
    const second = (first + this.segmentLength) ^ (Number((mixed >> 18n) & 0xffffffffn) & mask);
    const third = (first + 2 * this.segmentLength) ^ (Number(mixed & 0xffffffffn) & mask);
    const found = this.fingerprints[first] ^ this.fingerprints[second] ^ this.fingerprints[third];
    return found === Number((mixed ^ (mixed >> 32n)) & 0xffn);
  }
}

const { buffer } = new Uint8Array(readFileSync(process.argv[2]));
const filter = new HashFilter(buffer);
const lines = readFileSync(0, "utf8").split(/\s+/).filter(Boolean);
process.stdout.write(lines.map((hash) => `${hash} ${filter.mayContain(hash) ? "maybe" : "unknown"}\n`).join(""));
