// Prints the notes of the .osu files below a folder as osu-parsers and osu-mania-stable read them, a JSON
// object for each file. Times are in microseconds.

import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(`${process.env.CHART_LIBRARIES}/`);
const { BeatmapDecoder } = require("osu-parsers");
const { ManiaRuleset } = require("osu-mania-stable");

const folder = process.argv[2];
const decoder = new BeatmapDecoder();
const ruleset = new ManiaRuleset();
for (const name of readdirSync(folder).sort()) {
  const file = path.join(folder, name, "chart.osu");
  const line = { file, chart: "Hard" };
  try {
    const beatmap = ruleset.applyToBeatmap(await decoder.decodeFromPath(file, { parseStoryboard: false }));
    line.keys = beatmap.totalColumns;
    line.notes = beatmap.hitObjects.map((object) => [
      object.startTime * 1000,
      object.column,
      object.endTime === undefined ? null : object.endTime * 1000,
    ]);
  } catch (error) {
    line.error = error.constructor.name;
  }
  console.log(JSON.stringify(line));
}
