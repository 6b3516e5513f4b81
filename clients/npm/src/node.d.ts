import type { LocalChart } from "./index.js";

/**
 * The charts of all chart files and archives below a folder, in the order of their names, or those of a file.
 * An `.sm` file beside an `.ssc` file is not read, as in its game, unless it is the file. A folder below that
 * cannot be listed has a `reason`, as files have.
 *
 * @throws {Error} if the folder itself cannot be listed
 */
export function hashFolder(folder: string): AsyncGenerator<LocalChart, void, undefined>;
