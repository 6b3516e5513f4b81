// Writes a second .osu beside each chart.osu below a folder, with osu-parsers.

import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(`${process.env.CHART_LIBRARIES}/`);
const { BeatmapDecoder, BeatmapEncoder } = require("osu-parsers");

const folder = process.argv[2];
for (const name of readdirSync(folder)) {
  const beatmap = await new BeatmapDecoder().decodeFromPath(path.join(folder, name, "chart.osu"), { parseStoryboard: false });
  await new BeatmapEncoder().encodeToPath(path.join(folder, name, "again.osu"), beatmap);
}
