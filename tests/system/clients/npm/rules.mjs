// The rules of the readers that have no case in crates/chartfile/tests/cases: `node --test`.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";

import { hashChartFile, withoutReplaced } from "../../../../clients/npm/src/chart_files.js";
import { hashFile } from "../../../../clients/npm/src/files.js";
import { HashFilter } from "../../../../clients/npm/src/hash_filter.js";
import { hashFolder } from "../../../../clients/npm/src/node.js";

const text = (content) => new TextEncoder().encode(content);
const hashesOf = (charts) => charts.map(({ hash, reason }) => hash ?? reason);

/** The charts of an archive, each as its path and its hash, or why it has none. */
async function chartsIn(bytes) {
  const charts = await hashFile("a.zip", bytes);
  return charts.map(({ file, hash, reason }) => [file.replace("a.zip/", ""), hash ?? reason]);
}

// --- Archives ---

const CRC = (bytes) => {
  let crc = -1;
  for (const byte of bytes) for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (((crc ^ (byte >> bit)) & 1) * 0xedb88320);
  return ~crc >>> 0;
};

/**
 * A ZIP archive with these files, stored. A third value replaces the checksum, a fourth is the mode of Unix,
 * and a fifth replaces the size in the directory.
 */
function zipped(files) {
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const [name, bytes, crc = CRC(bytes), mode = 0o100644, size = bytes.length] of files) {
    const path = Buffer.from(name);
    const sizes = Buffer.alloc(12);
    [crc, bytes.length, bytes.length].forEach((value, index) => sizes.writeUInt32LE(value, 4 * index));
    const local = Buffer.concat([Buffer.from("504b030414000000000000000000", "hex"), sizes, Buffer.from([path.length, 0, 0, 0]), path, Buffer.from(bytes)]);
    const entry = Buffer.concat([Buffer.from("504b0102140314000000000000000000", "hex"), sizes, Buffer.alloc(18), path]);
    entry.writeUInt32LE(size, 24);
    entry.writeUInt16LE(path.length, 28);
    entry.writeUInt32LE((mode << 16) >>> 0, 38);
    entry.writeUInt32LE(offset, 42);
    parts.push(local);
    directory.push(entry);
    offset += local.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(Buffer.concat(directory).length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, ...directory, end]);
}

const simfile = readFileSync(new URL("../../../../crates/chartfile/tests/cases/simfiles/freezes/song.sm", import.meta.url));
const [{ hash }] = hashChartFile("song.sm", simfile);

test("files in archives are read, or have a reason", async () => {
  const nested = zipped([["song.sm", simfile], ["deeper.osz", zipped([["song.sm", simfile]])]]);
  const archive = zipped([
    ["a/song.sm", simfile],
    ["a/song.sm", simfile],
    ["a/../../song.sm", simfile],
    ["C:\\song.sm", simfile],
    ["b/damaged.sm", simfile, 5],
    ["b/link.sm", simfile, CRC(simfile), 0o120777],
    ["b/notes.txt", simfile],
    ["__MACOSX/b/song.sm", simfile],
    ["b/._song.sm", simfile],
    ["b/set.qp", nested],
    ["b/none.smzip", text("none")],
    ["c/song.sm", simfile],
    ["c/song.ssc", text("#NOTEDATA:;")],
  ]);
  assert.deepEqual(await chartsIn(archive), [
    ["a/song.sm", hash],
    ["a/song.sm", "an earlier file has the same name"],
    ["a/../../song.sm", "an unsafe path"],
    ["C:\\song.sm", "an unsafe path"],
    ["b/damaged.sm", "the archive is damaged"],
    ["b/link.sm", "not a regular file"],
    ["b/set.qp/song.sm", hash],
    ["b/set.qp/deeper.osz", "an archive in an archive in an archive"],
    ["b/none.smzip", "no archive, or a damaged one"],
    ["c/song.ssc", "no charts"],
  ]);
});

