// Hashes the files of `identify_files.js`, beside the page.

import { hashFile } from "../../../clients/npm/src/files.js";

addEventListener("message", async ({ data: { path, file } }) => postMessage(await hashFile(path, file)));
