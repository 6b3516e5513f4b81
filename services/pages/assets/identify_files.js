// Reads the chart files that were chosen at `/identify`. Of a folder that was read before, only those that have
// changed.

import { UNREADABLE, filesRead, isRead } from "../../../clients/npm/src/files.js";
import { filesOf, putFiles, putFolder, startMarks, startReading } from "./library.js";

export const MAX_FILES = 200_000;
const MAX_DEPTH = 8;
/** As many files are hashed at the same time. */
const MAX_WORKERS = 4;
/** The library takes so many files at a time. */
const PORTION = 500;

/** The name of the folder in which a file was found; empty if it was chosen itself. */
const rootOf = (path) => path.slice(0, Math.max(path.indexOf("/"), 0));

/**
 * What is read of files and folders: each file with its `path`, and how to `open` it. Items are files, entries
 * that were dropped, or handles.
 */
export async function chartFilesIn(items, run) {
  const files = [];
  for (const item of items) await collect(item, "", files, MAX_DEPTH, run);
  const isInFolder = ({ path }) => rootOf(path) !== "";
  // A file that was chosen itself is read beside any other one.
  const chosen = files.filter((file) => !isInFolder(file));
  const inFolders = filesRead(files.filter(isInFolder), ({ path }) => path).sort((a, b) => (a.path < b.path ? -1 : 1));
  return [...chosen, ...inFolders];
}

async function collect(item, folder, files, depth, run) {
  const path = item.webkitRelativePath || folder + item.name;
  if (files.length >= MAX_FILES) return;
  await run.progress("Looking for chart files", files.length);
  if (item.isDirectory || item.kind === "directory") {
    if (depth > 0) for await (const child of childrenOf(item)) await collect(child, `${path}/`, files, depth - 1, run);
  } else if (isRead(path)) {
    files.push({ path, open: openerOf(item) });
  }
}

/** A file of a folder is opened when it is its turn: a folder has many. */
function openerOf(item) {
  if (item instanceof File) return async () => item;
  if (item.getFile) return () => item.getFile();
  return () => new Promise((resolve, reject) => item.file(resolve, reject));
}

async function* childrenOf(folder) {
  if (folder.values) return yield* folder.values();
  // A browser reads the entries of a folder in portions of a hundred.
  const reader = folder.createReader();
  for (;;) {
    const portion = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (portion.length === 0) return;
    yield* portion;
  }
}

/**
 * Adds the charts of these files to `results`, and the reasons of what cannot be read, in their order. Those of
 * folders are put into the library; `handles` are those of folders, by name.
 */
export async function readFiles(files, handles, run, results) {
  const library = await Library.open(files, run);
  const chartsOf = new Array(files.length);
  const workers = [];
  let next = 0;
  const readOthers = async () => {
    const worker = new Worker(run.workerUrl, { type: "module" });
    workers.push(worker);
    while (next < files.length) {
      const index = next++;
      await run.progress("Reading files", index, files.length);
      const { path, open } = files[index];
      const file = await open().catch(() => undefined);
      chartsOf[index] = library.chartsOf(path, file);
      if (chartsOf[index]) continue;
      chartsOf[index] = file ? await hashed(worker, path, file) : [{ reason: UNREADABLE }];
      await library.put(path, file, chartsOf[index]);
    }
  };
  const count = Math.min(MAX_WORKERS, navigator.hardwareConcurrency || 1);
  let isComplete = false;
  try {
    await Promise.race([run.aborted, Promise.all(Array.from({ length: count }, readOthers))]);
    isComplete = true;
  } finally {
    for (const worker of workers) worker.terminate();
    // What was read until a run ends is read no more.
    await library.end(handles, isComplete);
    chartsOf.forEach((charts, index) => {
      for (const chart of charts ?? []) results.push({ file: files[index].path, ...chart });
    });
  }
  return library.isKept;
}

/** The charts of a file, from a worker, which has one file at a time. */
function hashed(worker, path, file) {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => {
      const charts = data.length > 0 ? data : [{ file: path, reason: "no chart file in the archive" }];
      resolve(charts.map((chart) => keptOf(chart, path)));
    };
    worker.onerror = () => reject(new Error("what reads files could not be loaded"));
    worker.postMessage({ path, file });
  });
}

/** What is kept of a chart. A chart in an archive has a path of its own. */
function keptOf({ file, chart, hash, keys, variant, creator, difficulty = chart, reason }, path) {
  const kept = { file: file === path ? "" : file, hash, keys, variant, creator, difficulty, reason };
  return Object.fromEntries(Object.entries(kept).filter(([, value]) => value));
}

/** The files of some folders in the library. Where a browser stores nothing, all files are read each time. */
class Library {
  isKept = true;
  /** For each folder how many files and charts were read, and the files that it had before and that were not. */
  #folders = new Map();
  #waiting = [];
  #reader;

  static async open(files, { workerUrl }) {
    const library = new Library();
    startReading();
    library.#reader = workerUrl;
    const names = new Set(files.map(({ path }) => rootOf(path)).filter(Boolean));
    await library.#try(async () => {
      for (const name of names) library.#folders.set(name, { known: await filesOf(name), files: 0, charts: 0 });
    });
    return library;
  }

  async #try(write) {
    try {
      if (this.isKept) await write();
    } catch {
      this.isKept = false;
    }
  }

  /** The charts of a file that has not changed since it was read. */
  chartsOf(path, file) {
    const folder = this.#folders.get(rootOf(path));
    const known = folder?.known.get(path);
    folder?.known.delete(path);
    if (!known || !file || known.size !== file.size || known.time !== file.lastModified) return undefined;
    // Another version of the readers may read what this one could not.
    if (known.reader !== this.#reader && known.charts.some(({ reason }) => reason)) return undefined;
    folder.files += 1;
    folder.charts += known.hashes.length;
    return known.charts;
  }

  async put(path, file, charts) {
    const folder = this.#folders.get(rootOf(path));
    if (!folder || charts.some(({ reason }) => reason === UNREADABLE)) return;
    const hashes = [...new Set(charts.flatMap(({ hash }) => hash ?? []))];
    folder.files += 1;
    folder.charts += hashes.length;
    this.#waiting.push({ path, size: file.size, time: file.lastModified, hashes, charts, reader: this.#reader });
    if (this.#waiting.length >= PORTION) await this.#flush();
  }

  #flush() {
    const files = this.#waiting.splice(0);
    return this.#try(async () => {
      if (files.length === 0) return;
      await putFiles(files);
      startMarks();
    });
  }

  /** After all files were read, what the folders had besides them is gone. */
  async end(handles, isComplete) {
    await this.#flush();
    await this.#try(async () => {
      for (const [name, { known, files, charts }] of this.#folders) {
        const folder = { name, files, charts, readAt: Date.now(), isComplete, handle: handles.get(name) };
        if (!isComplete) {
          folder.files += known.size;
          for (const { hashes } of known.values()) folder.charts += hashes.length;
        }
        await putFolder(folder, isComplete ? [...known.keys()] : []);
      }
    });
  }
}
