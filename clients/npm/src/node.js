// Reads folders, in Node.js.

import { open, readdir, stat } from "node:fs/promises";
import path from "node:path";

import { filesRead, hashFile } from "./files.js";

/** The charts of a file, or of the chart files and archives below a folder, in the order of the names. */
export async function* hashFolder(folder) {
  if ((await stat(folder)).isFile()) yield* await hashLocalFile(folder);
  else yield* hashEntries(folder, await entriesOf(folder));
}

const entriesOf = (folder) => readdir(folder, { withFileTypes: true });

async function* hashEntries(folder, entries) {
  const files = new Set(filesRead(entries.filter((entry) => entry.isFile()), ({ name }) => name));
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const location = path.join(folder, entry.name);
    // A symbolic link may lead anywhere.
    if (entry.isDirectory()) yield* hashSubfolder(location);
    else if (files.has(entry)) yield* await hashLocalFile(location);
  }
}

/** The charts of a folder in another one. If it cannot be listed, others can. */
async function* hashSubfolder(folder) {
  const entries = await entriesOf(folder).catch((error) => error);
  if (entries instanceof Error) yield { file: folder, reason: entries.message };
  else yield* hashEntries(folder, entries);
}

async function hashLocalFile(location) {
  let file;
  try {
    file = await open(location);
    return await hashFile(location, new FilePart(file, 0, (await file.stat()).size));
  } catch (error) {
    return [{ file: location, reason: error.message }];
  } finally {
    await file?.close();
  }
}

/** A part of an open file, with what `hashFile` uses of a `Blob`: archives are read in parts. */
class FilePart {
  constructor(file, start, size) {
    this.file = file;
    this.start = start;
    this.size = size;
  }

  slice(from, to) {
    const [start, end] = [Math.min(from, this.size), Math.min(to, this.size)];
    return new FilePart(this.file, this.start + start, Math.max(0, end - start));
  }

  async arrayBuffer() {
    const { buffer } = new Uint8Array(this.size);
    const { bytesRead } = await this.file.read(new Uint8Array(buffer), 0, this.size, this.start);
    if (bytesRead < this.size) throw new Error("the file has changed while it was read");
    return buffer;
  }
}
