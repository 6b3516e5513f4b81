import type { LocalChart } from "./index.js";

/**
 * The charts of all chart files and archives below a folder, in the order of their names. An `.sm` file beside
 * an `.ssc` file is not read, as in its game.
 */
export function hashFolder(folder: string): AsyncGenerator<LocalChart, void, undefined>;
