// BLAKE3, and the test vectors of note hash, variant and preview.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { blake3 } from "../../../../clients/npm/src/blake3.js";
import { hashChartFile } from "../../../../clients/npm/src/chart_files.js";
import { canonicalBytes, hashCanonicalNotes, hashOfTimedNotes, variantOf } from "../../../../clients/npm/src/note_hash.js";
import { canonicalNotes, decode } from "../../../../services/pages/assets/preview_notes.js";

const hex = (bytes) => Buffer.from(bytes).toString("hex");

// From test_vectors.json of the BLAKE3 repository: the first 32 bytes of each hash. Byte i of an input is i
// modulo 251.
const BLAKE3_VECTORS = {
  0: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
  1: "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
  1023: "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11",
  1024: "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
  1025: "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
  2048: "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a",
  2049: "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030",
  3072: "b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2",
  3073: "7124b49501012f81cc7f11ca069ec9226cecb8a2c850cfe644e327d22d3e1cd3",
  4096: "015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969",
  4097: "9b4052b38f1c5fc8b1f9ff7ac7b27cd242487b3d890d15c96a1c25b8aa0fb995",
  5120: "9cadc15fed8b5d854562b26a9536d9707cadeda9b143978f319ab34230535833",
  5121: "628bd2cb2004694adaab7bbd778a25df25c47b9d4155a55f8fbd79f2fe154cff",
  6144: "3e2e5b74e048f3add6d21faab3f83aa44d3b2278afb83b80b3c35164ebeca205",
  6145: "f1323a8631446cc50536a9f705ee5cb619424d46887f3c376c695b70e0f0507f",
  7168: "61da957ec2499a95d6b8023e2b0e604ec7f6b50e80a9678b89d2628e99ada77a",
  7169: "a003fc7a51754a9b3c7fae0367ab3d782dccf28855a03d435f8cfe74605e7817",
};

test("BLAKE3 has the hashes of its test vectors", () => {
  for (const [length, expected] of Object.entries(BLAKE3_VECTORS)) {
    const input = Uint8Array.from({ length }, (_, index) => index % 251);
    assert.equal(hex(blake3(input)), expected, `${length} bytes`);
  }
});

const vectorsFile = new URL("../../../../crates/chartfile/golden/note_hash_v1.json", import.meta.url);
const golden = JSON.parse(readFileSync(vectorsFile));

test("test vectors of the note hash are reproduced", () => {
  assert.ok(golden.vectors.length > 10);
  for (const { name, keys, notes, canonicalHex, hash } of golden.vectors) {
    assert.equal(hashOfTimedNotes(keys, notes).hash, hash, name);
    const bytes = Buffer.from(canonicalHex, "hex");
    assert.equal(hex(blake3(bytes)), hash, name);
  }
});

const variantsFile = new URL("../../../../crates/chartfile/golden/variant_v1.json", import.meta.url);

test("test vectors of the variant are reproduced", () => {
  const { vectors } = JSON.parse(readFileSync(variantsFile));
  assert.ok(vectors.some(({ variant }) => variant) && vectors.some(({ variant }) => !variant));
  for (const { name, keys, notes, variant } of vectors) {
    assert.equal(variantOf(keys, notes) ?? null, variant, name);
  }
});

/** The example of crates/chartfile/src/note_hash.rs, and the order of notes in one place. */
test("canonical bytes are sorted", () => {
  const example = [[500, 2, 1000], [0, 0, -1]];
  assert.equal(hex(canonicalBytes(4, example)), "04" + "000000000000" + "f40100000201e8030000");
  const samePlace = [[0, 0, 2000], [0, 0, 1000], [0, 0, -1]];
  const longNotes = "000000000001e8030000" + "000000000001d0070000";
  assert.equal(hex(canonicalBytes(4, samePlace)), "04" + "000000000000" + longNotes);
  assert.equal(hashCanonicalNotes(4, [[0, 0, -1]]), golden.vectors[0].hash);
});

test("refused test vectors have no hash", () => {
  for (const { name, keys, notes } of golden.refused) {
    assert.ok(hashOfTimedNotes(keys, notes).reason, name);
  }
});

test("other files are not told", () => {
  for (const name of ["song.osz", "song", ""]) {
    assert.match(hashChartFile(name, new Uint8Array(3))[0].reason, /only \.osu, \.qua/, name);
  }
  assert.match(hashChartFile("a.osu", new Uint8Array(17 * 1024 * 1024))[0].reason, /larger than/);
});

const previewsFile = new URL("../../../../crates/chartfile/golden/chart_preview_v1.json", import.meta.url);

test("previews of the test vectors have their note hashes", () => {
  const vectors = JSON.parse(readFileSync(previewsFile));
  assert.ok(vectors.length > 5);
  for (const { name, preview, hash } of vectors) {
    assert.equal(hashCanonicalNotes(preview.keys, canonicalNotes(decode(preview))), hash, name);
  }
});
