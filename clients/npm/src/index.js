// The package: a client of an index, and the note hashes of local files.

export { ChartIndex } from "./client.js";
export { hashFile } from "./files.js";
export { HashFilter } from "./hash_filter.js";
export { hashOfTimedNotes } from "./note_hash.js";
export { ChartIndexError } from "./requests.js";