/** An archive of archives, each of which has these files. */
const packOf = (count, files) => zipped(Array.from({ length: count }, (_, number) => [`${number}.osz`, zipped(files)]));
const named = (count, extension) => Array.from({ length: count }, (_, number) => [`${number}.${extension}`, new Uint8Array()]);

const MB = 2 ** 20;

test("limits are for an archive with the archives in it, and refuse all of it", async () => {
  const chart = ["song.sm", simfile];
  assert.equal((await chartsIn(packOf(2, named(2_048, "sm")))).length, 4_096);
  for (const [archive, reason] of [
    [packOf(2, named(25_000, "txt")), "the archive has more than 50000 entries"],
    [zipped([chart, ...named(4_096, "osu")]), "the archive has more than 4096 chart files"],
    [packOf(2, [chart, ...named(2_048, "qua")]), "the archive has more than 4096 chart files"],
  ]) {
    assert.deepEqual(await chartsIn(archive), [["a.zip", reason]]);
  }
});

test("sizes are limited in total", async () => {
  const file = (name, size) => [name, new Uint8Array(), 0, 0o100644, size];
  const files = (count, extension, size) => Array.from({ length: count }, (_, number) => file(`${number}.${extension}`, size));
  // Of what is too large itself, its limit counts.
  for (const [extension, size, count, reason] of [
    ["osu", 16 * MB, 12, "the archive has more than 192 MB of chart files"],
    ["osu", 17 * MB, 12, "the archive has more than 192 MB of chart files"],
    ["osz", 128 * MB, 16, "the archive has more than 2048 MB of archives in it"],
    ["osz", 129 * MB, 16, "the archive has more than 2048 MB of archives in it"],
  ]) {
    const others = files(count, extension, size);
    const charts = await chartsIn(zipped(others));
    assert.equal(charts.length, count);
    assert.ok(charts.every(([, why]) => /^(larger than|the archive is damaged)/.test(why)), String(charts[0]));
    assert.deepEqual(await chartsIn(zipped([...others, file(`more.${extension}`, 1)])), [["a.zip", reason]]);
  }
});

test("names in other encodings are told apart", async () => {
  const names = ["\x82\xa0.sm", "\x82\xa2.sm", "\xe9.sm", "./\xe9.sm", "é.sm"];
  const inLatin1 = names.map((name, index) => [Buffer.from(name, index < 4 ? "latin1" : "utf8"), simfile]);
  const charts = await chartsIn(zipped(inLatin1));
  assert.deepEqual(charts.map(([, reason]) => reason), [hash, hash, hash, "an earlier file has the same name", hash]);
  assert.deepEqual([charts[2][0], charts[4][0]], ["é.sm", "é.sm"]);
  assert.notEqual(charts[0][0], charts[1][0]);
});

// --- Hash filters ---

/** A filter with these lengths, whose fingerprints are all zero. */
function filterWith(segmentLength, segmentCountLength, length = segmentCountLength + 2 * segmentLength, version = 1) {
  const bytes = Buffer.alloc(44 + segmentCountLength + 2 * segmentLength);
  bytes.write("CIHF");
  [segmentLength, segmentCountLength, length].forEach((value, index) => bytes.writeUInt32LE(value, 32 + 4 * index));
  bytes.writeUInt32LE(version, 4);
  return bytes;
}

test("a damaged hash filter is refused", () => {
  assert.equal(typeof new HashFilter(filterWith(4, 8)).has("0".repeat(64)), "boolean");
  for (const lengths of [[0, 8], [4, 0], [3, 9], [4, 6], [4, 8, 15]]) {
    assert.throws(() => new HashFilter(filterWith(...lengths)), /the hash filter is damaged/, String(lengths));
  }
  const bytes = filterWith(4, 8);
  for (const other of [bytes.subarray(0, -1), Buffer.concat([bytes, Buffer.alloc(1)])]) {
    assert.throws(() => new HashFilter(other), /the hash filter is damaged/);
  }
  for (const other of [bytes.subarray(0, 44), bytes.subarray(0, 3), filterWith(4, 8, 16, 2), Buffer.alloc(60)]) {
    assert.throws(() => new HashFilter(other), /no hash filter of version 1/);
  }
});

