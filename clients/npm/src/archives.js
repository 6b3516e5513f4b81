// Reads the chart files in archives, also those of archives in them, without reading other files.

import { MAX_FILE_BYTES, isChartFile, isNamed, withoutReplaced } from "./chart_files.js";
import { Refusal, refuse } from "./note_hash.js";

/** The limits of the index, each for an archive and the archives in it. */
const [MAX_ENTRIES, MAX_CHART_FILES] = [50_000, 4_096];
const [MAX_CHARTS_MB, MAX_ARCHIVES_MB] = [192, 2_048];
/** The maximum size of an archive in an archive, of which one at a time is in memory. */
const MAX_NESTED_BYTES = 128 * 1024 * 1024;
const MAX_PATH_LENGTH = 1024;
const MB = 2 ** 20;

/** The end of the directory, with the longest comment. */
const MAX_END_BYTES = 22 + 0xffff;
const [END, DIRECTORY_ENTRY, LOCAL_ENTRY] = [0x06054b50, 0x02014b50, 0x04034b50];
const [STORED, DEFLATED] = [0, 8];
const UNIX = 3;
const [FILE_TYPE, NO_TYPE, REGULAR_FILE] = [0o170000, 0, 0o100000];

/** Whether a file is an archive, by its name: one of a game, or a plain one. */
export const isArchive = (path) => isNamed(path, ["osz", "olz", "qp", "smzip", "zip"]);

/**
 * The chart files of an archive, and of the archives in it: each with its `path` and `file`, which has `size`
 * and `arrayBuffer`, or with the reason why it cannot be read, `reason`.
 *
 * @param {Blob} archive
 * @throws {Error} with a reason if it is none, is damaged, or exceeds a limit
 */
export async function* chartFilesOf(archive, read = new Read(), isNested = false) {
  const files = (await entriesOf(archive, read)).filter(({ name }) => isChartFile(name) || isArchive(name));
  refuseSome(files, isNested);
  read.count(files);
  for (const file of withoutReplaced(files, ({ path }) => path)) {
    const { path, refusal } = file;
    if (refusal) yield { path, reason: refusal };
    else if (isArchive(path)) yield* nestedFiles(file, read);
    else yield { path, file };
  }
}

/** Refuses the files that have the name of an earlier one, and archives that are too deep. */
function refuseSome(files, isNested) {
  const paths = new Set();
  for (const file of files) {
    if (isNested && isArchive(file.path)) file.refusal ??= "an archive in an archive in an archive";
    else if (paths.has(file.key)) file.refusal ??= "an earlier file has the same name";
    paths.add(file.key);
  }
}

/**
 * What is read of an archive and of the archives in it. An excess refuses the outermost one, as in the index:
 * otherwise the order of the entries would decide which of them are read.
 */
class Read {
  entries = 0;
  chartFiles = 0;
  chartBytes = 0;
  archiveBytes = 0;

  countEntries(count) {
    this.entries += count;
    if (this.entries > MAX_ENTRIES) exceed(`${MAX_ENTRIES} entries`);
  }

  /** Counts files by their sizes in the directory: what is larger is damaged. */
  count(files) {
    this.chartFiles += files.filter(({ name }) => isChartFile(name)).length;
    if (this.chartFiles > MAX_CHART_FILES) exceed(`${MAX_CHART_FILES} chart files`);
    for (const { path, size } of files.filter(({ refusal, isEncrypted }) => !refusal && !isEncrypted)) {
      if (isArchive(path)) this.archiveBytes += Math.min(size, MAX_NESTED_BYTES);
      else this.chartBytes += Math.min(size, MAX_FILE_BYTES);
    }
    if (this.chartBytes > MAX_CHARTS_MB * MB) exceed(`${MAX_CHARTS_MB} MB of chart files`);
    if (this.archiveBytes > MAX_ARCHIVES_MB * MB) exceed(`${MAX_ARCHIVES_MB} MB of archives in it`);
  }
}

/** Refuses the outermost archive: no `Refusal`, which is of one archive. */
function exceed(limit) {
  throw new Error(`the archive has more than ${limit}`);
}

/** The files of an archive in another one. If it cannot be read, others can. */
async function* nestedFiles(file, read) {
  const { path } = file;
  try {
    if (file.size > MAX_NESTED_BYTES) refuse(`larger than ${MAX_NESTED_BYTES / MB} MB`);
    const nested = new Blob([await file.arrayBuffer()]);
    for await (const entry of chartFilesOf(nested, read, true)) yield { ...entry, path: `${path}/${entry.path}` };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    yield { path, reason: error.message };
  }
}

/** The entries of an archive. */
async function entriesOf(archive, read) {
  const end = await endOf(archive);
  const [count, size, offset] = [end.getUint16(10, true), end.getUint32(12, true), end.getUint32(16, true)];
  if (offset === 0xffffffff || count === 0xffff) refuse("archives of more than 4 GB cannot be read here");
  // What is before the archive, such as a program that unpacks it, moves all of it.
  const start = archive.size - end.byteLength - size - offset;
  if (start < 0) refuse("the archive is damaged");
  read.countEntries(count);
  const directory = await viewOf(archive, start + offset, size);
  const entries = [];
  for (let at = 0; entries.length < count; ) {
    if (at + 46 > size || directory.getUint32(at, true) !== DIRECTORY_ENTRY) refuse("the archive is damaged");
    const [nameLength, extra, comment] = [28, 30, 32].map((field) => directory.getUint16(at + field, true));
    const name = new Uint8Array(directory.buffer, at + 46, Math.min(nameLength, size - at - 46));
    entries.push(new ArchivedFile(archive, directory, at, name, start));
    at += 46 + nameLength + extra + comment;
  }
  return entries;
}

