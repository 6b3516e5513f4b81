// Prints a line of JSON for each chart of a folder: node hash.mjs FOLDER

import { hashFolder } from "chart-index/node";

for await (const chart of hashFolder(process.argv[2])) console.log(JSON.stringify(chart));