// --- Folders ---

/** The charts of a folder, each as its file and its hash, or why it has none. */
async function chartsBelow(folder) {
  const charts = [];
  for await (const { file, hash, reason } of hashFolder(folder)) charts.push([file, hash ?? reason]);
  return charts;
}

/** Makes folders in a folder until the path is longer than systems allow. */
function makeDeepFolder(folder) {
  const start = process.cwd();
  mkdirSync(folder);
  process.chdir(folder);
  for (let depth = 0; depth < 21; depth += 1) {
    mkdirSync("a".repeat(200));
    process.chdir("a".repeat(200));
  }
  process.chdir(start);
}

test("a folder that cannot be listed has a reason", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "rules-"));
  try {
    makeDeepFolder(path.join(folder, "b"));
    const files = ["a.sm", "c.sm"].map((name) => path.join(folder, name));
    for (const file of files) writeFileSync(file, simfile);
    const [first, [deep, reason], last, ...others] = await chartsBelow(folder);
    assert.deepEqual([first, last, others], [[files[0], hash], [files[1], hash], []]);
    assert.ok(deep.startsWith(path.join(folder, "b")), deep);
    assert.match(reason, /ENAMETOOLONG/);
  } finally {
    // Node.js cannot remove such a path.
    execFileSync("rm", ["-rf", folder]);
  }
});

test("a folder may be a file", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "rules-"));
  const write = (name, content) => writeFileSync(path.join(folder, name), content);
  try {
    write("a.sm", simfile);
    write("b.ssc", "");
    write("c.zip", zipped([["song.sm", simfile]]));
    const named = (name) => chartsBelow(path.join(folder, name));
    assert.deepEqual(await named("a.sm"), [[path.join(folder, "a.sm"), hash]]);
    assert.deepEqual(await named("c.zip"), [[path.join(folder, "c.zip/song.sm"), hash]]);
    await assert.rejects(named("none"), { code: "ENOENT" });
  } finally {
    execFileSync("rm", ["-rf", folder]);
  }
});

test("a simfile beside an .ssc is not read", () => {
  const paths = ["a.sm", "b.SSC", "c.osu", "d.SM", "e/a.sm", "e/f/b.ssc", "g/._b.ssc", "g/a.sm", "h/a.ssc", "h/b.ssc"];
  const left = withoutReplaced(paths, (path) => path);
  assert.deepEqual(left, ["b.SSC", "c.osu", "e/a.sm", "e/f/b.ssc", "g/._b.ssc", "g/a.sm", "h/a.ssc", "h/b.ssc"]);
});

// --- Rules without a case ---

/** The hash of notes: column, milliseconds, and the end of a long note. */
function hashOf(keys, notes) {
  const objects = notes.map(([column, start, end]) =>
    `${Math.floor(((column + 0.5) * 512) / keys)},0,${start},${end ? 128 : 1},0${end ? `,${end}` : ""}`);
  const [{ hash }] = hashChartFile("a.osu", text(`[General]\nMode: 3\n[Difficulty]\nCircleSize:${keys}\n[HitObjects]\n${objects.join("\n")}`));
  assert.ok(hash);
  return hash;
}

/** Tests that each text has these notes, or is refused for this reason. */
function testRules(title, file, rules) {
  for (const [name, content, expected, keys = 4] of rules) {
    test(`${title}: ${name}`, () => {
      const charts = hashesOf(hashChartFile(file, text(content)));
      if (expected instanceof RegExp) assert.match(charts.join(), expected);
      else assert.deepEqual(charts, [hashOf(keys, expected)]);
    });
  }
}