/** The end of the directory, with its comment. */
async function endOf(archive) {
  const from = Math.max(0, archive.size - MAX_END_BYTES);
  const tail = await viewOf(archive, from, archive.size - from);
  for (let at = tail.byteLength - 22; at >= 0; at -= 1) {
    const isEnd = tail.getUint32(at, true) === END && at + 22 + tail.getUint16(at + 20, true) === tail.byteLength;
    if (isEnd) return new DataView(tail.buffer, at);
  }
  return refuse("no archive, or a damaged one");
}

const viewOf = async (file, start, length) => new DataView(await file.slice(start, start + length).arrayBuffer());

/**
 * The path of an entry, with slashes and relative. Undefined if it may lead out of the archive on any system.
 */
function safePath(name) {
  const parts = name.split(/[/\\]/).filter((part) => part !== "" && part !== ".");
  const path = parts.join("/");
  const isUnsafe = parts.includes("..") || parts[0]?.[1] === ":" || path.includes("\0");
  return isUnsafe || path.length > MAX_PATH_LENGTH ? undefined : path;
}

const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** Has a character for each byte. */
const LATIN_1 = new TextDecoder("latin1");

/** A name, whose encoding is not known if it is not UTF-8. */
function decoded(name) {
  try {
    return UTF_8.decode(name);
  } catch {
    return LATIN_1.decode(name);
  }
}

class ArchivedFile {
  constructor(archive, directory, at, bytes, start) {
    const short = (field) => directory.getUint16(at + field, true);
    const long = (field) => directory.getUint32(at + field, true);
    const name = decoded(bytes);
    const path = safePath(name);
    const type = short(4) >> 8 === UNIX ? (long(38) >>> 16) & FILE_TYPE : NO_TYPE;
    const isRegular = type === NO_TYPE || type === REGULAR_FILE;
    this.archive = archive;
    this.name = name;
    /** Two names in different encodings are not the same, although they look so. */
    this.key = safePath(LATIN_1.decode(bytes));
    this.path = path ?? name;
    /** Why it is not read. */
    this.refusal = path === undefined ? "an unsafe path" : isRegular ? undefined : "not a regular file";
    this.isEncrypted = (short(8) & 1) !== 0;
    this.method = short(10);
    [this.checksum, this.packedSize, this.size] = [long(16), long(20), long(24)];
    this.at = start + long(42);
  }

  async arrayBuffer() {
    if (this.isEncrypted) refuse("encrypted");
    if (![STORED, DEFLATED].includes(this.method)) refuse(`packed by method ${this.method}, which cannot be read here`);
    const head = await viewOf(this.archive, this.at, 30);
    if (head.byteLength < 30 || head.getUint32(0, true) !== LOCAL_ENTRY) refuse("the archive is damaged");
    const data = this.at + 30 + head.getUint16(26, true) + head.getUint16(28, true);
    const packed = await this.archive.slice(data, data + this.packedSize).arrayBuffer();
    const isStored = this.method === STORED;
    const bytes = isStored ? new Uint8Array(packed) : await inflated(packed, this);
    const isWhole = bytes?.length === this.size && (!isStored || crc32(bytes) === this.checksum);
    return isWhole ? bytes.buffer : refuse("the archive is damaged");
  }
}

/** The header of a gzip file (RFC 1952) without a name. */
const GZIP_HEADER = Uint8Array.of(0x1f, 0x8b, DEFLATED, 0, 0, 0, 0, 0, 0, 0xff);

/**
 * Inflates what has this size and checksum; undefined for what is damaged or larger: a few bytes may inflate to
 * gigabytes. It is inflated as a gzip file: Node.js 18 has no `deflate-raw`.
 */
async function inflated(packed, { size, checksum }) {
  const trailer = new DataView(new ArrayBuffer(8));
  [checksum, size].forEach((value, index) => trailer.setUint32(4 * index, value, true));
  const file = new Blob([GZIP_HEADER, packed, trailer]).stream();
  const bytes = new Uint8Array(size);
  let length = 0;
  try {
    for await (const chunk of chunksOf(file.pipeThrough(new DecompressionStream("gzip")))) {
      bytes.set(chunk, length);
      length += chunk.length;
    }
  } catch {
    return undefined;
  }
  return length === size ? bytes : undefined;
}

/** The chunks of a stream, over which some browsers do not iterate. */
async function* chunksOf(stream) {
  const reader = stream.getReader();
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) yield chunk.value;
  } finally {
    await reader.cancel();
  }
}

let checksums;

/** The checksum of ZIP archives (APPNOTE.TXT 4.4.7), a byte at a time. */
function crc32(bytes) {
  const ofBit = (value) => (value & 1 ? 0xedb88320 : 0) ^ (value >>> 1);
  checksums ??= Uint32Array.from({ length: 256 }, (_, byte) => Array(8).fill().reduce(ofBit, byte));
  let checksum = 0xffffffff;
  for (const byte of bytes) checksum = checksums[(checksum ^ byte) & 0xff] ^ (checksum >>> 8);
  return ~checksum >>> 0;
}
