// "Identify": hashes chart files in the browser and looks the hashes up. No file leaves the machine.

import { ChartIndex } from "../../../clients/npm/src/client.js";
import { filesRead, hashFile, isRead } from "../../../clients/npm/src/files.js";

const MAX_FILES = 10_000;
const MAX_DEPTH = 8;
/** How many charts are looked up at a time. */
const MAX_HASHES = 1_000;
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
  const isInFolder = ({ path }) => path.includes("/");
  const chosen = files.filter((file) => !isInFolder(file) && isRead(file.path));
  return [...chosen, ...filesRead(files.filter(isInFolder), ({ path }) => path)];
}

/** A result for each chart of a file or an archive, and one that says why for each that cannot be read. */
async function resultsOf({ path, file }) {
  const charts = (await hashFile(path, file)).map(({ chart: difficulty, ...result }) => ({ difficulty, ...result }));
  return charts.length > 0 ? charts : [{ file: path, reason: "no chart file in the archive" }];
}

// --- Look-ups ---

/** Adds what the index knows of the charts. False if a new choice has replaced this one. */
async function lookUpAll(run, results) {
  const index = new ChartIndex("/", { wait: (ms, { status }) => countDown(run, ms, status) });
  let asked = results.filter(({ hash }) => hash);
  try {
    if (asked.length >= MIN_FILTERED) {
      if (!say(run, "Reading the list of charts …")) return false;
      // Without it, all charts are looked up.
      const filter = await index.hashFilter().catch(() => undefined);
      asked = asked.filter(({ hash }) => filter?.has(hash) ?? true);
    }
    await lookUp(run, "Looking up …", asked, (batch) => index.lookupMany(batch));
    const unknown = results.filter(({ chart, reason, variant }) => variant && !chart && !reason);
    const options = { include: ["variants"] };
    await lookUp(run, "Looking for conversions …", unknown, (batch) => index.lookupMany(batch, options));
  } catch {
    const left = asked.filter(({ status }) => !status);
    for (const result of left) result.reason = "the index does not respond; try again later";
  }
  return current === run;
}

/** Adds what a function looks up of charts, by batches, so that what is known before a failure is shown. */
async function lookUp(run, text, results, ask) {
  for (let start = 0; start < results.length && say(run, text); start += MAX_HASHES) {
    const batch = results.slice(start, start + MAX_HASHES);
    for (const [index, { status, chart, variants, sources }] of (await ask(batch)).entries()) {
      Object.assign(batch[index], { status, chart, variants, sources });
    }
  }
}

/** Waits as long as the index asks for, and ends if a new choice has replaced this one. */
async function countDown(run, ms, status) {
  const why = status === 429 ? "limits look-ups" : "does not respond";
  for (let left = Math.ceil(ms / 1000); left > 0; left -= 1) {
    if (!say(run, `The index ${why}: continues in ${counted(left, "second")} …`)) throw new Error("replaced");
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

// --- Results ---

const COLUMNS = ["file", "chart", "result", "artist", "title", "difficulty", "keys", "hash"];

/** The difficulty in a file that has several. */
const nameIn = ({ file, difficulty = "" }) => (/\.(?:sm|ssc)$/i.test(file) ? difficulty : "");

/** The values of a result, by column. */
function rowOf(row) {
  const { file, hash = "", keys = "", chart, variants = [], reason } = row;
  const known = chart ?? {};
  const result = reason ? `cannot tell: ${reason}` : chart ? "in the index" : "not in the index";
  const conversion = !chart && variants.length > 0 ? ", but a conversion of it is" : "";
  const { artist = "", title = "", difficulty = "" } = known;
  return [file, nameIn(row), result + conversion, artist, title, difficulty, keys, hash];
}

function show(run, results) {
  const untold = results.filter(({ reason }) => reason).length;
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
function shown(row) {
  const { file, hash = "", keys, chart, variants = [], reason } = row;
  const name = nameIn(row);
  const heading = element("th", { scope: "row" }, isolated(file));
  if (name) heading.append(" ", element("span", { className: "by" }, isolated(name)));
  const cell = element("td", {});
  if (reason) {
    cell.append(`Cannot tell: ${reason}`);
  } else if (chart) {
    cell.append(link({ ...chart, hash }));
  } else {
    cell.append("Not in the index");
    for (const [index, variant] of variants.slice(0, MAX_NAMED).entries()) {
      cell.append(index ? ", " : ", but the same rows are in ", link(variant));
    }
  }
  const code = hash && element("code", { title: hash }, hash.slice(0, 8));
  return element("tr", {}, heading, cell, element("td", {}, keys ? `${keys}K` : ""), element("td", {}, code));
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