const sm = (notes, tags = "#BPMS:0=60;", type = "dance-single") => `${tags}#NOTES:${type}:::::${notes};`;
const TWO = "1000\n0100\n0000\n0000";
const TWO_NOTES = [[0, 0], [1, 1000]];

testRules(".sm", "a.sm", [
  ["comments", sm("1000 // ;#x\n01//0\n0000\n0000"), TWO_NOTES],
  ["an escaped comment joins lines", sm("1000\n01\\/\\/x\n00\n0000\n0000"), TWO_NOTES],
  ["a tag without its end", `#BPMS:0=60\n  #NOTES:dance-single:::::${TWO}`, TWO_NOTES],
  ["a number sign within a line", sm(TWO, "#TITLE:a #BPMS:0=9;#BPMS:0=60;"), TWO_NOTES],
  ["escaped characters", sm(TWO, "#TITLE:\\;#BPMS\\:0=9;#BPMS:0=60;"), TWO_NOTES],
  ["names are not trimmed", sm(TWO, "#BPMS :0=240;"), TWO_NOTES],
  ["notes with six parameters are none", `#NOTES:dance-single::::${TWO};${sm(TWO)}`, TWO_NOTES],
  ["only the last BPMs count", sm(TWO, "#BPMS:0=9,1=300;#BPMS:0=60;"), TWO_NOTES],
  ["the first BPM after beat 0", sm(TWO, "#BPMS:8=60;"), TWO_NOTES],
  ["a negative first BPM after beat 0", sm(TWO, "#BPMS:8=-60;"), /a negative BPM/],
  ["a negative BPM that nothing is before", sm(TWO, "#BPMS:0=99999999,4=-60;"), /time that runs backwards/],
  ["no BPM", sm(TWO, ""), TWO_NOTES],
  ["a beat that no chart has", sm(TWO, "#BPMS:0=60;#DELAYS:99999999=1;"), /a beat out of range/],
  ["an offset that no audio has", sm(TWO, "#BPMS:0=60;#OFFSET:-1e10;"), /time out of range/],
  ["a BPM that differs by less than a millionth of a beat per second", sm(TWO, "#BPMS:0=60,0.5=60.00003;"), TWO_NOTES],
  ["a stop after the note on its row", sm(TWO, "#BPMS:0=60;#STOPS:0=0.5,1=9;"), [[0, 0], [1, 1500]]],
  ["a delay before the note on its row", sm(TWO, "#BPMS:0=60;#DELAYS:1=0.5;"), [[0, 0], [1, 1500]]],
  ["rows that are divided by -1", sm(TWO, "#BPMS:0=60;#STOPS:-0.5r=0.25;"), [[0, 0], [1, 1250]]],
  ["hexadecimal numbers", sm(TWO, "#BPMS:0=0x1p6;"), /hexadecimal/],
  ["a song without an end of its warp", sm(`${TWO},${TWO}`, "#BPMS:0=60,4=-60;"), TWO_NOTES],
  ["keysounds", sm("1[12]000\n0[1]1[\n0000\n0000"), TWO_NOTES],
  ["lifts are taps; rolls, mines, fakes and keysounds are no notes", sm("L4MF\n0130\n0K00\n0300"), [[0, 0], [1, 1000]]],
  ["a keysound in a long note", sm("2000\nK000\n3000\n0000"), [[0, 0, 2000]]],
  ["a tap in a long note", sm("2000\n1000\n3000\n0000"), [[0, 1000]]],
  ["a second end", sm("2000\n3000\n3000\n0000"), [[0, 0, 1000]]],
  ["other bytes in notes", sm("1000\n0é00"), /other characters/],
  ["attributes of StepF2", sm("{1|h|0|0}000\n0S00\n{2|n|1|0}0{M|n|0|0}0\n{3|n|0|0}000"), TWO_NOTES],
  ["unknown attributes of StepF2", sm("{9|n|0|0}000\n0100"), /unknown attributes/],
  ["braces of StepF2 and others", sm("{1|n|0|0}000\n{1}100"), /unknown attributes/],
  ["braces of another form", sm("1{1}\n0100"), [[0, 0], [2, 0], [1, 2000]]],
  ["notes of several players", sm("{1|n|0|0}X00\n0S00\n0{x|n|1|0}0\n00z0"), TWO_NOTES],
  ["unknown step types", sm(TWO, "", "dance-double"), /step type dance-double/],
  ["old names", sm("00001", "", "para"), [[4, 0]], 5],
  ["old names in another case", sm("00001", "", "Para"), /step type para/],
]);

