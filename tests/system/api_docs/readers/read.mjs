// Reads the files of an index in the current folder with Node.js and packages of npm, after read.py, and prints
// what that prints.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { isDeepStrictEqual } from "node:util";
import { pathToFileURL } from "node:url";
import zlib from "node:zlib";

const require = createRequire(`${process.env.READERS}/`);
// Also of packages that cannot be required.
const load = (name) => {
  const folder = path.join(process.env.READERS, "node_modules", name);
  const manifest = JSON.parse(readFileSync(path.join(folder, "package.json")));
  let entry = manifest.exports?.["."] ?? manifest.exports ?? manifest.module ?? manifest.main;
  while (typeof entry !== "string") entry = entry.node ?? entry.import ?? entry.default;
  return import(pathToFileURL(path.join(folder, entry)));
};
const json = (file) => JSON.parse(readFileSync(file, "utf8"));
const versionOf = (name) => json(path.join(process.env.READERS, "node_modules", name, "package.json")).version;
const show = (...cells) => console.log(`| ${cells.join(" | ")} |`);
const verdict = async (check) => {
  try {
    return (await check()) ? "yes" : "no";
  } catch (error) {
    return `error: ${error.message}`.split("\n")[0];
  }
};
const ROWS = json("charts.json");
// Whole numbers as numbers, where they are exact.
const plain = (value) => (typeof value === "bigint" && Number.isSafeInteger(Number(value)) ? Number(value) : value);

{
  const { asyncBufferFromFile, parquetReadObjects } = await load("hyparquet");
  const { compressors } = await load("hyparquet-compressors");
  const file = await asyncBufferFromFile("catalogue.parquet");
  const rows = await parquetReadObjects({ file, compressors });
  const types = ["keys", "length_ms", "source_ref"].map((column) => {
    const value = rows.map((row) => row[column]).find((value) => value !== null && value !== undefined);
    return `\`${typeof value}\``;
  });
  const read = rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value)])));
  show("hyparquet", `hyparquet ${versionOf("hyparquet")}`, isDeepStrictEqual(read, ROWS) ? "yes" : "no", ...types);
}

{
  const [statement, names] = json("statement.json");
  const words = `SELECT count(*) AS count FROM chartset_words WHERE chartset_words MATCH '"harbour"'`;
  const expected = ROWS.map((row) => names.map((name) => row[name]));
  const content = readFileSync("catalogue.sqlite");
  const readers = {
    "Node.js": [process.version.slice(1), () => {
      const database = new DatabaseSync("catalogue.sqlite", { readOnly: true });
      return (query) => database.prepare(query).all();
    }],
    "sql.js": [versionOf("sql.js"), async () => {
      const SQL = await require("sql.js")();
      const database = new SQL.Database(content);
      return (query) => database.exec(query)[0].values;
    }],
    "node-sqlite3-wasm": [versionOf("node-sqlite3-wasm"), () => {
      const { Database } = require("node-sqlite3-wasm");
      const database = new Database("catalogue.sqlite", { readOnly: true });
      return (query) => database.all(query);
    }],
  };
  for (const [name, [version, open]] of Object.entries(readers)) {
    const query = await open();
    const cell = (value) => (value instanceof Uint8Array ? Buffer.from(value).toString("hex") : plain(value));
    const rows = (statement) => query(statement).map((row) => Object.values(row).map(cell));
    const values = await verdict(() => isDeepStrictEqual(rows(statement), expected));
    show(name, version, values, await verdict(() => isDeepStrictEqual(rows(words), [[2]])));
  }
}

{
  const content = readFileSync("chartsets.ndjson.zst");
  const expected = readFileSync("chartsets.ndjson");
  const { ZSTDDecoder } = await load("zstddec");
  const decoder = new ZSTDDecoder();
  await decoder.init();
  const { decompress } = require("fzstd");
  for (const [name, version, read] of [
    ["Node.js", process.version.slice(1), () => zlib.zstdDecompressSync(content)],
    ["fzstd", versionOf("fzstd"), () => decompress(content)],
    ["zstddec", versionOf("zstddec"), () => decoder.decode(content, expected.length)],
  ]) {
    show(name, version, await verdict(() => expected.equals(Buffer.from(read()))));
  }
}

{
  const expected = json("entries.json");
  const text = readFileSync("feed.atom", "utf8");
  const Parser = require("rss-parser");
  const { parseAtomFeed } = await load("feedsmith");
  const rss = await new Parser().parseString(text);
  const rssEntries = rss.items.map(({ id, title, pubDate, summary, author, link }) => [
    id, title, pubDate.replace(".000Z", "Z"), summary, author, link,
  ]);
  const atomEntries = parseAtomFeed(text).entries.map(({ id, title, updated, summary, authors, links }) => [
    id, title.value, updated, summary.value, authors[0].name, links[0].href,
  ]);
  for (const [name, entries] of [["rss-parser", rssEntries], ["feedsmith", atomEntries]]) {
    show(name, versionOf(name), await verdict(() => isDeepStrictEqual(entries, expected)));
  }
}

{
  const paths = Object.keys(json("openapi.json").paths);
  const swagger = require("@apidevtools/swagger-parser");
  const scalar = await load("@scalar/openapi-parser");
  const same = (document) => isDeepStrictEqual(Object.keys(document.paths), paths);
  const readers = {
    "@apidevtools/swagger-parser": async () => same(await swagger.validate("openapi.json")),
    "@scalar/openapi-parser": async () => {
      const { valid, schema } = await scalar.validate(json("openapi.json"));
      return valid && same(schema);
    },
  };
  for (const [name, read] of Object.entries(readers)) show(name, versionOf(name), await verdict(read));
}
