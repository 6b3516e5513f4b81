// The charts of local files, which are read and hashed here: no file is sent.

import { chartFilesOf, isArchive } from "./archives.js";
import { MAX_FILE_BYTES, hashChartFile, isChartFile, withoutReplaced } from "./chart_files.js";
import { refuse } from "./note_hash.js";

/** Why a file has no charts that may be read at another time. */
export const UNREADABLE = "the file cannot be read";

/** Whether a file is read, by its name: a chart file or an archive. */
export const isRead = (path) => isChartFile(path) || isArchive(path);

/** The files of folders that their games read. Paths have slashes. */
export const filesRead = (files, pathOf) => withoutReplaced(files.filter((file) => isRead(pathOf(file))), pathOf);

/**
 * The charts of a chart file or of an archive, and the reasons of files and charts that have no note hash.
 *
 * @param {string} path
 * @param {Blob | ArrayBuffer | ArrayBufferView} content
 * @returns {Promise<import("./index.js").LocalChart[]>}
 */
export async function hashFile(path, content) {
  const file = content instanceof ArrayBuffer || ArrayBuffer.isView(content) ? new Blob([content]) : content;
  if (!isArchive(path)) return chartsOf({ path, file });
  const charts = [];
  try {
    for await (const entry of chartFilesOf(file)) {
      charts.push(...(await chartsOf({ ...entry, path: `${path}/${entry.path}` })));
    }
  } catch (error) {
    return [{ file: path, reason: reasonOf(error) }];
  }
  return charts;
}

async function chartsOf({ path, file, reason }) {
  if (reason) return [{ file: path, reason }];
  try {
    if (file.size > MAX_FILE_BYTES) refuse(`larger than ${MAX_FILE_BYTES / 2 ** 20} MB`);
    return hashChartFile(path, new Uint8Array(await file.arrayBuffer()));
  } catch (error) {
    return [{ file: path, reason: reasonOf(error) }];
  }
}

/** Files are of others: whatever is wrong with one, the others are read. */
const reasonOf = (error) => (error.name === "NotReadableError" ? UNREADABLE : error.message);