const ssc = (song, chart, notes = TWO) => `${song}#NOTEDATA:;#STEPSTYPE:dance-single;${chart}#NOTES:${notes};`;

testRules(".ssc", "a.ssc", [
  ["a chart with labels only has timing of its own", ssc("#BPMS:0=120;", "#LABELS:0=x;"), TWO_NOTES],
  ["an empty list of its own is none", ssc("#BPMS:0=60;", "#BPMS:;#STOPS:1=0;#OFFSET:5;"), TWO_NOTES],
  ["a list that is empty again is none", ssc("#BPMS:0=60;", "#FAKES:0=1,0=0.01;"), TWO_NOTES],
  ["no timing of charts in old files", ssc("#VERSION:0.69;#BPMS:0=60;", "#BPMS:0=120;"), TWO_NOTES],
  ["lists of one kind add up", ssc("#BPMS:0=60;#BPMS:0.5=120;", ""), [[0, 0], [1, 750]]],
  ["BPMs before beat 0, and negative ones, are none", ssc("#BPMS:0=60,-1=9,1=-9;", ""), TWO_NOTES],
  ["a redundant BPM before the first one", ssc("#BPMS:4=60,2=60;", ""), TWO_NOTES],
  ["a BPM that is that of the next change", ssc("#BPMS:4=60,8=120,0.5=120;", ""), [[0, 0], [1, 750]]],
  ["BPMs out of order", ssc("#BPMS:0=60,4=120,0=120;", ""), /BPMs out of order/],
  ["fakes", ssc("#BPMS:0=60;#FAKES:2=1;", "", "1000\n0100\n0010\n0000"), TWO_NOTES],
  ["a name that is not trimmed", "#NOTEDATA:;#STEPSTYPE: dance-single;#NOTES:1000;", /step type {2}dance-single/],
  ["a chart within a chart", ssc("#BPMS:0=60;", "#NOTEDATA:;"), TWO_NOTES],
  ["notes in another file", "#NOTEDATA:;#STEPSTYPE:dance-single;#STEPFILENAME:a;", /no notes/],
  ["a chart without notes", "#NOTEDATA:;#STEPSTYPE:dance-single;", /no charts/],
]);

const osu = (objects, { header = "osu file format v14", general = "Mode: 3", points = "", keys = 4 } = {}) =>
  `${header}\n[General]\n${general}\n[Difficulty]\nCircleSize:${keys}\n${points}\n[HitObjects]\n${objects.join("\n")}`;
const SLIDER = ["64,0,1000,2,0,L|200:0,2,100", "192,0,1000,1,0"];

