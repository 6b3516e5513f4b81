// "Identify": hashes chart files in the browser and looks the hashes up. No file leaves the machine.

import { ChartIndex } from "../../../clients/npm/src/client.js";
import { MAX_FILES, chartFilesIn, readFiles } from "./identify_files.js";
import { Incomplete, askForNew } from "./identify_sets.js";
import { count, counted, hide, section, show } from "./identify_table.js";
import { filesOf, folders, forget } from "./library.js";
import { element, find as findIn } from "./page.js";

/** How many charts are looked up at a time. */
const MAX_HASHES = 1_000;
/** From this number of charts on, the hash filter is downloaded, and only charts that it may contain are looked up. */
const MIN_FILTERED = 100;
/** How often the progress is shown. */
const PROGRESS_MS = 100;

const find = (selector) => findIn(selector, section);
const status = find("output");
const [bar, cancel] = [find("progress"), find(".cancel")];

const REPLACED = new Error("another run has begun");
const CANCELLED = new Error("cancelled");

/** What runs: a new one ends the one before it. */
let current;

class Run {
  #controller = new AbortController();
  #shownAt = -Infinity;
  workerUrl = section.dataset.worker;
  /** Fails when the run is ended. */
  aborted = new Promise((_, reject) => this.signal.addEventListener("abort", () => reject(this.signal.reason)));

  get signal() {
    return this.#controller.signal;
  }

  abort(reason) {
    this.#controller.abort(reason);
  }

  /** Says what is done; throws if the run was ended. */
  say(text) {
    this.signal.throwIfAborted();
    if (status.textContent !== text) status.textContent = text;
  }

