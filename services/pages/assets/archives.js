// Reads the chart files in an archive (.osz or .zip) in the browser, without reading its other files.

import { refuse } from "./note_hash.js";

const MAX_ENTRIES = 50_000;
/** The end of the directory, with the longest comment. */
const MAX_END_BYTES = 22 + 0xffff;
const [END, DIRECTORY_ENTRY, LOCAL_ENTRY] = [0x06054b50, 0x02014b50, 0x04034b50];
const [STORED, DEFLATED] = [0, 8];

/** Whether a file is an archive, by its name. */
export const isArchive = (name) => /\.(?:osz|zip)$/i.test(name);

/**
 * The entries of an archive, as files with `name`, `size` and `arrayBuffer`.
 *
 * @param {File} file the archive
 * @throws {Error} with a reason if it is none, or damaged
 */
export async function entriesOf(file) {
  const end = await endOf(file);
  const [count, size, offset] = [end.getUint16(10, true), end.getUint32(12, true), end.getUint32(16, true)];
  if (offset === 0xffffffff || count === 0xffff) refuse("archives of more than 4 GB cannot be read here");
  // What is before the archive, such as a program that unpacks it, moves all of it.
  const start = file.size - end.byteLength - size - offset;
  if (start < 0 || count > MAX_ENTRIES) refuse("the archive is damaged");
  const directory = await viewOf(file, start + offset, size);
  const entries = [];
  for (let at = 0; entries.length < count; ) {
    if (at + 46 > size || directory.getUint32(at, true) !== DIRECTORY_ENTRY) refuse("the archive is damaged");
    const [nameLength, extra, comment] = [28, 30, 32].map((field) => directory.getUint16(at + field, true));
    const name = new Uint8Array(directory.buffer, at + 46, Math.min(nameLength, size - at - 46));
    entries.push(new ArchivedFile(file, directory, at, new TextDecoder().decode(name), start));
    at += 46 + nameLength + extra + comment;
  }
  return entries.filter(({ name }) => !name.endsWith("/"));
}

/** The end of the directory, with its comment. */
async function endOf(file) {
  const from = Math.max(0, file.size - MAX_END_BYTES);
  const tail = await viewOf(file, from, file.size - from);
  for (let at = tail.byteLength - 22; at >= 0; at -= 1) {
    const isEnd = tail.getUint32(at, true) === END && at + 22 + tail.getUint16(at + 20, true) === tail.byteLength;
    if (isEnd) return new DataView(tail.buffer, at);
  }
  return refuse("no archive, or a damaged one");
}

const viewOf = async (file, start, length) => new DataView(await file.slice(start, start + length).arrayBuffer());

class ArchivedFile {
  constructor(archive, directory, at, name, start) {
    [this.archive, this.name] = [archive, name];
    this.isEncrypted = (directory.getUint16(at + 8, true) & 1) !== 0;
    this.method = directory.getUint16(at + 10, true);
    this.packedSize = directory.getUint32(at + 20, true);
    this.size = directory.getUint32(at + 24, true);
    this.at = start + directory.getUint32(at + 42, true);
  }

  async arrayBuffer() {
    if (this.isEncrypted || ![STORED, DEFLATED].includes(this.method)) refuse("encrypted, or packed in another way");
    const head = await viewOf(this.archive, this.at, 30);
    if (head.byteLength < 30 || head.getUint32(0, true) !== LOCAL_ENTRY) refuse("the archive is damaged");
    const data = this.at + 30 + head.getUint16(26, true) + head.getUint16(28, true);
    const packed = this.archive.slice(data, data + this.packedSize);
    if (this.method === STORED) return packed.arrayBuffer();
    return inflated(packed, this.size);
  }
}

/** Inflates what has this size, and refuses what has another one: a few bytes may inflate to gigabytes. */
async function inflated(packed, size) {
  const bytes = new Uint8Array(size);
  let length = 0;
  try {
    for await (const chunk of packed.stream().pipeThrough(new DecompressionStream("deflate-raw"))) {
      bytes.set(chunk, length);
      length += chunk.length;
    }
  } catch {
    length = -1;
  }
  return length === size ? bytes.buffer : refuse("the archive is damaged");
}