testRules(".osu", "a.osu", [
  ["a number is a section", osu(["64,0,0,1,0"]).replace("[HitObjects]", "[ +7]"), [[0, 0]]],
  ["several names are a section", osu(["64,0,0,1,0"]).replace("[HitObjects]", "[Difficulty, Events]"), [[0, 0]]],
  ["an unknown section is the general one", osu(["64,0,0,1,0", "[Other]", "Mode: 1"]), /unsupported game mode 1/],
  ["an unknown mode is skipped", osu(["64,0,0,1,0"], { general: "Mode: 3\nMode: 4\nMode: x" }), [[0, 0]]],
  ["a header without version", osu(["64,0,0,1,0"], { header: "osu file format v" }), /without version/],
  ["a header with a mark", osu(["64,0,0,1,0"], { header: "\u200bosu file format v3" }), /unclear header/],
  ["no header", osu(["64,0,0,1,0"], { header: "" }), [[0, 0]]],
  ["samples that cannot be read", osu(["64,0,0,1,0", "64,0,10,1,0,0", "64,0,20,128,0,90:0", "64,0,30,1,0,0:x"]), [[0, 0]]],
  ["fields that are no numbers", osu(["64,0,0,1,0", "64,,10,1,0", "64,0,10,1", "64,0,1e10,1,0", "1e6,0,20,1,0", "64,0,20,1,0x1"]), [[0, 0]]],
  ["fields as .NET reads them", osu([" +64. ,0,0,1,0", "192,0,1E+3,5,0\0"]), TWO_NOTES],
  ["an object of two types", osu(["64,0,0,129,0,0:0"]), /several types/],
  ["coordinates without decimals", osu(["73.9,0,0,1,0"], { keys: 7 }), [[0, 0]], 7],
  ["coordinates with decimals", osu(["73.9,0,0,1,0"], { keys: 7, header: "osu file format v128" }), [[1, 0]], 7],
  ["coordinates outside", osu(["-5,0,0,1,0", "600,0,1000,1,0"]), [[0, 0], [3, 1000]]],
  ["the end of a long note in an old file", osu(["64,0,0,128,0,10", "192,0,1000,1,0"], { header: "osu file format v4" }), [[0, 0, 24], [1, 1000]]],
  ["key counts", osu(["64,0,0,1,0"], { keys: "4.5" }), [[0, 0]]],
  ["a slider without length", osu(["64,0,1000,2,0,L|200:0,2"]), /a slider without length/],
  ["a slider whose path ends with one point twice", osu(["64,0,1000,2,0,L|9:0|9:0,1,100"]), /unclear length/],
  ["a slider that cannot be read", osu(["64,0,0,1,0", "64,0,9,2,0,L,1,9,0,x:0", "64,0,9,2,0,L|,1,9", "64,0,9,2,0,L|1:1|B,1,9"]), [[0, 0]]],
  ["a slider with a path of one point", osu(["64,0,0,2,0,B,3,100", "192,0,1000,1,0"]), TWO_NOTES],
  ["a slider of two spans", osu(SLIDER, { points: "SliderMultiplier:1\n[TimingPoints]\n0,500" }), [[0, 1000, 2000], [1, 1000]]],
  ["a slider with its velocity", osu(SLIDER, { points: "SliderMultiplier:9\n[TimingPoints]\n0,360\n0,720\n1000,-50,4,1,0,9,0\n1000,-1000,4,1,0,9,0" }), [[0, 1000, 3000], [1, 1000]]],
  ["a slider with points out of order", osu(SLIDER, { points: "[TimingPoints]\n9,500\n0,500" }), /out of order/],
]);

const qua = (objects, head = "Mode: Keys4\nTimingPoints:\n- Bpm: 120") => `${head}\nHitObjects:\n${objects.map((one) => `- ${one}`).join("\n")}`;
const OBJECTS = ["StartTime: 0\n  Lane: 1", "StartTime: 1000\n  Lane: 2"];

