// "Identify": hashes chart files in the browser and looks the hashes up. No file leaves the machine.

import { chartFilesOf, isArchive } from "./archives.js";
import { MAX_FILE_BYTES, hashChartFile, isChartFile, withoutReplaced } from "./chart_files.js";

const MAX_FILES = 10_000;
const MAX_DEPTH = 8;
/** The maximum of a batch lookup, and of one with variants. */
const MAX_HASHES = 1_000;
const MAX_WITH_VARIANTS = 100;
/** How many conversions of a chart are named. */
const MAX_NAMED = 3;
/** From this number of charts on, the hash filter is downloaded, and only charts that it may contain are looked up. */
const MIN_FILTERED = 100;
/** The table shows so many charts. The file with all of them has no limit. */
const MAX_ROWS = 2_000;

const section = document.querySelector("#identify");
const status = section.querySelector("output");
const table = section.querySelector("table");
const save = section.querySelector(".save");
const find = (selector) => section.querySelector(selector);

/** The run that shows its results: a new choice ends the one before it. */
let current;

/** Shows how far a run is; false if another one has replaced it. */
function say(run, text) {
  if (current !== run) return false;
  status.textContent = text;
  return true;
}

function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** Identifies what was chosen or dropped: files, folders, archives. */
async function identify(items) {
  const run = {};
  current = run;
  table.hidden = save.hidden = true;
  say(run, "Reading files …");
  const files = [];
  for (const item of items) await collect(item, files, MAX_DEPTH);
  const charts = chartFilesAmong(files);
  const results = [];
  for (const [index, file] of charts.entries()) {
    if (!say(run, `Reading ${index + 1} of ${counted(charts.length, "file")} …`)) return;
    results.push(...(await resultsOf(file)));
  }
  if (charts.length === 0) say(run, "No .osu, .qua, .sm or .ssc file, and no archive with one.");
  else if (await lookUpAll(run, results)) show(run, results);
}

// --- Files ---