  /** The same, with how far it is, and lets the page respond. Numbers change too often to be read out. */
  async progress(text, done, total) {
    this.say(`${text} …`);
    if (performance.now() - this.#shownAt < PROGRESS_MS) return;
    if (total) [bar.max, bar.value] = [total, done];
    else bar.removeAttribute("value");
    bar.nextElementSibling.textContent = [done, total].flatMap((number) => number ? count(number) : []).join(" of ");
    await (globalThis.scheduler?.yield?.() ?? new Promise((resolve) => setTimeout(resolve)));
    this.#shownAt = performance.now();
  }
}

/** Runs a function once the one before it has ended. Says what it returns. */
function begin(task) {
  const [previous, run] = [current, new Run()];
  current = run;
  run.aborted.catch(() => {});
  previous?.abort(REPLACED);
  section.setAttribute("aria-busy", "true");
  run.over = (async () => {
    await previous?.over;
    const text = await task(run).catch(failure);
    if (current !== run) return;
    current = undefined;
    section.removeAttribute("aria-busy");
    status.textContent = text;
  })();
}

const failure = (error) => (error === CANCELLED ? "Cancelled." : `That failed: ${error.message}.`);

/** Identifies what a function adds to the results: charts, and reasons of what cannot be read. It returns a note. */
function identify(read, none = "No .osu, .qua, .sm or .ssc file, and no archive with one.") {
  hide();
  for (const list of ["#missing", "#new"]) find(list).hidden = true;
  const results = [];
  return begin(async (run) => {
    let note = "";
    try {
      note = await read(run, results);
      if (results.length === 0) {
        await showLibrary();
        return none;
      }
      await lookUpAll(run, results);
    } catch (error) {
      if (error === REPLACED || results.length === 0) throw error;
      note = failure(error);
    }
    const why = run.signal.aborted ? "cancelled before it was looked up" : "the index does not respond; try again later";
    for (const result of results) if (result.hash && !result.status) result.reason = why;
    offer(results);
    await showLibrary();
    return [show(results), note].filter(Boolean).join(" ");
  });
}

/** Reads what was chosen or dropped: files, folders, archives. */
const readItems = (items) => async (run, results) => {
  const files = await chartFilesIn(items, run);
  const handles = new Map(items.filter(({ kind }) => kind === "directory").map((handle) => [handle.name, handle]));
  const isKept = await readFiles(files, handles, run, results);
  const notes = [];
  if (files.length >= MAX_FILES) notes.push(`Only the first ${count(MAX_FILES)} files were read.`);
  if (!isKept) notes.push("This browser does not remember them.");
  return notes.join(" ");
};

// --- Look-ups ---

const clientOf = (run) => new ChartIndex("/", { wait: (ms, { status }) => countDown(run, ms, status) });

/** Adds what the index knows of the charts. Charts without a status were not looked up. */
async function lookUpAll(run, results) {
  const index = clientOf(run);
  let asked = results.filter(({ hash }) => hash);
  const isMany = asked.length >= MIN_FILTERED;
  if (isMany) {
    await run.progress("Reading the list of charts");
    // Without it, all charts are looked up.
    const filter = await index.hashFilter({ signal: run.signal }).catch(() => run.signal.throwIfAborted());
    for (const [at, result] of asked.entries()) {
      await run.progress("Comparing with the list of charts", at, asked.length);
      if (filter && !filter.has(result.hash)) result.status = "unknown";
    }
    asked = asked.filter(({ status }) => !status);
  }
  try {
    await lookUp(run, "Looking up", asked, (batch) => index.lookupMany(batch, { include: ["rating", "links"], signal: run.signal }));
    if (!isMany) await lookUpConversions(run, results.filter(isUnknown), index);
  } catch {
    // What is known until then is shown.
    run.signal.throwIfAborted();
  }
}

/** Adds what a function looks up of charts, by batches, so that what is known before a failure is shown. */
async function lookUp(run, text, results, ask) {
  for (let start = 0; start < results.length; start += MAX_HASHES) {
    await run.progress(text, start, results.length);
    const batch = results.slice(start, start + MAX_HASHES);
    for (const [index, { status, chart, sources }] of (await ask(batch)).entries()) {
      Object.assign(batch[index], { status, chart: chart && shownOf(chart), sources });
    }
  }
}

/** The fields that are shown: there may be a hundred thousand charts. */
const shownOf = ({ title, artist, difficulty, rating, densityPeak }) => ({ title, artist, difficulty, rating, densityPeak });

/** Whether conversions of a chart may be found. */
const isUnknown = ({ status, chart, variant, variants }) => status && !chart && variant && !variants;

async function lookUpConversions(run, results, index) {
  for (let start = 0; start < results.length; start += MAX_HASHES) {
    await run.progress("Looking for conversions", start, results.length);
    const batch = results.slice(start, start + MAX_HASHES);
    const found = await index.lookupMany(batch, { include: ["variants"], signal: run.signal });
    for (const [at, { variants, variantsTotal }] of found.entries()) Object.assign(batch[at], { variants, variantsTotal });
  }
}

/** Waits as long as the index asks for. */
async function countDown(run, ms, status) {
  const why = status === 429 ? "limits look-ups" : "does not respond";
  for (let left = Math.ceil(ms / 1000); left > 0; left -= 1) {
    run.say(`The index ${why}: continues in ${counted(left, "second")} …`);
    await Promise.race([run.aborted, new Promise((resolve) => setTimeout(resolve, 1000))]);
  }
}

// --- What else can be asked for ---

/** Offers what needs further requests. */
function offer(results) {
  const known = results.filter(({ chart }) => chart);
  const [conversions, missing, fresh] = [find(".conversions"), find(".missing"), find(".new")];
  const offerConversions = () => {
    const left = results.filter(isUnknown);
    conversions.hidden = left.length === 0;
    conversions.textContent = `Conversions of ${count(Math.min(left.length, MAX_HASHES))} charts that are not in the index`;
    conversions.onclick = () => begin(async (run) => {
      await lookUpConversions(run, left.slice(0, MAX_HASHES), clientOf(run));
      offerConversions();
      return show(results);
    });
  };
  offerConversions();
  const sets = new Incomplete(results);
  const offerMissing = () => {
    missing.hidden = sets.next === 0;
    missing.textContent = `Missing difficulties of ${counted(sets.next, "folder")}`;
  };
  offerMissing();
  missing.onclick = () => begin(async (run) => {
    find("#missing p").textContent = await sets.ask(results, clientOf(run), run);
    find("#missing").hidden = false;
    offerMissing();
    return "The sets that lack charts are listed below.";
  });
  fresh.hidden = known.length === 0 || !results.some(({ creator }) => creator);
  fresh.onclick = () => begin(async (run) => {
    find("#new p").textContent = await askForNew(results, clientOf(run), run);
    find("#new").hidden = false;
    return "What is new is listed below.";
  });
  find(".more").hidden = conversions.hidden && missing.hidden && fresh.hidden;
}

// --- The library ---

/** Shows the folders that this browser remembers. */
async function showLibrary() {
  const known = await folders().catch(() => []);
  find("#library").hidden = known.length === 0;
  find("#library ul").replaceChildren(...known.map(folderLine));
}

function folderLine({ name, files, charts, readAt, isComplete, handle }) {
  const at = new Date(readAt);
  // The local day in the format of the pages: that of Sweden.
  const time = element("time", { dateTime: at.toISOString() }, at.toLocaleDateString("sv"));
  const numbers = `: ${counted(charts, "chart")} in ${counted(files, "file")}, ${isComplete ? "" : "not completely "}read `;
  const line = element("li", {}, element("b", {}, element("bdi", {}, name)), numbers, time, " ");
  if (!handle) return line;
  const again = element("button", { type: "button", textContent: "Read what has changed" });
  again.setAttribute("aria-label", `Read what has changed in ${name}`);
  again.onclick = async () => {
    if ((await handle.requestPermission({ mode: "read" })) === "granted") identify(readItems([handle]));
  };
  line.append(again);
  return line;
}

/** The charts of all folders, as they were read. */
async function readLibrary(run, results) {
  for (const { name } of await folders().catch(() => [])) {
    await run.progress("Reading the library");
    for (const { path, charts } of (await filesOf(name)).values()) {
      for (const chart of charts) results.push({ file: path, ...chart });
    }
  }
}

function startLibrary() {
  showLibrary();
  find(".recall").onclick = () => identify(readLibrary, "This browser remembers no folder.");
  find(".forget").onclick = () => begin(async () => {
    await forget();
    hide();
    find(".more").hidden = true;
    await showLibrary();
    return "Forgotten: this browser has nothing of your folders any more.";
  });
}

// --- Start ---

/** Reads a folder of which the browser gives a handle, so that it need not be chosen again. */
async function pick(event) {
  event.preventDefault();
  const handle = await showDirectoryPicker({ id: "songs" }).catch(() => undefined);
  if (handle) identify(readItems([handle]));
}

function start() {
  for (const input of section.querySelectorAll("input[type=file]")) {
    input.addEventListener("change", () => identify(readItems([...input.files])));
    // Chosen before this script was loaded.
    if (input.files.length > 0) identify(readItems([...input.files]));
  }
  if ("showDirectoryPicker" in globalThis) {
    find("#folder").classList.add("picker");
    find("#folder").addEventListener("click", pick);
  }
  cancel.addEventListener("click", () => current?.abort(CANCELLED));
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
    identify(readItems(items.map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile()).filter(Boolean)));
  });
  startLibrary();
}

start();