testRules(".qua", "a.qua", [
  ["an infinite BPM", qua(OBJECTS, "Mode: Keys4\nTimingPoints:\n- Bpm: .inf"), TWO_NOTES],
  ["texts of several lines", `Description: >-\n\n  a: b\n   c\n\nTitle: a\n  b\nArtist: 'it''s\n\n  x: y'\n${qua(OBJECTS)}`, TWO_NOTES],
  ["comments", `---\n# x\n${qua(OBJECTS).replaceAll("\n  Lane", "\n# y\n  Lane")}`, TWO_NOTES],
  ["carriage returns", qua(OBJECTS).replaceAll("\n", "\r\n"), TWO_NOTES],
  ["lists that are indented", qua(OBJECTS).replace(/^(- | {2})/gm, "    $1"), TWO_NOTES],
  ["empty values are their defaults", qua(["StartTime:\n  Lane: 1\n  EndTime: ~", OBJECTS[1]]), TWO_NOTES],
  ["keysounds", qua([`${OBJECTS[0]}\n  KeySounds:\n  - Sample: 1`, OBJECTS[1]], "CustomAudioSamples:\n- Path: a\nMode: Keys4\nTimingPoints:\n- Bpm: 1"), TWO_NOTES],
  ["keysounds without sample", qua([`${OBJECTS[0]}\n  KeySounds:\n  - Sample: 1`]), /a sound/],
  ["no mode", qua(OBJECTS, "TimingPoints:\n- Bpm: 120"), /no game mode/],
  ["an unknown mode", qua(OBJECTS, "Mode: Keys11\nTimingPoints:\n- Bpm: 120"), /no game mode/],
  ["no timing points", qua(OBJECTS, "Mode: Keys4"), /no timing points/],
  ["a newer version", qua(OBJECTS, "QuaVersion: 2\nMode: Keys4\nTimingPoints:\n- Bpm: 120"), /a version/],
  ["an end that is not after its start", qua(["StartTime: 5\n  Lane: 1\n  EndTime: 5"]), /whose end/],
  ["decimals", qua(["StartTime: 5.5\n  Lane: 1"]), /HitObjects is not written/],
  ["a lane beyond the keys", qua(["Lane: 5"]), /a lane/],
  ["a key twice", qua(["Lane: 1\n  Lane: 2"]), /line 6/],
  ["an alias", qua(["Lane: *a"]), /line 5/],
  ["a comment after a value", qua(["Lane: 1 # x"]), /line 5/],
  ["a list in brackets", `Mode: Keys4\nHitObjects: [{Lane: 1}]`, /line 2/],
  ["a list as a title", `Title: []\n${qua(OBJECTS)}`, /Title is not written/],
  ["a group without tag", `TimingGroups:\n  a:\n    Hidden: true\n${qua(OBJECTS)}`, /TimingGroups is not written/],
  ["a line with less indentation", qua(["Lane: 1\n Lane: 2"]), /line 6/],
]);

test("byte order marks", () => {
  const content = osu(["64,0,0,1,0"]);
  const utf16 = Buffer.from(`\ufeff${content}`, "utf16le");
  for (const bytes of [text(`\ufeff${content}`), utf16, Buffer.from(utf16).swap16()]) {
    assert.deepEqual(hashesOf(hashChartFile("a.osu", bytes)), [hashOf(4, [[0, 0]])]);
  }
  assert.deepEqual(hashesOf(hashChartFile("a.sm", text(`\ufeff${sm(TWO)}`))), [hashOf(4, TWO_NOTES)]);
  assert.deepEqual(hashesOf(hashChartFile("a.sm", Buffer.from(`\ufeff${sm(TWO)}`, "utf16le"))), ["no charts"]);
});

test("each chart of a simfile has a line, and each hash one", () => {
  const charts = hashChartFile("a.sm", text(`${sm(TWO)}${sm(TWO)}${sm(TWO, "", "dance-double")}${sm("0001")}`));
  assert.deepEqual(hashesOf(charts), [hashOf(4, TWO_NOTES), "step type dance-double", hashOf(4, [[3, 0]])]);
});

test("a refused chart of a simfile has its name", () => {
  const file = text(`${sm(TWO)}#NOTES:dance-double:a:Challenge:::${TWO};#NOTES:dance-single::Hard:::0000;`);
  const [first, ...refused] = hashChartFile("a.sm", file);
  assert.ok(first.hash && !("chart" in first));
  assert.deepEqual(refused, [
    { file: "a.sm", reason: "step type dance-double", chart: "dance-double Challenge" },
    { file: "a.sm", reason: "no notes", chart: "dance-single Hard" },
  ]);
  assert.deepEqual(hashChartFile("a.osu", text(osu([]))), [{ file: "a.osu", reason: "no notes" }]);
});
