// Tells which note hashes a hash filter contains: node hash_filter.mjs filter.bin < hashes.txt

import { readFileSync } from "node:fs";

import { HashFilter } from "../../../../clients/npm/src/hash_filter.js";

const filter = new HashFilter(readFileSync(process.argv[2]));
const hashes = readFileSync(0, "utf8").split(/\s+/).filter(Boolean);
process.stdout.write(hashes.map((hash) => `${hash} ${filter.has(hash) ? "maybe" : "unknown"}\n`).join(""));
