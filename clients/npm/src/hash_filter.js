// Reads hash filters: docs/formats/hash-filter.md.

const HEADER_BYTES = 44;
const u64 = (value) => BigInt.asUintN(64, value);

/** A hash filter of version 1. */
export class HashFilter {
  /**
   * @param {Uint8Array} bytes the response of the filter
   * @throws {Error} if it is none of version 1
   */
  constructor(bytes) {
    const header = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const isFilter = bytes.length > HEADER_BYTES && header.getUint32(0, false) === 0x43494846;
    if (!isFilter || header.getUint32(4, true) !== 1) throw new Error("no hash filter of version 1");
    this.seed = header.getBigUint64(24, true);
    this.segmentLength = header.getUint32(32, true);
    this.segmentCountLength = header.getUint32(36, true);
    this.fingerprints = bytes.subarray(HEADER_BYTES);
    const { segmentLength, segmentCountLength, fingerprints } = this;
    // Then no key leads outside of the fingerprints.
    const areSegments = (segmentLength & (segmentLength - 1)) === 0 && segmentCountLength % segmentLength === 0;
    const length = segmentCountLength + 2 * segmentLength;
    const isComplete = fingerprints.length === length && header.getUint32(40, true) === length;
    if (!areSegments || segmentCountLength === 0 || !isComplete) throw new Error("the hash filter is damaged");
  }

  /** False if the index did not know the note hash when the filter was built. */
  has(noteHash) {
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