/** Adds a file with its path, or those in a folder. */
async function collect(item, files, depth) {
  if (files.length >= MAX_FILES) return;
  if (item instanceof File) {
    files.push({ path: item.webkitRelativePath || item.name, file: item });
  } else if (item.isFile) {
    const file = await new Promise((resolve, reject) => item.file(resolve, reject));
    files.push({ path: item.fullPath.replace(/^\//, ""), file });
  } else if (item.isDirectory && depth > 0) {
    for (const entry of await entriesInFolder(item)) await collect(entry, files, depth - 1);
  }
}

/** The entries of a folder, which a browser reads in portions of a hundred. */
async function entriesInFolder(folder) {
  const reader = folder.createReader();
  const entries = [];
  for (;;) {
    const portion = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (portion.length === 0) return entries;
    entries.push(...portion);
  }
}

/** The files that are read: all that were chosen themselves, and of a folder what its game reads. */
function chartFilesAmong(files) {
  const named = files.filter(({ path }) => isChartFile(path) || isArchive(path));
  const isInFolder = ({ path }) => path.includes("/");
  const chosen = named.filter((file) => !isInFolder(file));
  return [...chosen, ...withoutReplaced(named.filter(isInFolder), ({ path }) => path)];
}

/** A result for each chart of a file or an archive, and one that says why for each that cannot be read. */
async function resultsOf({ path, file }) {
  if (!isArchive(path)) return chartsOf(path, file);
  const results = [];
  try {
    for await (const entry of chartFilesOf(file)) {
      const inner = `${path}/${entry.path}`;
      results.push(...(entry.file ? await chartsOf(inner, entry.file) : [{ ...entry, path: inner }]));
    }
  } catch (error) {
    results.push({ path, cannotTell: reasonOf(error) });
  }
  return results.length > 0 ? results : [{ path, cannotTell: "no chart file in the archive" }];
}

async function chartsOf(path, file) {
  try {
    if (file.size > MAX_FILE_BYTES) return [{ path, cannotTell: `larger than ${MAX_FILE_BYTES / 2 ** 20} MB` }];
    return hashChartFile(path, new Uint8Array(await file.arrayBuffer())).map((chart) => ({ path, ...chart }));
  } catch (error) {
    return [{ path, cannotTell: reasonOf(error) }];
  }
}

const reasonOf = (error) => (error.name === "NotReadableError" ? "the file cannot be read" : error.message);

// --- Look-ups ---

/** Adds what the index knows of the charts. False if a new choice has replaced this one. */
async function lookUpAll(run, results) {
  let asked = results.filter(({ hash }) => hash);
  if (asked.length >= MIN_FILTERED) {
    if (!say(run, "Reading the list of charts …")) return false;
    const filter = await hashFilter();
    asked = asked.filter(({ hash }) => !filter || filter.mayContain(hash));
  }
  for (let start = 0; start < asked.length; start += MAX_HASHES) {
    if (!say(run, "Looking up …")) return false;
    const batch = asked.slice(start, start + MAX_HASHES);
    await lookUp(run, "/api/charts/lookup", batch, { hashes: batch.map(({ hash }) => hash) });
  }
  const unknown = results.filter(({ chart, cannotTell, variant }) => variant && !chart && !cannotTell);
  for (let start = 0; start < unknown.length; start += MAX_WITH_VARIANTS) {
    if (!say(run, "Looking for conversions …")) return false;
    const batch = unknown.slice(start, start + MAX_WITH_VARIANTS);
    const charts = batch.map(({ hash, variant }) => ({ hash, variant }));
    await lookUp(run, "/api/charts/lookup?include=variants", batch, { charts });
  }
  return current === run;
}

/** The hash filter of the index, which the browser caches. Without it, all charts are looked up. */
async function hashFilter() {
  try {
    const [{ HashFilter }, response] = await Promise.all([
      import(section.dataset.hashFilterModule),
      fetch("/api/charts/filter"),
    ]);
    return response.ok ? new HashFilter(await response.arrayBuffer()) : undefined;
  } catch {
    return undefined;
  }
}

/** Asks the index for a batch, for its halves if it is received too slowly, and waits where it limits requests. */
async function lookUp(run, path, results, charts) {
  const request = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(charts) };
  for (;;) {
    const response = await fetch(path, request).catch(() => undefined);
    if (response?.ok) {
      const { items } = await response.json();
      for (const [index, { chart, variants, sources }] of items.entries()) {
        Object.assign(results[index], { chart, variants, sources });
      }
      return;
    }
    if (response?.status === 408 && results.length > 1) {
      // The link is too slow for the batch.
      const middle = Math.ceil(results.length / 2);
      for (const range of [[0, middle], [middle]]) {
        const [[name, all]] = Object.entries(charts);
        await lookUp(run, path, results.slice(...range), { [name]: all.slice(...range) });
      }
      return;
    }
    if (response?.status !== 429) {
      for (const result of results) result.cannotTell = "the index does not respond; try again later";
      return;
    }
    for (let left = Number(response.headers.get("Retry-After")) || 1; left > 0; left -= 1) {
      say(run, `The index limits look-ups: continues in ${counted(left, "second")} …`);
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}

// --- Results ---

const COLUMNS = ["file", "chart", "result", "artist", "title", "difficulty", "keys", "hash"];

/** The values of a result, by column. */
function rowOf({ path, name = "", hash = "", keys = "", chart, variants = [], cannotTell }) {
  const known = chart ?? {};
  const result = cannotTell ? `cannot tell: ${cannotTell}` : chart ? "in the index" : "not in the index";
  const conversion = !chart && variants.length > 0 ? ", but a conversion of it is" : "";
  const { artist = "", title = "", difficulty = "" } = known;
  return [path, name, result + conversion, artist, title, difficulty, keys, hash];
}

function show(run, results) {
  const untold = results.filter(({ cannotTell }) => cannotTell).length;
  const found = results.filter(({ chart }) => chart).length;
  const counts = [`${found.toLocaleString("en")} in the index`, `${(results.length - found - untold).toLocaleString("en")} not in the index`];
  if (untold) counts.push(`${untold.toLocaleString("en")} cannot be told`);
  if (results.length > MAX_ROWS) counts.push(`the first ${MAX_ROWS.toLocaleString("en")} are shown`);
  say(run, `${counted(results.length, "chart")}: ${counts.join(", ")}.`);
  find("tbody").replaceChildren(...results.slice(0, MAX_ROWS).map(shown));
  save.onclick = () => {
    const href = URL.createObjectURL(new Blob([csv(results)], { type: "text/csv" }));
    element("a", { href, download: "charts.csv" }).click();
    URL.revokeObjectURL(href);
  };
  table.hidden = save.hidden = false;
}

/** RFC 4180. A spreadsheet would run what begins like a formula. */
function csv(results) {
  const quoted = (value) => `"${String(value).replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;
  return [COLUMNS, ...results.map(rowOf)].map((row) => `${row.map(quoted).join(",")}\r\n`).join("");
}

function element(name, properties, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

const isolated = (text) => element("bdi", {}, text);

function link({ hash, artist, title, difficulty }) {
  const name = `${artist ? `${artist} – ` : ""}${title || "Untitled"} [${difficulty}]`;
  return element("a", { href: `/charts/${hash}` }, isolated(name));
}

/** The row of a result: its file, what it is, and its hash. */
function shown({ path, name, hash = "", keys, chart, variants = [], cannotTell }) {
  const file = element("th", { scope: "row" }, isolated(path));
  if (name) file.append(" ", element("span", { className: "by" }, isolated(name)));
  const cell = element("td", {});
  if (cannotTell) {
    cell.append(`Cannot tell: ${cannotTell}`);
  } else if (chart) {
    cell.append(link({ ...chart, hash }));
  } else {
    cell.append("Not in the index");
    for (const [index, variant] of variants.slice(0, MAX_NAMED).entries()) {
      cell.append(index ? ", " : ", but the same rows are in ", link(variant));
    }
  }
  const code = hash && element("code", { title: hash }, hash.slice(0, 8));
  return element("tr", {}, file, cell, element("td", {}, keys ? `${keys}K` : ""), element("td", {}, code));
}

function start() {
  for (const input of section.querySelectorAll("input[type=file]")) {
    input.addEventListener("change", () => identify([...input.files]));
    // Chosen before this script was loaded.
    if (input.files.length > 0) identify([...input.files]);
  }
  addEventListener("dragover", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    section.classList.add("over");
  });
  addEventListener("dragleave", ({ relatedTarget }) => relatedTarget ?? section.classList.remove("over"));
  addEventListener("drop", (event) => {
    section.classList.remove("over");
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    // The entries are gone once this handler has returned.
    const items = [...event.dataTransfer.items].filter((item) => item.kind === "file");
    identify(items.map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile()).filter(Boolean));
  });
}

start();
